package tidy

import (
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"
)

// row is one line of the import table. Packages of the module are written
// without its path; a trailing /... stands for the package and all below it.
type row struct {
	pkg    string
	may    []string
	core   bool // held to the rules of purity
	anyMay bool // may import every module of go.mod
}

// Modules by the names that the table uses.
const (
	rapid   = "pgregory.net/rapid"
	testify = "github.com/stretchr/testify/..."
	xsys    = "golang.org/x/sys/..."
	xnet    = "golang.org/x/net/..."
	gonum   = "gonum.org/v1/gonum/..."
	plot    = "gonum.org/v1/plot/..."
	cpuid   = "github.com/klauspost/cpuid/v2"
	avo     = "github.com/mmcloughlin/avo/..."
	expr    = "github.com/expr-lang/expr/..."
	goyaml  = "github.com/goccy/go-yaml/..."
	netlink = "github.com/vishvananda/netlink/..."
	mpb     = "github.com/vbauerster/mpb/v8/..."
	netns   = "github.com/vishvananda/netns"
	rdmamap = "github.com/Mellanox/rdmamap"
	purego  = "github.com/ebitengine/purego/..."
)

// table returns the imports that each package may have besides the standard library.
// Tests may import what they need. A package without a row is refused, so that every
// new package gets one. docs/architecture.md has a copy of the table; go test
// ./internal/tidy -update writes it.
func table() []row {
	return []row{
		{pkg: "internal/fifo", core: true},
		{pkg: "trace", core: true},
		{pkg: "microproto", core: true, may: []string{"internal/fifo", "trace"}},
		{pkg: "internal/deadlines", core: true, may: []string{"microproto"}},
		{pkg: "microproto/ctp", core: true, may: []string{"internal/fifo", "microproto", "trace"}},
		{pkg: "p2psap/internal/seal", core: true, may: []string{"microproto"}},
		{pkg: "microproto/mptest", may: []string{"internal/await", "microproto", rapid, testify}},
		{pkg: "p2psap/path", core: true, may: []string{"microproto"}},
		{pkg: "p2psap/internal/control", core: true, may: []string{"microproto", "p2psap/path"}},
		{pkg: "p2psap/internal/rail", core: true, may: []string{
			"microproto", "p2psap/path", "p2psap/internal/control",
		}},
		{pkg: "p2psap", core: true, may: []string{
			"internal/deadlines", "internal/fifo", "microproto", "p2psap/internal/seal", "p2psap/path",
			"p2psap/internal/control", "p2psap/internal/rail", "trace",
		}},
		{pkg: "p2psap/driver", may: []string{"p2psap", "microproto", "trace", xsys}},
		{pkg: "ether/internal/route", core: true},
		{pkg: "internal/readiness", may: []string{xsys}},
		{pkg: "internal/buffers", may: []string{"microproto"}},
		{pkg: "ether", may: []string{
			"ether/internal/route", "microproto", "internal/buffers", "internal/readiness", xsys, xnet,
		}},
		{pkg: "ib", may: []string{
			"microproto", "internal/buffers", "internal/fifo", "ib/internal/verbs/...", rdmamap, xsys,
		}},
		{pkg: "shm", may: []string{"microproto", "internal/buffers", xsys}},
		{pkg: "stream", may: []string{"microproto", "internal/buffers", "internal/readiness", xsys}},
		{pkg: "ib/internal/verbs/...", may: []string{"ib/internal/verbs", xsys, purego}},
		{pkg: "internal/kernel", core: true, may: []string{cpuid}},
		{pkg: "internal/kernel/...", may: []string{avo, "internal/kernel"}}, // generators of its assembly
		{pkg: "solver/iterate", core: true, may: []string{"internal/kernel"}},
		{pkg: "solver/iterate/iteratetest", may: []string{"solver/iterate"}},
		{pkg: "solver/method", core: true, may: []string{"internal/kernel", gonum}},
		{pkg: "solver/problem", core: true, may: []string{
			"internal/kernel", "solver/iterate", "solver/method", gonum,
		}},
		{pkg: "solver/verify", core: true, may: []string{
			"internal/kernel", "solver/iterate", "solver/problem", gonum,
		}},
		{pkg: "solver/richardson", core: true, may: []string{"internal/kernel", "solver/iterate", "solver/problem"}},
		{pkg: "solver/multilevel", core: true, may: []string{
			"internal/kernel", "solver/iterate", "solver/method", "solver/problem",
		}},
		{pkg: "solver/fixedpoint", core: true, may: []string{"solver/iterate", "solver/problem"}},
		{pkg: "solver/schwarz", core: true, may: []string{
			"internal/kernel", "solver/iterate", "solver/method", "solver/problem",
		}},
		{pkg: "solver/fas", core: true, may: []string{
			"internal/kernel", "solver/iterate", "solver/method", "solver/problem",
		}},
		{pkg: "internal/repair", core: true, may: []string{
			"internal/kernel", "solver/iterate", "solver/problem", "solver/verify",
		}},
		{pkg: "internal/buddy", core: true, may: []string{"solver/iterate"}},
		{pkg: "internal/placement", core: true},
		{pkg: "internal/solvertest", may: []string{
			"internal/kernel", "solver/iterate", "solver/iterate/iteratetest", "solver/problem", gonum, rapid,
			testify,
		}},
		{pkg: "internal/exchange", core: true, may: []string{"solver/iterate", "p2psap", "microproto"}},
		{pkg: "solver/runner", may: []string{
			"internal/exchange", "solver/iterate", "solver/problem", "p2psap", "microproto", "trace",
		}},
		{pkg: "solver", may: []string{"ether", "internal/kernel", "microproto/...", "p2psap/...", "solver/..."}},
		{pkg: "problems", core: true, may: []string{
			"internal/spelling", "problems/option", "solver/iterate", "solver/problem", "internal/kernel", gonum,
		}},
		{pkg: "problems/option", core: true, may: []string{
			"solver/iterate", "solver/multilevel", "solver/problem", gonum,
		}},
		{pkg: "problems/file", may: []string{
			"problems", "problems/option", "solver/problem", "solver/verify", "internal/kernel", gonum, expr, goyaml,
			"internal/input", "internal/npy", "internal/output", "internal/yamldoc", "internal/spelling",
		}},
		{pkg: "simulate", may: []string{
			"internal/deadlines", "internal/virtual", "simulate/cluster", "simulate/internal/keepers", "microproto",
			"microproto/ctp", "p2psap", "solver", "solver/...", "trace",
			"internal/buddy", "internal/exchange", "internal/placement", "internal/repair",
		}},
		{pkg: "simulate/internal/keepers", core: true, may: []string{"internal/register"}},
		{pkg: "internal/sim", may: []string{
			"internal/exchange", "internal/virtual", "microproto/...", "p2psap", "solver", "solver/...",
		}},
		{pkg: "simulate/cluster", core: true, may: []string{gonum}},
		{pkg: "internal/calibration", may: []string{
			"simulate/cluster", "solver", "solver/...", "microproto", "microproto/ctp", "p2psap",
			"p2psap/driver", "ether", gonum,
		}},
		{pkg: "simulate/cluster/file", may: []string{
			"simulate/cluster", "internal/input", "internal/yamldoc", "internal/spelling", goyaml,
		}},
		{pkg: "internal/await"},
		{pkg: "internal/register", core: true},
		{pkg: "internal/input"},
		{pkg: "internal/progress", may: []string{mpb}},
		{pkg: "internal/spelling", core: true},
		{pkg: "internal/yamldoc", may: []string{"internal/spelling", goyaml}},
		{pkg: "internal/virtual", may: []string{"internal/exchange", "microproto", "trace", "p2psap", "solver", "solver/..."}},
		{pkg: "internal/npy"},
		{pkg: "internal/netlab", may: []string{"internal/fifo", netlink, netns, xsys}},
		{pkg: "internal/netlab/flow", may: []string{
			"internal/netlab", "microproto/...", "p2psap/...", "ether", xsys,
		}},
		{pkg: "internal/chart", may: []string{plot}},
		{pkg: "internal/output", may: []string{"solver/problem", plot, "internal/input", "internal/npy"}},
		{pkg: "internal/tidy"},
		{pkg: "internal/doctest"},
		{pkg: "cmd/obstacle", may: []string{"obstacle", "obstacle/catalog"}},
		{pkg: "obstacle", may: []string{"obstacle/..."}},
		{pkg: "obstacle/catalog", may: []string{
			"microproto/...", "p2psap", "problems", "solver", "solver/iterate", "stream", "internal/spelling",
		}},
		{pkg: "obstacle/internal/engine", core: true},
		{pkg: "obstacle/internal/...", anyMay: true},
		{pkg: "release"},
		{pkg: "deploy/kubernetes"}, // tests of the manifests, in a module of their own
		{pkg: "bench/...", anyMay: true},
		{pkg: "experiments/...", anyMay: true},
		{pkg: "internal/measure", anyMay: true}, // of bench and experiments
		{pkg: "examples/...", anyMay: true},
	}
}

