package tidy

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
)

// tree holds every file of the project, which the rules check.
type tree struct {
	root   string
	module string
	fset   *token.FileSet
	files  []*file
}

// file is one text file; syntax is nil if it is not Go.
type file struct {
	name   string // slash-separated, relative to the root
	dir    string // "." for the root
	text   []byte
	syntax *ast.File
}

func (f *file) test() bool { return strings.HasSuffix(f.name, "_test.go") }

func (f *file) generated() bool { return f.syntax != nil && ast.IsGenerated(f.syntax) }

func (t *tree) line(p token.Pos) int { return t.fset.Position(p).Line }

// goFiles lists the Go files, with or without tests.
func (t *tree) goFiles(tests bool) []*file {
	var out []*file
	for _, f := range t.files {
		if f.syntax != nil && (tests || !f.test()) {
			out = append(out, f)
		}
	}
	return out
}

var moduleLine = regexp.MustCompile(`(?m)^module\s+(\S+)`)

// load reads the tree below root, without testdata, .git and the outputs of builds.
func load(root string) (*tree, error) {
	mod, err := os.ReadFile(filepath.Join(root, "go.mod"))
	if err != nil {
		return nil, err
	}
	m := moduleLine.FindSubmatch(mod)
	if m == nil {
		return nil, fmt.Errorf("%s/go.mod names no module", root)
	}
	root, err = filepath.Abs(root)
	if err != nil {
		return nil, err
	}
	t := &tree{root: root, module: string(m[1]), fset: token.NewFileSet()}
	err = filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, name)
		if err != nil {
			return err
		}
		rel = filepath.ToSlash(rel)
		if d.IsDir() {
			switch {
			case d.Name() == "testdata", d.Name() == "bin", rel == ".git", rel == ".cache":
				return fs.SkipDir
			}
			return nil
		}
		if !d.Type().IsRegular() || !isText(rel) {
			return nil
		}
		return t.add(name, rel)
	})
	return t, err
}

func (t *tree) add(name, rel string) error {
	text, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	if bytes.IndexByte(text, 0) >= 0 {
		return nil
	}
	f := &file{name: rel, dir: path.Dir(rel), text: text}
	if strings.HasSuffix(rel, ".go") {
		f.syntax, err = parser.ParseFile(t.fset, rel, text, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return err
		}
	}
	t.files = append(t.files, f)
	return nil
}

func isText(name string) bool {
	switch path.Ext(name) {
	case ".go", ".md", ".s", ".c", ".h", ".yml", ".yaml", ".sh", ".txt", ".mod":
		return true
	}
	switch path.Base(name) {
	case "Makefile", "run", "LICENSE", ".gitignore":
		return true
	}
	return false
}
