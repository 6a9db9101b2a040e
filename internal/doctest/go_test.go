package doctest

import (
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// standard lists the packages of the standard library that blocks may use. Imports are added, as those of this module.
var standard = []string{"context", "errors", "fmt", "os", "time"}

// compile compiles the Go blocks of a page that are not files, as packages of this module.
func compile(t *testing.T, page []*block) {
	dir := t.TempDir()
	overlay := map[string]string{}
	args := []string{"build", "-overlay", filepath.Join(dir, "overlay.json")}
	for _, b := range page {
		if b.language == "go" && b.name == "" && b.left() == "" {
			folder := fmt.Sprintf("internal/doctest/block%d", b.line)
			name, err := filepath.Abs(filepath.Join(root, filepath.FromSlash(folder), "block.go"))
			require.NoError(t, err)
			overlay[name] = filepath.Join(dir, fmt.Sprintf("%d.go", b.line))
			require.NoError(t, os.WriteFile(overlay[name], []byte(whole(t, b)), 0o600))
			args = append(args, "./"+folder)
		}
	}
	if len(overlay) == 0 {
		return
	}
	text, err := json.Marshal(map[string]any{"Replace": overlay})
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "overlay.json"), text, 0o600))
	c := exec.CommandContext(t.Context(), "go", args...)
	c.Dir = root
	out, err := c.CombinedOutput()
	require.NoError(t, err, "%s: %s", page[0].page, out)
}

// whole returns the source of a block with the imports that it needs, and with a use of each variable that it declares.
// The lines are those of the page.
func whole(t *testing.T, b *block) string {
	f, err := parser.ParseFile(token.NewFileSet(), b.String(), b.source(), 0)
	require.NoError(t, err)
	named, err := ours()
	require.NoError(t, err)
	unresolved := map[string]bool{}
	for _, id := range f.Unresolved {
		unresolved[id.Name] = true
	}
	var imports, uses strings.Builder
	for _, name := range slices.Sorted(maps.Keys(unresolved)) {
		p := named[name]
		if slices.Contains(standard, name) {
			p = name
		}
		if p != "" {
			imports.WriteString("import \"" + p + "\"; ")
		}
	}
	for _, s := range f.Decls[0].(*ast.FuncDecl).Body.List {
		if a, is := s.(*ast.AssignStmt); is && a.Tok == token.DEFINE {
			for _, x := range a.Lhs {
				if name := x.(*ast.Ident).Name; name != "_" {
					uses.WriteString("_ = " + name + "; ")
				}
			}
		}
	}
	text := strings.TrimSuffix(strings.TrimPrefix(b.source(), "package p\n"), "}\n")
	return "package p; " + imports.String() + fmt.Sprintf("\n//line %s:%d\n", b.page, b.line) +
		strings.TrimPrefix(text, "\n") + uses.String() + "}\n"
}

// ours returns the paths of this module's packages by their names: the shortest of one name.
var ours = sync.OnceValues(func() (map[string]string, error) {
	c := exec.Command("go", "list", "-f", "{{.Name}} {{.ImportPath}}", "./...")
	c.Dir = root
	text, err := c.Output()
	out := map[string]string{}
	for line := range strings.Lines(string(text)) {
		name, p, _ := strings.Cut(strings.TrimSpace(line), " ")
		if old := out[name]; old == "" || len(p) < len(old) {
			out[name] = p
		}
	}
	return out, err
})
