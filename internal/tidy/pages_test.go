package tidy

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// The import table of docs/architecture.md lies between these two lines.
const (
	architecture = "docs/architecture.md"
	tableBegins  = "<!-- import table: begin -->\n"
	tableEnds    = "<!-- import table: end -->"
)

// TestImportTableInDocs compares the import table in docs/architecture.md with the table
// that the rules enforce. go test ./internal/tidy -update writes the document's copy.
func TestImportTableInDocs(t *testing.T) {
	name := filepath.Join("..", "..", filepath.FromSlash(architecture))
	text, err := os.ReadFile(name)
	require.NoError(t, err)
	before, rest, found := strings.Cut(string(text), tableBegins)
	require.True(t, found, "%s has no line %q", architecture, tableBegins)
	written, after, found := strings.Cut(rest, tableEnds)
	require.True(t, found, "%s has no line %q", architecture, tableEnds)
	if *update {
		require.NoError(t, os.WriteFile(name, []byte(before+tableBegins+renderTable()+tableEnds+after), 0o666))
		return
	}
	require.Equal(t, renderTable(), written, "run go test ./internal/tidy -update")
}

// renderTable returns the import table in Markdown.
func renderTable() string {
	var b strings.Builder
	b.WriteString("| package | core | may import, besides the standard library |\n|---|---|---|\n")
	for _, r := range table() {
		core, may := "", "nothing"
		if r.core {
			core = "yes"
		}
		switch {
		case r.anyMay:
			may = "anything"
		case len(r.may) > 0:
			may = "`" + strings.Join(r.may, "`, `") + "`"
		}
		b.WriteString("| `" + r.pkg + "` | " + core + " | " + may + " |\n")
	}
	return b.String()
}

// TestReadmeIsShort checks that README.md, without its comments, fits on one screen and a half.
func TestReadmeIsShort(t *testing.T) {
	text := string(page(t, projectTree(t), "README.md").text)
	require.LessOrEqual(t, strings.Count(text, "\n")-strings.Count(text, "\n<!--"), 90)
}

// project loads this repository once for all tests, which only read it.
var project = sync.OnceValues(func() (*tree, error) { return load(filepath.Join("..", "..")) })

func projectTree(t *testing.T) *tree {
	t.Helper()
	out, err := project()
	require.NoError(t, err)
	return out
}

func page(t *testing.T, tree *tree, name string) *file {
	t.Helper()
	for _, f := range tree.files {
		if f.name == name {
			return f
		}
	}
	require.Fail(t, "no file "+name)
	return nil
}
