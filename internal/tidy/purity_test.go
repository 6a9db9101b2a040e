package tidy

import (
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/tools/go/packages"
)

// coreStandard lists the packages of the standard library that the core may use:
// those that only compute. The function refused excludes some of their functions.
var coreStandard = []string{
	"bytes", "cmp", "context", "container/heap", "crypto/aes", "crypto/cipher", "crypto/hkdf", "crypto/sha256",
	"embed", "encoding/binary", "errors", "fmt", "hash/crc32", "hash/fnv", "iter", "maps",
	"math", "math/big", "math/bits", "math/rand/v2", "net/netip", "reflect", "runtime", "slices", "sort", "strconv", "strings",
	"time", "unicode", "unicode/utf8", "unsafe",
}

// atomicFiles lists the files that may use sync/atomic, to count references to frames
// that are shared with a link, which has goroutines.
var atomicFiles = []string{"microproto/link.go"}

// decisions lists the files of packages of the shell that only decide, by folder. They are held to the rules of the core,
// and use nothing that other files of their package declare, but for the settings in plan.go.
var decisions = map[string][]string{
	"obstacle/internal/launch": {
		"beginning.go", "capture.go", "change.go", "effect.go", "ends.go", "enroll.go", "expel.go", "join.go", "keepers.go", "launch.go",
		"member.go", "move.go", "ownership.go", "recover.go", "recut.go", "replace.go", "resume.go", "roster.go",
		"sample.go", "silence.go", "state.go", "takeover.go", "workload.go",
	},
	"obstacle/internal/member": {"effect.go", "entering.go", "member.go", "search.go", "series.go", "working.go"},
}

// settingsFile names the file whose declarations decisions may use, too.
const settingsFile = "plan.go"

// shellModules lists modules that decisions may not import: they print, or keep state.
var shellModules = []string{"github.com/rs/zerolog", "obstacle/internal/keep", "p2psap/driver"}

// refused reports whether a function reads a clock, the global random source or the state of the process, or prints.
func refused(pkg, name string) bool {
	switch pkg {
	case "time":
		return slices.Contains([]string{"Now", "Sleep", "After", "AfterFunc", "Since", "Until", "Tick",
			"NewTimer", "NewTicker", "LoadLocation"}, name)
	case "math/rand/v2":
		return !slices.Contains([]string{"New", "NewPCG", "NewChaCha8", "NewZipf"}, name)
	case "fmt":
		return strings.HasPrefix(name, "Print") || strings.HasPrefix(name, "Scan")
	case "runtime":
		return name != "Callers" && name != "CallersFrames" // the place of a panic
	case "context":
		return strings.HasPrefix(name, "With") && name != "WithValue"
	}
	return false
}

// checkPurity type-checks the core packages and walks their files.
func checkPurity(t *tree) ([]Finding, error) {
	var patterns []string
	for _, f := range t.goFiles(false) {
		if r, known := rowOf(f.dir); known && (r.core || decisions[f.dir] != nil) && !slices.Contains(patterns, "./"+f.dir) {
			patterns = append(patterns, "./"+f.dir)
		}
	}
	if len(patterns) == 0 {
		return nil, nil
	}
	pkgs, err := packages.Load(&packages.Config{ // without NeedDeps, which would check the source of all they import
		Mode: packages.NeedName | packages.NeedFiles | packages.NeedSyntax | packages.NeedTypes |
			packages.NeedTypesInfo | packages.NeedImports,
		Dir: t.root,
	}, patterns...)
	if err != nil {
		return nil, fmt.Errorf("loading the core packages: %w", err)
	}
	var out []Finding
	for _, p := range pkgs {
		if len(p.Errors) > 0 {
			name := strings.TrimPrefix(p.PkgPath, t.module+"/")
			out = append(out, Finding{"purity", name, 0, "does not compile: " + p.Errors[0].Error()})
			continue
		}
		w := &walker{tree: t, pkg: p, written: map[*types.Var]token.Pos{}}
		if files := decisions[strings.TrimPrefix(p.PkgPath, t.module+"/")]; files != nil {
			w.decisions(files)
			out = append(out, w.found...)
			continue
		}
		for _, f := range p.Syntax {
			w.file(f)
		}
		w.variables()
		out = append(out, w.found...)
	}
	return out, nil
}

// walker checks one core package.
type walker struct {
	tree    *tree
	pkg     *packages.Package
	name    string
	written map[*types.Var]token.Pos // package variables written by a function
	found   []Finding
}

func (w *walker) say(p token.Pos, format string, args ...any) {
	at := w.pkg.Fset.Position(p)
	w.found = append(w.found, Finding{"purity", w.relative(at.Filename), at.Line, fmt.Sprintf(format, args...)})
}

func (w *walker) relative(name string) string {
	rel, err := filepath.Rel(w.tree.root, name)
	if err != nil {
		return name
	}
	return filepath.ToSlash(rel)
}

func (w *walker) file(f *ast.File) {
	w.name = w.relative(w.pkg.Fset.Position(f.Pos()).Filename)
	for _, spec := range f.Imports {
		name := strings.Trim(spec.Path.Value, `"`)
		atomic := name == "sync/atomic" && slices.Contains(atomicFiles, w.name)
		if standard(name) && !atomic && !slices.Contains(coreStandard, name) {
			w.say(spec.Pos(), "the core may not import %s", name)
		}
	}
	ast.Inspect(f, w.node)
}

