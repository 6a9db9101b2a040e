// Package yamldoc reads YAML documents of a known structure. Errors in a document are of type *Error, with
// the file, the line, the key and the reason.
package yamldoc

import (
	"bytes"
	"errors"
	"unicode"
	"unicode/utf8"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
)

// maxDepth bounds the nesting of brackets. Valid documents need three levels.
const maxDepth = 32

// Parse returns the value of a text of at most most bytes with one document. Error messages contain the name
// file and the description what, for example "problem file".
func Parse(file, what string, text []byte, most int) (ast.Node, error) {
	whole := Source{File: file}
	if len(text) > most {
		return nil, whole.Errorf("the %s has %d bytes, more than the %d allowed", what, len(text), most)
	}
	text = bytes.TrimPrefix(text, []byte("\xef\xbb\xbf")) // a byte order mark
	text = bytes.ReplaceAll(text, []byte("\r\n"), []byte("\n"))
	if line := invalidText(text); line > 0 {
		whole.Line = line
		return nil, whole.Errorf("a %s is UTF-8 text without control characters", what)
	}
	if line := tooDeep(text); line > 0 {
		whole.Line = line
		return nil, whole.Errorf("brackets are nested more than %d deep", maxDepth)
	}
	tree, err := parser.ParseBytes(text, 0)
	if err != nil {
		var located yaml.Error
		if errors.As(err, &located) {
			if at := located.GetToken(); at != nil && at.Position != nil {
				whole.Line = at.Position.Line
			}
			return nil, whole.Errorf("this is not YAML: %s", located.GetMessage())
		}
		return nil, whole.Errorf("this is not YAML: %v", err)
	}
	if len(tree.Docs) == 0 || tree.Docs[0].Body == nil {
		return nil, whole.Errorf("the %s is empty", what)
	}
	if len(tree.Docs) > 1 {
		whole.Line = LineOf(tree.Docs[1].Body, 0)
		return nil, whole.Errorf("a %s holds one document", what)
	}
	return tree.Docs[0].Body, nil
}

// invalidText returns the line of the first byte that is not UTF-8 text, or 0. Control characters are invalid,
// including lone carriage returns, which take the YAML parser quadratic time.
func invalidText(text []byte) int {
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

// tooDeep returns the line on which brackets or block marks are nested too deeply for the recursive YAML
// parser, or 0.
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
