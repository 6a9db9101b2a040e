package file

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"

	"github.com/p2pdc/p2pdc/problems"
)

// maxDepth of brackets and indentation in a problem file; three are in use.
const maxDepth = 32

// source is where an entry stands, for messages.
type source struct {
	file string
	key  string // "" for the whole file
	line int
}

func (s source) errorf(format string, args ...any) error {
	return &Error{File: s.file, Line: s.line, Key: s.key, Reason: fmt.Sprintf(format, args...)}
}

// under is the place of a value nested in s.
func (s source) under(name string, n ast.Node) source {
	s.line = lineOf(n, s.line)
	if s.key != "" {
		name = s.key + "." + name
	}
	s.key = name
	return s
}

// entry is a key with its value; absent and null values are nil.
type entry struct {
	source
	value ast.Node
}

func (e entry) null() bool { return e.value == nil }

// parseYAML returns the value of a text that holds one document.
func parseYAML(file string, text []byte) (ast.Node, error) {
	whole := source{file: file}
	if len(text) > MaxTextBytes {
		return nil, whole.errorf("the problem file has %d bytes, more than the %d allowed", len(text), MaxTextBytes)
	}
	text = bytes.TrimPrefix(text, []byte("\xef\xbb\xbf")) // a byte order mark
	text = bytes.ReplaceAll(text, []byte("\r\n"), []byte("\n"))
	if line := notText(text); line > 0 {
		whole.line = line
		return nil, whole.errorf("a problem file is UTF-8 text without control characters")
	}
	if line := tooDeep(text); line > 0 {
		whole.line = line
		return nil, whole.errorf("brackets are nested more than %d deep", maxDepth)
	}
	tree, err := parser.ParseBytes(text, 0)
	if err != nil {
		var located yaml.Error
		if errors.As(err, &located) {
			if at := located.GetToken(); at != nil && at.Position != nil {
				whole.line = at.Position.Line
			}
			return nil, whole.errorf("this is not YAML: %s", located.GetMessage())
		}
		return nil, whole.errorf("this is not YAML: %v", err)
	}
	if len(tree.Docs) == 0 || tree.Docs[0].Body == nil {
		return nil, whole.errorf("the problem file is empty")
	}
	if len(tree.Docs) > 1 {
		whole.line = lineOf(tree.Docs[1].Body, 0)
		return nil, whole.errorf("a problem file holds one document")
	}
	return tree.Docs[0].Body, nil
}

// notText returns the line of a byte that has no place in a text. Among them are
// lone carriage returns, over which the YAML parser takes quadratic time.
func notText(text []byte) int {
	line := 1
	for len(text) > 0 {
		r, size := utf8.DecodeRune(text)
		if r == '\n' {
			line++
		}
		if r == utf8.RuneError && size == 1 || unicode.IsControl(r) && r != '\n' && r != '\t' {
			return line
		}
		text = text[size:]
	}
	return 0
}

// tooDeep returns the line on which brackets, or block marks, nest deeper than
// anything here needs: the YAML parser recurses.
func tooDeep(text []byte) int {
	depth, line, marks := 0, 1, 0
	for _, b := range text {
		switch b {
		case '[', '{':
			depth++
		case ']', '}':
			depth = max(depth-1, 0)
		case '\n':
			line, marks = line+1, 0
		case '-', '?', '!', '&', '*', ':':
			marks++
		}
		if depth > maxDepth || marks > 64*maxDepth {
			return line
		}
	}
	return 0
}

func lineOf(n ast.Node, otherwise int) int {
	if n == nil || n.GetToken() == nil || n.GetToken().Position == nil {
		return otherwise
	}
	return n.GetToken().Position.Line
}

// mapping returns the entries of a mapping by known key, in the order of known;
// a key that is not known is refused.
func mapping(at source, n ast.Node, known ...string) ([]entry, error) {
	m, ok := n.(*ast.MappingNode)
	if !ok {
		at.line = lineOf(n, at.line)
		return nil, at.errorf("there should be keys with values (%s: …), not %s", known[0], kind(n))
	}
	entries := make([]entry, len(known))
	for i, k := range known {
		entries[i].source = at.under(k, n)
	}
	for _, v := range m.Values {
		name := keyName(v.Key)
		i := slices.Index(known, name)
		if i < 0 {
			at.line = lineOf(v.Key, at.line)
			return nil, at.errorf("unknown key %q%s; the keys are %s", name, problems.Suggest(name, known), strings.Join(known, ", "))
		}
		entries[i].line = lineOf(v.Key, at.line)
		if _, null := v.Value.(*ast.NullNode); !null {
			entries[i].value = v.Value
		}
	}
	return entries, nil
}

