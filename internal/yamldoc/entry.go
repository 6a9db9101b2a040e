package yamldoc

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml/ast"

	"github.com/p2pdc/p2pdc/internal/spelling"
)

// Source is where an entry stands, for messages.
type Source struct {
	File string
	Key  string // "" for the whole file
	Line int    // 0: not known
}

// Errorf refuses what stands there.
func (s Source) Errorf(format string, args ...any) error {
	return &Error{File: s.File, Line: s.Line, Key: s.Key, Reason: fmt.Sprintf(format, args...)}
}

// Under is the place of a value nested in s.
func (s Source) Under(name string, n ast.Node) Source {
	s.Line = LineOf(n, s.Line)
	if s.Key != "" {
		name = s.Key + "." + name
	}
	s.Key = name
	return s
}

// Entry is a key with its value; absent and null values are nil.
type Entry struct {
	Source
	Value ast.Node
}

// Null tells whether there is no value.
func (e Entry) Null() bool { return e.Value == nil }

// LineOf is the line on which a value begins, otherwise if it is not known.
func LineOf(n ast.Node, otherwise int) int {
	if n == nil || n.GetToken() == nil || n.GetToken().Position == nil {
		return otherwise
	}
	return n.GetToken().Position.Line
}

// Mapping returns the entries of a mapping by known key, in the order of known;
// a key that is not known is refused.
func Mapping(at Source, n ast.Node, known ...string) ([]Entry, error) {
	m, ok := n.(*ast.MappingNode)
	if !ok {
		at.Line = LineOf(n, at.Line)
		return nil, at.Errorf("there should be keys with values (%s: …), not %s", known[0], Kind(n))
	}
	entries := make([]Entry, len(known))
	for i, k := range known {
		entries[i].Source = at.Under(k, n)
	}
	for _, v := range m.Values {
		name := KeyName(v.Key)
		i := slices.Index(known, name)
		if i < 0 {
			at.Line = LineOf(v.Key, at.Line)
			return nil, at.Errorf("unknown key %q%s; the keys are %s", name, spelling.Suggest(name, known), strings.Join(known, ", "))
		}
		entries[i].Line = LineOf(v.Key, at.Line)
		if _, null := v.Value.(*ast.NullNode); !null {
			entries[i].Value = v.Value
		}
	}
	return entries, nil
}

// Named returns the entries of a mapping whose keys are names that its writer chose, in the
// order of the file; of says what they name.
func (e Entry) Named(of string) (names []string, entries []Entry, err error) {
	m, ok := e.Value.(*ast.MappingNode)
	if !ok || len(m.Values) == 0 {
		return nil, nil, e.Errorf("there should be %s by name (name: …), not %s", of, Kind(e.Value))
	}
	for _, v := range m.Values {
		name := KeyName(v.Key)
		item := Entry{e.Under(name, v.Key), v.Value}
		if _, null := v.Value.(*ast.NullNode); null {
			item.Value = nil
		}
		names, entries = append(names, name), append(entries, item)
	}
	return names, entries, nil
}

// List returns the values of a list of any length; of says what they are. Their keys end
// in [0], [1] and so on.
func (e Entry) List(of string) ([]Entry, error) {
	s, ok := e.Value.(*ast.SequenceNode)
	if !ok {
		return nil, e.Errorf("there should be a list of %s, not %s", of, Kind(e.Value))
	}
	entries := make([]Entry, len(s.Values))
	for i, v := range s.Values {
		entries[i] = Entry{e.Source, v}
		entries[i].Key = fmt.Sprintf("%s[%d]", e.Key, i)
		entries[i].Line = LineOf(v, e.Line)
	}
	return entries, nil
}

// KeyName is a key as its writer wrote it.
func KeyName(k ast.MapKeyNode) string {
	if s, ok := k.(*ast.StringNode); ok {
		return s.Value
	}
	return strings.TrimSpace(k.String())
}

// Sequence returns the n values of a list.
func (e Entry) Sequence(n int, of string) ([]Entry, error) {
	s, ok := e.Value.(*ast.SequenceNode)
	if !ok {
		return nil, e.Errorf("there should be a list of %d %s, not %s", n, of, Kind(e.Value))
	}
	if len(s.Values) != n {
		return nil, e.Errorf("there should be %d %s, not %d", n, of, len(s.Values))
	}
	entries := make([]Entry, n)
	for i, v := range s.Values {
		entries[i] = Entry{e.Source, v}
		entries[i].Line = LineOf(v, e.Line)
	}
	return entries, nil
}

// Integer reads a whole number.
func (e Entry) Integer() (int, error) {
	if i, ok := e.Value.(*ast.IntegerNode); ok {
		if v, err := strconv.Atoi(fmt.Sprint(i.Value)); err == nil {
			return v, nil
		}
	}
	return 0, e.Errorf("there should be a whole number, not %s", Kind(e.Value))
}

// Text reads a string; folded and literal blocks are strings too.
func (e Entry) Text() (string, bool) {
	switch v := e.Value.(type) {
	case *ast.StringNode:
		return v.Value, true
	case *ast.LiteralNode:
		if v.Value != nil {
			return v.Value.Value, true
		}
	}
	return "", false
}

// Shorten cuts a text that is long for a message.
func Shorten(s string) string {
	const most = 120
	if runes := []rune(s); len(runes) > most {
		return string(runes[:most]) + "…"
	}
	return s
}

// Kind says what a value is in words.
func Kind(n ast.Node) string {
	switch n := n.(type) {
	case nil, *ast.NullNode:
		return "nothing"
	case *ast.MappingNode:
		return "a mapping"
	case *ast.SequenceNode:
		return "a list"
	case *ast.StringNode:
		return strconv.Quote(Shorten(n.Value))
	case *ast.AnchorNode, *ast.AliasNode, *ast.TagNode, *ast.MergeKeyNode:
		return "a YAML anchor, alias or tag, which is not used here"
	}
	return Shorten(n.GetToken().Value)
}