// rowOf returns the row of a package directory: the row of that name, otherwise the
// one with the longest pattern.
func rowOf(dir string) (row, bool) {
	var best row
	for _, r := range table() {
		if r.pkg == dir {
			return r, true
		}
		if matches(r.pkg, dir) && len(r.pkg) > len(best.pkg) {
			best = r
		}
	}
	return best, best.pkg != ""
}

// matches reports whether a pattern covers an import path or a directory.
func matches(pattern, name string) bool {
	stem, below := strings.CutSuffix(pattern, "/...")
	return name == stem || below && strings.HasPrefix(name, stem+"/")
}

func checkImports(t *tree) []Finding {
	var out []Finding
	for _, f := range t.goFiles(true) {
		r, known := rowOf(f.dir)
		if !known {
			what := "package " + f.dir + " has no row in the import table (internal/tidy/imports_test.go)"
			out = append(out, Finding{"imports", f.name, 1, what})
			continue
		}
		if f.test() || r.anyMay {
			continue
		}
		for _, spec := range f.syntax.Imports {
			name, err := strconv.Unquote(spec.Path.Value)
			if err != nil || standard(name) {
				continue
			}
			local, _ := strings.CutPrefix(name, t.module+"/")
			if !allowed(r, local) {
				what := fmt.Sprintf("%s may not import %s", f.dir, local)
				out = append(out, Finding{"imports", f.name, t.line(spec.Pos()), what})
			}
		}
	}
	return out
}

func allowed(r row, name string) bool {
	return slices.ContainsFunc(r.may, func(p string) bool { return matches(p, name) })
}

// standard reports whether an import path belongs to the standard library: its
// first element has no dot.
func standard(name string) bool {
	first, _, _ := strings.Cut(name, "/")
	return !strings.Contains(first, ".") && path.Clean(name) == name && name != "C"
}
