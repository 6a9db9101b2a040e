package tidy

import (
	"go/ast"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var (
	node  = regexp.MustCompile(`(\w+)\[+([^\]:]+)`)
	arrow = regexp.MustCompile(`^\s*(\w+)[^-]* --> (\w+)`)
)

// TestDrawingOfRooms checks that every arrow of the drawing in docs/architecture.md is an
// import of the code.
func TestDrawingOfRooms(t *testing.T) {
	tree := projectTree(t)
	_, drawing, _ := strings.Cut(string(page(t, tree, architecture).text), "flowchart TD\n")
	drawing, _, _ = strings.Cut(drawing, "```")
	rooms := map[string][]string{}
	for _, m := range node.FindAllStringSubmatch(drawing, -1) {
		rooms[m[1]] = strings.Split(m[2], ", ")
	}
	lines := strings.Split(strings.TrimSpace(drawing), "\n")
	require.Greater(t, len(lines), 20)
	for _, l := range lines {
		m := arrow.FindStringSubmatch(l)
		require.NotNil(t, m, l)
		require.True(t, slices.ContainsFunc(rooms[m[1]], func(from string) bool {
			return slices.ContainsFunc(rooms[m[2]], func(to string) bool { return imports(tree, from, to) })
		}), "%s: no such import", l)
	}
}

// imports reports whether a package, or an internal package below it, imports another one.
func imports(tree *tree, from, to string) bool {
	return slices.ContainsFunc(tree.goFiles(false), func(f *file) bool {
		return (f.dir == from || strings.HasPrefix(f.dir, from+"/internal/")) &&
			slices.ContainsFunc(f.syntax.Imports, func(i *ast.ImportSpec) bool {
				return strings.Trim(i.Path.Value, `"`) == tree.module+"/"+to
			})
	})
}