func keyName(k ast.MapKeyNode) string {
	if s, ok := k.(*ast.StringNode); ok {
		return s.Value
	}
	return strings.TrimSpace(k.String())
}

// sequence returns the n values of a list.
func (e entry) sequence(n int, of string) ([]entry, error) {
	s, ok := e.value.(*ast.SequenceNode)
	if !ok {
		return nil, e.errorf("there should be a list of %d %s, not %s", n, of, kind(e.value))
	}
	if len(s.Values) != n {
		return nil, e.errorf("there should be %d %s, not %d", n, of, len(s.Values))
	}
	entries := make([]entry, n)
	for i, v := range s.Values {
		entries[i] = entry{e.source, v}
		entries[i].line = lineOf(v, e.line)
	}
	return entries, nil
}

// integer reads a whole number.
func (e entry) integer() (int, error) {
	if i, ok := e.value.(*ast.IntegerNode); ok {
		if v, err := strconv.Atoi(fmt.Sprint(i.Value)); err == nil {
			return v, nil
		}
	}
	return 0, e.errorf("there should be a whole number, not %s", kind(e.value))
}

// text reads a string; folded and literal blocks are strings too.
func (e entry) text() (string, bool) {
	switch v := e.value.(type) {
	case *ast.StringNode:
		return v.Value, true
	case *ast.LiteralNode:
		if v.Value != nil {
			return v.Value.Value, true
		}
	}
	return "", false
}

// formula reads a number or a formula, and returns it as it was written too.
func (e entry) formula(in scope) (formula, string, error) {
	switch v := e.value.(type) {
	case *ast.IntegerNode, *ast.FloatNode:
		written := v.GetToken().Value
		value, err := strconv.ParseFloat(strings.ReplaceAll(written, "_", ""), 64)
		if i, ok := v.(*ast.IntegerNode); ok && err != nil { // 0x10, 0o17
			value, err = strconv.ParseFloat(fmt.Sprint(i.Value), 64)
		}
		if err != nil || !finite(value) {
			return formula{}, "", e.errorf("%s is not a finite number", written)
		}
		n := constant(value)
		return formula{constant: true, value: value, eval: n.eval}, written, nil
	case *ast.InfinityNode, *ast.NanNode:
		return formula{}, "", e.errorf("%s is not a finite number", v.GetToken().Value)
	}
	written, ok := e.text()
	if !ok {
		return formula{}, "", e.errorf("there should be a number or a formula, not %s", kind(e.value))
	}
	written = strings.TrimSpace(written)
	f, err := parseFormula(written, in)
	if err != nil {
		var p *positioned
		if errors.As(err, &p) {
			return formula{}, "", e.errorf("%s, at character %d of %q", p.reason, p.at+1, shorten(written))
		}
		return formula{}, "", e.errorf("%s", err)
	}
	return f, written, nil
}

// number reads a number or a formula without coordinates, such as 2*pi.
func (e entry) number() (float64, error) {
	f, written, err := e.formula(scope{})
	if err != nil {
		return 0, err
	}
	if !f.constant {
		return 0, e.errorf("there should be a number, not %q", shorten(written))
	}
	return f.value, nil
}

func shorten(s string) string {
	const most = 120
	if runes := []rune(s); len(runes) > most {
		return string(runes[:most]) + "…"
	}
	return s
}

// kind says what a value is in words.
func kind(n ast.Node) string {
	switch n := n.(type) {
	case nil, *ast.NullNode:
		return "nothing"
	case *ast.MappingNode:
		return "a mapping"
	case *ast.SequenceNode:
		return "a list"
	case *ast.StringNode:
		return strconv.Quote(shorten(n.Value))
	case *ast.AnchorNode, *ast.AliasNode, *ast.TagNode, *ast.MergeKeyNode:
		return "a YAML anchor, alias or tag, which problem files do not use"
	}
	return shorten(n.GetToken().Value)
}
