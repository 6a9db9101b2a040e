package tidy

import (
	"go/ast"
	"go/types"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	code      = regexp.MustCompile("`([^`\n]+)`")
	mention   = regexp.MustCompile(`(?:^|[^\w./-])([a-z][a-z0-9]*)\.([A-Z]\w*)(?:\.([A-Z]\w*))?`)
	goCommand = regexp.MustCompile(`\bgo (?:run|test|build|vet) (?:-[a-z]+ )*(\.[\w./-]*)([^#&|;]*)`)
	runFlag   = regexp.MustCompile(`-run '?(\w+)`)
	target    = regexp.MustCompile(`(?:^|&& )make ([a-z][a-z0-9-]*)`)
	rule      = regexp.MustCompile(`(?m)^([a-z][a-z0-9 -]*):`)
)

// TestMentions checks what Markdown files name in code: identifiers of this module's packages (driver.Node.Listen),
// packages and tests of go commands, and targets of make.
func TestMentions(t *testing.T) {
	tree := projectTree(t)
	packages, names, tests := declared(tree)
	var targets []string
	for _, m := range rule.FindAllStringSubmatch(string(page(t, tree, "Makefile").text), -1) {
		targets = append(targets, strings.Fields(m[1])...)
	}
	for _, f := range tree.files {
		if path.Ext(f.name) != ".md" || f.name == "CHANGELOG.md" { // which names what a version had
			continue
		}
		spans, lines := codeOf(string(f.text))
		for _, text := range spans { // internal/doctest compiles the blocks
			for _, m := range mention.FindAllStringSubmatch(text, -1) {
				whole := m[1] + "." + m[2]
				if packages[m[1]] && !names[whole] {
					t.Errorf("%s: %s does not exist", f.name, whole)
				} else if packages[m[1]] && m[3] != "" && !names[m[1]+".*."+m[3]] {
					t.Errorf("%s: %s.%s does not exist", f.name, whole, m[3])
				}
			}
		}
		for _, text := range append(lines, spans...) {
			for _, m := range goCommand.FindAllStringSubmatch(text, -1) {
				checkGo(t, tree, f, m[1], m[2], tests)
			}
			for _, m := range target.FindAllStringSubmatch(text, -1) {
				if !slices.Contains(targets, m[1]) {
					t.Errorf("%s: make %s: the Makefile has no such target", f.name, m[1])
				}
			}
		}
	}
}

// codeOf returns the code spans and the lines of the fenced blocks of a Markdown file.
func codeOf(text string) (spans, lines []string) {
	for _, b := range fenced.FindAllString(text, -1) {
		lines = append(lines, strings.Split(b, "\n")...)
	}
	for _, m := range code.FindAllStringSubmatch(fenced.ReplaceAllString(text, ""), -1) {
		spans = append(spans, m[1])
	}
	return spans, lines
}

// checkGo checks the package of a go command, and that -run selects a test of it.
func checkGo(t *testing.T, tree *tree, f *file, pkg, flags string, tests map[string][]string) {
	dir := path.Clean(strings.TrimSuffix(pkg, "..."))
	if _, err := os.Stat(filepath.Join(tree.root, filepath.FromSlash(dir))); err != nil {
		if strings.HasPrefix(f.name, "docs/new-") {
			return // a package that the guide makes
		}
		t.Errorf("%s: package %s does not exist", f.name, pkg)
		return
	}
	if m := runFlag.FindStringSubmatch(flags); m != nil && dir != "." {
		if !slices.ContainsFunc(tests[dir], func(name string) bool { return strings.Contains(name, m[1]) }) {
			t.Errorf("%s: %s has no test %s", f.name, pkg, m[1])
		}
	}
}

// declared returns the names of this module's packages, what they export (pkg.Name, and pkg.*.Name of methods and
// fields of any type), and the tests of each folder.
func declared(tree *tree) (packages, names map[string]bool, tests map[string][]string) {
	packages, names, tests = map[string]bool{}, map[string]bool{}, map[string][]string{}
	for _, f := range tree.goFiles(true) {
		pkg := strings.TrimSuffix(f.syntax.Name.Name, "_test")
		packages[pkg] = true
		ast.Inspect(f.syntax, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.FuncDecl:
				if strings.HasPrefix(n.Name.Name, "Test") || strings.HasPrefix(n.Name.Name, "Benchmark") {
					tests[f.dir] = append(tests[f.dir], n.Name.Name)
				}
				if n.Recv != nil {
					names[pkg+".*."+n.Name.Name] = true
				} else {
					names[pkg+"."+n.Name.Name] = true
				}
				return false
			case *ast.TypeSpec:
				names[pkg+"."+n.Name.Name] = true
			case *ast.ValueSpec:
				for _, name := range n.Names {
					names[pkg+"."+name.Name] = true
				}
			case *ast.Field:
				for _, name := range n.Names {
					names[pkg+".*."+name.Name] = true
				}
				if len(n.Names) == 0 { // embedded
					e := types.ExprString(n.Type)
					names[pkg+".*."+e[strings.LastIndexAny(e, ".*")+1:]] = true
				}
			}
			return true
		})
	}
	return packages, names, tests
}
