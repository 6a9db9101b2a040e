package yamldoc

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml/ast"

	"github.com/p2pdc/p2pdc/internal/spelling"
)

// Source is the position of an entry in a file.
type Source struct {
	File string
	Key  string // "" for the whole file
	Line int    // 0 if unknown
}

// Errorf returns an Error at the position.
func (s Source) Errorf(format string, args ...any) error {
	return &Error{File: s.File, Line: s.Line, Key: s.Key, Reason: fmt.Sprintf(format, args...)}
}

// Under returns the position of a value nested in s.
func (s Source) Under(name string, n ast.Node) Source {
	s.Line = LineOf(n, s.Line)
	if s.Key != "" {
		name = s.Key + "." + name
	}
	s.Key = name
	return s
}

// Entry is a key with its value, which is nil if it is absent or null.
type Entry struct {
	Source
	Value ast.Node
}

// Null reports whether there is no value.
func (e Entry) Null() bool { return e.Value == nil }

// LineOf returns the line of a value, or otherwise if it is unknown.
func LineOf(n ast.Node, otherwise int) int {
	if n == nil || n.GetToken() == nil || n.GetToken().Position == nil {
		return otherwise
	}
	return n.GetToken().Position.Line
}

// Mapping returns the entries of a mapping in the order of the known keys. A key that is not known is an error.
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
			return nil, at.Errorf("unknown key %q%s; the keys are %s",
				name, spelling.Suggest(name, known), strings.Join(known, ", "))
		}
		entries[i].Line = LineOf(v.Key, at.Line)
		if _, null := v.Value.(*ast.NullNode); !null {
			entries[i].Value = v.Value
		}
	}
	return entries, nil
}

// Named returns the names and entries of a mapping with arbitrary keys, in the order of the file. of describes
// the entries in error messages.
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

// List returns the values of a list of any length; their keys end in [0], [1] and so on. of describes the
// values in error messages.
func (e Entry) List(of string) ([]Entry, error) {
	entries, err := e.items(of)
	for i := range entries {
		entries[i].Key = fmt.Sprintf("%s[%d]", e.Key, i)
	}
	return entries, err
}

// items returns the values of a list.
func (e Entry) items(of string) ([]Entry, error) {
	s, ok := e.Value.(*ast.SequenceNode)
	if !ok {
		return nil, e.Errorf("there should be a list of %s, not %s", of, Kind(e.Value))
	}
	entries := make([]Entry, len(s.Values))
	for i, v := range s.Values {
		entries[i] = Entry{e.Source, v}
		entries[i].Line = LineOf(v, e.Line)
	}
	return entries, nil
}

// KeyName returns a key as written in the file.
func KeyName(k ast.MapKeyNode) string {
	if s, ok := k.(*ast.StringNode); ok {
		return s.Value
	}
	return strings.TrimSpace(k.String())
}

// Sequence returns the values of a list, whose length must be n.
func (e Entry) Sequence(n int, of string) ([]Entry, error) {
	entries, err := e.items(fmt.Sprintf("%d %s", n, of))
	if err == nil && len(entries) != n {
		return nil, e.Errorf("there should be %d %s, not %d", n, of, len(entries))
	}
	return entries, err
}

// Integer returns the value as a whole number.
func (e Entry) Integer() (int, error) {
	if i, ok := e.Value.(*ast.IntegerNode); ok {
		if v, err := strconv.Atoi(fmt.Sprint(i.Value)); err == nil {
			return v, nil
		}
	}
	return 0, e.Errorf("there should be a whole number, not %s", Kind(e.Value))
}

// Bool returns the value as a truth value.
func (e Entry) Bool() (bool, error) {
	b, ok := e.Value.(*ast.BoolNode)
	if !ok {
		return false, e.Errorf("there should be true or false, not %s", Kind(e.Value))
	}
	return b.Value, nil
}

// Text returns the value as a string, which may be a folded or literal block.
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

// Shorten returns s, truncated if it is too long for an error message.
func Shorten(s string) string {
	const most = 120
	if runes := []rune(s); len(runes) > most {
		return string(runes[:most]) + "…"
	}
	return s
}

// Kind returns a description of a value for error messages.
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