// decisions checks the files of a package that only decide.
func (w *walker) decisions(files []string) {
	left := slices.Clone(files)
	for _, f := range w.pkg.Syntax {
		name := filepath.Base(w.pkg.Fset.Position(f.Pos()).Filename)
		if i := slices.Index(left, name); i >= 0 {
			left = slices.Delete(left, i, i+1)
			w.file(f)
			w.closed(f, files)
		}
	}
	if len(left) > 0 {
		w.found = append(w.found, Finding{"purity", strings.TrimPrefix(w.pkg.PkgPath, w.tree.module+"/"), 0,
			"listed as files of decisions, but missing: " + strings.Join(left, ", ")})
	}
}

// closed checks that a file uses nothing of its package that other files than those of decisions declare.
func (w *walker) closed(f *ast.File, files []string) {
	for _, spec := range f.Imports {
		name := strings.TrimPrefix(strings.Trim(spec.Path.Value, `"`), w.tree.module+"/")
		if slices.Contains(shellModules, name) {
			w.say(spec.Pos(), "decisions may not import %s", name)
		}
	}
	ast.Inspect(f, func(n ast.Node) bool {
		id, is := n.(*ast.Ident)
		if !is {
			return true
		}
		o := w.pkg.TypesInfo.Uses[id]
		if o == nil || o.Pkg() != w.pkg.Types {
			return true
		}
		declared := filepath.Base(w.pkg.Fset.Position(o.Pos()).Filename)
		if declared != settingsFile && !slices.Contains(files, declared) {
			w.say(id.Pos(), "decisions use %s of %s", id.Name, declared)
		}
		return true
	})
}

func (w *walker) node(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.GoStmt:
		w.say(n.Pos(), "a goroutine in the core")
	case *ast.SelectStmt:
		w.say(n.Pos(), "select in the core")
	case *ast.ChanType:
		w.say(n.Pos(), "a channel in the core")
	case *ast.SendStmt:
		w.say(n.Pos(), "a channel in the core")
	case *ast.RangeStmt:
		if t := w.pkg.TypesInfo.TypeOf(n.X); t != nil {
			if _, is := t.Underlying().(*types.Map); is {
				w.say(n.Pos(), "range over a map, whose order changes from run to run: use slices.Sorted(maps.Keys(…))")
			}
		}
	case *ast.CallExpr:
		return w.call(n)
	case *ast.SelectorExpr:
		w.use(n)
	case *ast.AssignStmt:
		for _, l := range n.Lhs {
			w.write(l)
		}
	case *ast.IncDecStmt:
		w.write(n.X)
	case *ast.UnaryExpr:
		if n.Op == token.AND {
			w.write(n.X)
		}
		if n.Op == token.ARROW {
			w.say(n.Pos(), "a channel in the core")
		}
	}
	return true
}

// call checks a call. It allows maps.Keys and maps.Values inside slices.Sorted only.
func (w *walker) call(c *ast.CallExpr) bool {
	pkg, name := w.callee(c)
	if pkg == "slices" && strings.HasPrefix(name, "Sorted") && len(c.Args) > 0 {
		if inner, is := c.Args[0].(*ast.CallExpr); is {
			if p, _ := w.callee(inner); p == "maps" {
				for _, a := range append(inner.Args, c.Args[1:]...) {
					ast.Inspect(a, w.node)
				}
				return false
			}
		}
	}
	if pkg == "maps" && slices.Contains([]string{"Keys", "Values", "All"}, name) {
		w.say(c.Pos(), "maps.%s outside slices.Sorted: its order changes from run to run", name)
	}
	// A method on the address of a package variable may write it.
	if sel, is := c.Fun.(*ast.SelectorExpr); is {
		if s := w.pkg.TypesInfo.Selections[sel]; s != nil && s.Kind() == types.MethodVal {
			if f, is := s.Obj().(*types.Func); is && pointerReceiver(f) && !isPointer(s.Recv()) {
				w.write(sel.X)
			}
		}
	}
	return true
}

func (w *walker) callee(c *ast.CallExpr) (pkg, name string) {
	sel, is := c.Fun.(*ast.SelectorExpr)
	if !is {
		return "", ""
	}
	return w.object(sel)
}

// object returns the package and the name of the package-level object of a selector.
func (w *walker) object(sel *ast.SelectorExpr) (pkg, name string) {
	o := w.pkg.TypesInfo.Uses[sel.Sel]
	if o == nil || o.Pkg() == nil || o.Parent() != o.Pkg().Scope() {
		return "", ""
	}
	return o.Pkg().Path(), o.Name()
}

func (w *walker) use(sel *ast.SelectorExpr) {
	pkg, name := w.object(sel)
	if _, isFunc := w.pkg.TypesInfo.Uses[sel.Sel].(*types.Func); isFunc && refused(pkg, name) {
		w.say(sel.Pos(), "%s.%s in the core", pkg, name)
	}
}
