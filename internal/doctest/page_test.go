package doctest

import (
	"cmp"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// root is the directory of the module.
var root = filepath.Join("..", "..")

// block is a fenced block of a page.
type block struct {
	page     string // slash-separated, relative to root
	line     int    // of the opening fence
	language string
	name     string // of the file that the block is
	text     string
	notes    map[string]string // the comments before it, by their first words
}

func (b *block) String() string { return fmt.Sprintf("%s:%d", b.page, b.line) }

// left returns why the block is not run, or "".
func (b *block) left() string {
	if why := b.notes["not run"]; why != "" {
		return why
	}
	if why := b.notes["long"]; why != "" && !*long {
		return "only with -long: " + why
	}
	if p := b.notes["needs"]; p != "" && !installed(p) {
		return p + " is not installed"
	}
	return ""
}

var note = regexp.MustCompile(`(?s)<!-- (run|given|needs|long|not run): (.*?) -->\n`)

// notesBefore returns the comments that end where a fence begins.
func notesBefore(text string) map[string]string {
	out := map[string]string{}
	for {
		all := note.FindAllStringSubmatchIndex(text, -1)
		if len(all) == 0 || all[len(all)-1][1] != len(text) {
			return out
		}
		m := all[len(all)-1]
		out[text[m[2]:m[3]]] = strings.TrimSpace(text[m[4]:m[5]])
		text = text[:m[0]]
	}
}

var rows = regexp.MustCompile(`(?m)(?:^\|.*\n)+`)

var fence = regexp.MustCompile("(?ms)^```([^\n`]*)\n(.*?)^```$")

// blocks returns the fenced blocks of a page, and the tables with a comment before them.
func blocks(page, text string) (out []*block) {
	for _, m := range fence.FindAllStringSubmatchIndex(text, -1) {
		b := &block{
			page: page, line: 1 + strings.Count(text[:m[0]], "\n"), text: text[m[4]:m[5]],
			notes: notesBefore(text[:m[0]]),
		}
		b.language, b.name, _ = strings.Cut(text[m[2]:m[3]], " ")
		out = append(out, b)
	}
	for _, m := range rows.FindAllStringIndex(text, -1) {
		b := &block{
			page: page, line: 1 + strings.Count(text[:m[0]], "\n"), language: "table", text: text[m[0]:m[1]],
			notes: notesBefore(text[:m[0]]),
		}
		if len(b.notes) > 0 {
			out = append(out, b)
		}
	}
	slices.SortStableFunc(out, func(a, b *block) int { return cmp.Compare(a.line, b.line) })
	return out
}

// pages returns the blocks of every Markdown file that has some.
func pages(t *testing.T) map[string][]*block {
	out := map[string][]*block{}
	require.NoError(t, filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && name != root && (d.Name() == "testdata" || strings.HasPrefix(d.Name(), ".")):
			return fs.SkipDir
		case filepath.Ext(name) != ".md":
			return nil
		}
		text, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		page, err := filepath.Rel(root, name)
		if err != nil {
			return err
		}
		page = filepath.ToSlash(page)
		if found := blocks(page, string(text)); len(found) > 0 {
			out[page] = found
		}
		if n := strings.Count("\n"+string(text), "\n```"); n != 2*len(fence.FindAllString(string(text), -1)) {
			return fmt.Errorf("%s: %d lines begin with a fence, which do not make pairs", page, n)
		}
		return nil
	}))
	require.Contains(t, out, "README.md")
	return out
}

func TestBlocksOfAPage(t *testing.T) {
	got := blocks("a.md", "a\n<!-- given: x int -->\n```go\nx++\n```\n<!-- not run: a\nreason -->\n"+
		"<!-- needs: dot -->\n```sh\ndot\n```\n<!-- run: far away -->\n\n```yaml b.yaml\n```\n| a |\n<!-- run: x -->\n| b |\n")
	require.Equal(t, []*block{
		{page: "a.md", line: 3, language: "go", text: "x++\n", notes: map[string]string{"given": "x int"}},
		{page: "a.md", line: 9, language: "sh", text: "dot\n", notes: map[string]string{
			"not run": "a\nreason", "needs": "dot",
		}},
		{page: "a.md", line: 14, language: "yaml", name: "b.yaml", notes: map[string]string{}},
		{page: "a.md", line: 18, language: "table", text: "| b |\n", notes: map[string]string{"run": "x"}},
	}, got)
	require.Equal(t, "a\nreason", got[1].left())
}
