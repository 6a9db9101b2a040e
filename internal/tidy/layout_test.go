package tidy

import (
	"errors"
	"fmt"
	"go/ast"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// maxLines is the maximum number of lines of a file that is not generated.
const maxLines = 500

// topLevel are the folders that the root may hold.
var topLevel = []string{
	".ci", ".github", "bench", "cmd", "deploy", "docs", "ether", "examples", "experiments",
	"ib", "internal", "microproto", "obstacle", "p2psap", "problems", "release", "shm", "simulate", "solver",
	"stream", "trace",
}

// topFiles are the files that the root may hold, besides those that .gitignore names by suffix or name. .git is a file
// in a further worktree.
var topFiles = []string{
	".dockerignore", ".git", ".gitignore", ".golangci.yml", "CHANGELOG.md", "CONTRIBUTING.md", "Dockerfile", "LICENSE",
	"Makefile", "README.md", "SECURITY.md", "go.mod", "go.sum",
}

// checkRoot reports files at the root that have no place there, such as an output of a run that was committed.
func checkRoot(t *tree) (out []Finding, err error) {
	entries, err := os.ReadDir(t.root)
	if err != nil {
		return nil, err
	}
	text, err := os.ReadFile(filepath.Join(t.root, ".gitignore"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	ignored := strings.Fields(string(text))
	for _, e := range entries {
		name := e.Name()
		is := func(pattern string) bool {
			match, err := path.Match(strings.TrimPrefix(pattern, "/"), name)
			return match && err == nil
		}
		if !e.IsDir() && !slices.Contains(topFiles, name) && !slices.ContainsFunc(ignored, is) {
			what := "the root has no such file (topFiles in internal/tidy/layout_test.go)"
			out = append(out, Finding{"layout", name, 1, what})
		}
	}
	return out, nil
}

// vague lists package names that do not describe a package.
var vague = []string{"base", "common", "helper", "helpers", "manager", "misc", "shared", "util", "utils"}

func checkLayout(t *tree) []Finding {
	var out []Finding
	for _, f := range t.files {
		if top, _, below := strings.Cut(f.name, "/"); below && !slices.Contains(topLevel, top) {
			what := "the root has no folder " + top + " (topLevel in internal/tidy/layout_test.go)"
			out = append(out, Finding{"layout", f.name, 1, what})
		}
	}
	for _, f := range t.goFiles(true) {
		name := strings.TrimSuffix(f.syntax.Name.Name, "_test")
		if slices.Contains(vague, name) {
			what := "package " + name + ": name a package after its contents"
			out = append(out, Finding{"layout", f.name, t.line(f.syntax.Name.Pos()), what})
		}
		for _, d := range f.syntax.Decls {
			if fn, is := d.(*ast.FuncDecl); is && fn.Recv == nil && fn.Name.Name == "init" {
				out = append(out, Finding{"layout", f.name, t.line(fn.Pos()), "func init: call it from main"})
			}
		}
	}
	return out
}

// clocks maps functions that a test may not call to their replacements, because every
// bound in time is too short on a busy machine. Files that use testing/synctest have
// virtual time, and benchmarks measure time; both may call them.
var clocks = map[string]string{
	"time.Sleep": "wait for a condition (internal/await)", "time.Now": readsClock, "time.Since": readsClock,
	"time.Until": readsClock, "time.After": boundsWait,
	"context.WithTimeout": boundsWait, "context.WithDeadline": boundsWait,
	"require.Eventually": boundsWait, "require.EventuallyWithT": boundsWait, "require.Never": boundsWait,
	"assert.Eventually": boundsWait, "assert.EventuallyWithT": boundsWait, "assert.Never": boundsWait,
}

const (
	readsClock = "count instead, use virtual time, or measure in a benchmark"
	boundsWait = "use internal/await, cancel the context, or use virtual time"
)

// clockFiles maps files that may use the clock to the reason.
var clockFiles = map[string]string{
	"microproto/mptest/conform_test.go": "tests that a micro-protocol that reads the clock is detected",
}

// checkTests reports uses of the wall clock in tests.
func checkTests(t *tree) []Finding {
	var out []Finding
	for _, f := range t.goFiles(true) {
		if !f.test() || clockFiles[f.name] != "" || importsSynctest(f.syntax) {
			continue
		}
		ast.Inspect(f.syntax, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.FuncDecl:
				return !strings.HasPrefix(n.Name.Name, "Benchmark")
			case *ast.SelectorExpr:
				if name := qualified(n); clocks[name] != "" {
					out = append(out, Finding{"layout", f.name, t.line(n.Pos()), name + " in a test: " + clocks[name]})
				}
			}
			return true
		})
	}
	return out
}

func importsSynctest(f *ast.File) bool {
	return slices.ContainsFunc(f.Imports, func(i *ast.ImportSpec) bool { return i.Path.Value == `"testing/synctest"` })
}

// qualified returns an expression of the form package.Name, otherwise an empty text.
func qualified(e ast.Expr) string {
	if sel, is := e.(*ast.SelectorExpr); is {
		if x, is := sel.X.(*ast.Ident); is {
			return x.Name + "." + sel.Sel.Name
		}
	}
	return ""
}

func checkLength(t *tree) []Finding {
	var out []Finding
	for _, f := range t.files {
		if f.syntax == nil || f.generated() {
			continue
		}
		if n := strings.Count(string(f.text), "\n"); n > maxLines {
			what := fmt.Sprintf("%d lines; the longest may have %d", n, maxLines)
			out = append(out, Finding{"length", f.name, maxLines + 1, what})
		}
	}
	return out
}

// The words are concatenated so that this file passes its own rule.
var (
	later   = regexp.MustCompile(`\b(` + "TO" + `DO|FIX` + `ME|XX` + `X)\b`)
	machine = regexp.MustCompile("(^|[\\s\"'`(=:])/(home|root|work)/")
)

// checkText checks every text file: no comment postpones work, and no path of a
// particular machine is written down.
func checkText(t *tree) []Finding {
	var out []Finding
	for _, f := range t.files {
		for i, l := range strings.Split(string(f.text), "\n") {
			if later.MatchString(l) {
				out = append(out, Finding{"text", f.name, i + 1, "postponed work: do it, or open an issue"})
			}
			if machine.MatchString(l) {
				out = append(out, Finding{"text", f.name, i + 1, "a path of one machine"})
			}
		}
	}
	return out
}
