package solver

import (
	"flag"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/p2pdc/p2pdc/internal/solvertest"
	"github.com/p2pdc/p2pdc/problems"
	"github.com/p2pdc/p2pdc/problems/file"
	"github.com/p2pdc/p2pdc/solver/iterate"
	"github.com/p2pdc/p2pdc/solver/problem"
)

var update = flag.Bool("update", false, "write the table of chosen methods to docs/methods.md")

// square is a problem file in the unit square, with further keys.
func square(keys string) string {
	return "dimension: 2\ndomain: [[0, 1], [0, 1]]\nboundary: \"0\"\nf: \"1\"\n" +
		"obstacle: \"0.2 - 2*((x-0.5)^2 + (y-0.5)^2)\"\n" + keys
}

// choiceCase is a row of the table of chosen methods.
type choiceCase struct {
	about  string
	ref    string // a built-in problem; empty: text
	text   string // of a problem file
	n      []int
	params []string
}

func choiceCases() []choiceCase {
	checkerboard := "floor(8*x) + floor(8*y) - 2*floor((floor(8*x) + floor(8*y))/2) > 0.5 ? 1000 : 1"
	return []choiceCase{
		{"membrane", "membrane", "", []int{3}, nil},
		{"membrane", "membrane", "", []int{7}, nil},
		{"membrane, n + 1 is odd", "membrane", "", []int{16}, nil},
		{"membrane", "membrane", "", []int{31}, nil},
		{"ball2d", "ball2d", "", []int{63}, nil},
		{"ball2d, n + 1 is odd", "ball2d", "", []int{64}, nil},
		{"terrain (jacksboro)", "jacksboro", "", []int{100, 85}, nil},
		{"torsion1d", "torsion1d", "", []int{7}, nil},
		{"torsion1d", "torsion1d", "", []int{255}, nil},
		{"bearing", "bearing", "", []int{63}, nil},
		{"dam", "dam", "", []int{63}, nil},
		{"convection2d", "convection2d", "", []int{63}, nil},
		{"convection2d, eta = 0.01", "convection2d", "", []int{63}, []string{"eta=0.01"}},
		{"strong flow along a diagonal", "", square("velocity: [10000, 5000]\n"), []int{127}, nil},
		{"strong flow that turns", "", square("velocity: [\"1000*(y-0.5)\", \"-1000*(x-0.5)\"]\n"), []int{31}, nil},
		{"κ = 10⁴ in a disc", "", square("diffusion: \"(x-0.45)^2 + (y-0.52)^2 < 0.04 ? 10000 : 1\"\n"), []int{31}, nil},
		{"κ = 1 and 1000 in a checkerboard", "", square("diffusion: \"" + checkerboard + "\"\n"), []int{63}, nil},
		{"the same with κ = 1 and 12", "", square("diffusion: \"" + strings.Replace(checkerboard, "1000", "12", 1) + "\"\n"), []int{63}, nil},
		{"reaction 10⁵", "", square("reaction: \"100000\"\n"), []int{127}, nil},
		{"obstacle of isolated summits", "", strings.Replace(square(""), "0.2 - 2*((x-0.5)^2 + (y-0.5)^2)",
			"0.3*sin(97*x)*sin(89*y) - 0.4", 1), []int{63}, nil},
		{"a plate of 3 layers", "", "dimension: 3\ndomain: [[0, 1], [0, 1], [0, 0.02]]\nobstacle: \"-1\"\nboundary: \"0\"\n" +
			"f: \"1\"\n", []int{63, 63, 3}, nil},
		{"front2d, 16 steps", "front2d", "", []int{31}, nil},
		{"front2d, 200 steps", "front2d", "", []int{31}, []string{"steps=200"}},
		{"american-put, 100 steps", "american-put", "", []int{255}, nil},
		{"american-basket2d, 50 steps", "american-basket2d", "", []int{31}, nil},
		{"perpetual-put", "perpetual-put", "", []int{255}, nil},
	}
}

func (c *choiceCase) problem(t *testing.T) *problem.Problem {
	t.Helper()
	ref := c.ref
	if ref == "" {
		ref = filepath.Join(t.TempDir(), "p.yaml")
		require.NoError(t, os.WriteFile(ref, []byte(c.text), 0o600))
	}
	spec, err := file.Open(problems.Builtins(), ref, c.params)
	require.NoError(t, err, c.about)
	p, err := spec.BuildValid(c.n)
	require.NoError(t, err, c.about)
	return p
}

// most bounds the iterates of a run of the table.
var most = map[string]iterate.Iteration{problem.Richardson: 50000, problem.SOR: 5000, problem.Multigrid: 2000}

// workOf returns the work of a method on one peer, in sweeps over the grid; +Inf if it did not converge within most.
func workOf(t *testing.T, p *problem.Problem, name string) float64 {
	t.Helper()
	s, err := Solve(t.Context(), p, Options{Method: problem.MethodConfig{Name: name}, MaxSweeps: most[name], Threads: 1})
	if err != nil {
		require.ErrorIs(t, err, ErrNotConverged)
		return math.Inf(1)
	}
	return float64(s.Peers[0].Points) / float64(p.Points())
}

func workText(v float64) string {
	if math.IsInf(v, 1) {
		return "not solved"
	}
	return fmt.Sprintf("%.0f", v)
}

// The chosen method is never the one with the most work, and in most cases needs at most 1.5 times the least. The table
// of docs/methods.md says so.
func TestChosenMethodNeedsLittleWork(t *testing.T) {
	var table strings.Builder
	table.WriteString("| problem | points | chosen | multigrid | sor | richardson |\n|---|---|---|---|---|---|\n")
	good, all := 0, choiceCases()
	for _, c := range all {
		p := c.problem(t)
		chosen, err := Methods().Choose(Run{Config: problem.Config{Problem: p, Scheme: iterate.Synchronous()}})
		require.NoError(t, err)
		require.NotEmpty(t, chosen.Why)
		work, least, largest := map[string]float64{}, math.Inf(1), 0.0
		for name := range most {
			work[name] = workOf(t, p, name)
			least, largest = min(least, work[name]), max(largest, work[name])
		}
		of := work[chosen.Name]
		require.Less(t, of, largest, "%s: %s is the slowest: %v", c.about, chosen.Name, work)
		require.LessOrEqual(t, of, 3*least, "%s: %s of %v", c.about, chosen.Name, work)
		if of <= 1.5*least {
			good++
		}
		size := strings.Trim(strings.Join(strings.Fields(fmt.Sprint(p.N[:p.Dimension])), " × "), "[]")
		fmt.Fprintf(&table, "| %s | %s | `%s` | %s | %s | %s |\n", c.about, size, chosen.Name,
			workText(work[problem.Multigrid]), workText(work[problem.SOR]), workText(work[problem.Richardson]))
	}
	require.GreaterOrEqual(t, good, len(all)*4/5)
	inDocument(t, table.String())
}

// inDocument compares the table in docs/methods.md, or writes it.
func inDocument(t *testing.T, table string) {
	t.Helper()
	const name, begin, end = "../docs/methods.md", "<!-- choice: begin -->\n", "<!-- choice: end -->"
	text, err := os.ReadFile(name)
	require.NoError(t, err)
	before, rest, found := strings.Cut(string(text), begin)
	require.True(t, found)
	old, after, found := strings.Cut(rest, end)
	require.True(t, found)
	if *update {
		require.NoError(t, os.WriteFile(name, []byte(before+begin+table+end+after), 0o644))
		return
	}
	require.Equal(t, table, old, "go test ./solver -run TestChosen -update writes it")
}

// The choice follows scheme, peers, clusters and settings.
func TestChoose(t *testing.T) {
	p := solvertest.Membrane([3]int{31, 31, 31}, 3)
	boxes := func(peers int) problem.Partition {
		out, _, err := problem.SlabsOrBoxes(p.N, peers, nil)
		require.NoError(t, err)
		return out
	}
	sync, async := iterate.Synchronous(), iterate.Asynchronous()
	for _, c := range []struct {
		run  Run
		want string
		why  string
	}{
		{Run{Config: problem.Config{Scheme: sync}}, problem.Multigrid, "about 24 sweeps; sor: about"},
		{Run{Config: problem.Config{Scheme: sync, Partition: boxes(4)}}, problem.Multigrid, "about 24 sweeps"},
		{Run{Config: problem.Config{Scheme: iterate.BoundedDelay(2), Partition: boxes(4)}}, problem.FAS, "scheme delay:2"},
		{Run{Config: problem.Config{Scheme: async}}, problem.FAS, "scheme async"},
		{Run{Config: problem.Config{Scheme: iterate.Hybrid([]int{0, 0, 1, 1}), Partition: boxes(4)}, Clusters: 2}, problem.FAS, "hybrid"},
		{Run{Config: problem.Config{Scheme: iterate.Hybrid([]int{0, 0}), Partition: boxes(2)}, Clusters: 1}, problem.Multigrid, "about"},
		{Run{Config: problem.Config{Scheme: sync, Partition: boxes(4)}, Clusters: 2}, problem.FAS, "2 clusters"},
		{Run{Config: problem.Config{Scheme: sync, Partition: boxes(4), KeepEvery: 1}, Clusters: 2}, problem.Multigrid, "about"},
		{Run{Config: problem.Config{Scheme: sync, Order: problem.InTurn}, Given: []string{"order"}}, problem.Richardson, "--order"},
		{Run{Config: problem.Config{Scheme: sync, Balance: true, Partition: boxes(2)}, Given: []string{"balance"}}, problem.Richardson, "--balance"},
		{Run{Config: problem.Config{Scheme: sync}, Given: []string{"omega"}}, problem.SOR, "--omega"},
		{Run{Config: problem.Config{Scheme: sync}, Given: []string{"cycle", "overlap"}}, problem.Schwarz, "--overlap"},
		{Run{Config: problem.Config{Scheme: async}, Given: []string{"omega"}}, problem.Schwarz, "sor is the method of each peer"},
		{Run{Config: problem.Config{Scheme: async}, Given: []string{"step"}}, problem.Richardson, "--step"},
		{Run{Config: problem.Config{Scheme: async, Method: problem.MethodConfig{Local: problem.SOR}}, Given: []string{"local", "omega"}}, problem.Schwarz, "--local"},
	} {
		c.run.Problem = p
		got, err := Methods().Choose(c.run)
		require.NoError(t, err)
		require.Equal(t, c.want, got.Name, "%s, %v", c.run.Scheme.Name(), c.run.Given)
		require.Contains(t, got.Why, c.why)
		require.Len(t, got.Others, 4)
		if strings.Contains(got.Why, "clusters") {
			require.Contains(t, got.Others[2].Why, "waits for messages between the clusters")
		}
	}
	for _, given := range [][]string{{"omega", "cycle"}, {"step", "overlap"}, {"order", "omega"}, {"balance", "cycle"}} {
		_, err := Methods().Choose(Run{Config: problem.Config{Problem: p, Scheme: sync}, Given: given})
		require.ErrorContains(t, err, "--"+given[0])
		require.ErrorContains(t, err, "--"+given[1])
	}
}

// A method that refuses the boxes of the peers is left out, with the reason.
func TestChooseAmongMethodsThatAccept(t *testing.T) {
	p := solvertest.Membrane([3]int{2047, 2047, 1023}, 3)
	slabs, err := problem.Slabs(p.N, 1023, nil)
	require.NoError(t, err)
	got, err := Methods().Choose(Run{Config: problem.Config{Problem: p, Scheme: iterate.Synchronous(), Partition: slabs}})
	require.NoError(t, err)
	require.Equal(t, problem.SOR, got.Name)
	require.Equal(t, problem.Richardson, got.Next)
	for _, o := range got.Others {
		if o.Name == problem.Multigrid {
			require.Contains(t, o.Why, "too thin to hold a coarser grid")
		}
	}
}

// A catalog without a method leaves it out, and settings of Options say which method fits.
func TestSolveChooses(t *testing.T) {
	p := solvertest.Membrane([3]int{16, 16, 1}, 2)
	few := &Catalog{}
	for _, m := range Methods().methods {
		if m.Name() != problem.Multigrid {
			require.NoError(t, few.Add(m))
		}
	}
	for want, o := range map[string]Options{
		problem.Multigrid:  {},
		problem.SOR:        {Methods: few},
		problem.FAS:        {Peers: 2, Scheme: iterate.Asynchronous()},
		problem.Richardson: {Peers: 2, Order: problem.InTurn, Method: problem.MethodConfig{Name: Auto}},
	} {
		s, err := Solve(t.Context(), p, o)
		require.NoError(t, err, want)
		require.Equal(t, want, s.Choice.Name)
		require.NotEmpty(t, s.Choice.Why)
		require.NotContains(t, s.Choice.Next, want)
	}
	_, err := Solve(t.Context(), p, Options{Method: problem.MethodConfig{Omega: 1.5, Cycle: "w"}})
	require.ErrorIs(t, err, ErrOptions)
	require.ErrorContains(t, err, "--omega")
	s, err := Solve(t.Context(), p, Options{Method: problem.MethodConfig{Name: problem.SOR}})
	require.NoError(t, err)
	require.Empty(t, s.Choice)
	require.True(t, slices.Contains(few.Names(), problem.Schwarz))
}

// Coefficients that are no numbers, or that overflow, lead to a method and to no panic.
func TestChooseBadCoefficients(t *testing.T) {
	for _, v := range []float64{math.NaN(), math.Inf(1), math.Inf(-1), 0, -1, 1e-300, 1e300} {
		for _, of := range []func(*problem.Problem, problem.Coefficient){
			func(p *problem.Problem, c problem.Coefficient) { p.Diffusion = c },
			func(p *problem.Problem, c problem.Coefficient) { p.Reaction = c },
			func(p *problem.Problem, c problem.Coefficient) { p.Velocity[1] = c },
		} {
			for _, c := range []problem.Coefficient{{Value: v}, {Of: func(q problem.Point) float64 {
				if q[0] > 0.5 {
					return v
				}
				return 1
			}}} {
				p := solvertest.Membrane([3]int{9, 9, 1}, 2)
				of(p, c)
				got, err := Methods().Choose(Run{Config: problem.Config{Problem: p, Scheme: iterate.Synchronous()}})
				require.NoError(t, err)
				require.NotEmpty(t, got.Name)
			}
		}
	}
}

// Where a flow dominates the diffusion on the domain, no number is given: multigrid takes 600,000 sweeps on 63 × 63 points for
// a flow of 60 out of the domain, and 24 without a flow.
func TestEstimatesOfFlows(t *testing.T) {
	for keys, unknown := range map[string]bool{
		"":                  false,
		"velocity: [10, 5]": false,
		"velocity: [60, 0]": true,
		"velocity: [\"60*(x-.5)\", \"60*(y-.5)\"]":                     true,
		"velocity: [\"60*(0.5-y)\", \"60*(x-.5)\"]":                    true,
		"velocity: [60, 0]\ndiffusion: \"50\"":                         false,
		"velocity: [60, 0]\nreaction: \"1000\"":                        false,
		"velocity: [1, 0]\ndiffusion: \"x > 0.5 ? 0.001 : 1\"":         true,
		"velocity: [\"1000*(y-0.5)\", \"1000*(0.5-x)\"]\nupwind: true": true,
	} {
		c := choiceCase{text: square(keys + "\n"), n: []int{63}}
		choice, err := Methods().Choose(Run{Config: problem.Config{Problem: c.problem(t), Scheme: iterate.Synchronous()}})
		require.NoError(t, err)
		require.Equal(t, unknown, choice.FlowDominates(), keys)
		if !unknown {
			require.Regexp(t, "[0-9] sweeps", choice.Why, keys)
			continue
		}
		require.NotRegexp(t, "[0-9]", choice.Why)
		for _, other := range choice.Others {
			require.NotRegexp(t, "[0-9]", other.Why)
			require.False(t, choice.Faster(other.Name))
		}
	}
}

// A choice is called faster only where both estimates are known and differ by far.
func TestChoiceFaster(t *testing.T) {
	want := map[string]string{"constant, 1-D": problem.SOR, "constant": problem.Richardson, "anisotropic": problem.SOR}
	for _, c := range autoPatterns() {
		p := c.problem(t)
		choice, err := Methods().Choose(Run{Config: problem.Config{Problem: p, Scheme: iterate.Synchronous()}})
		require.NoError(t, err)
		require.False(t, choice.Faster(choice.Name) || choice.Faster(problem.Schwarz), c.about)
		if name := want[c.about]; name != "" {
			require.True(t, choice.Faster(name), c.about)
		}
		if strings.Contains(c.text, "1e4") || strings.Contains(c.text, "1e6") || strings.Contains(c.about, "vortex") {
			require.False(t, choice.Faster(problem.SOR) || choice.Faster(problem.Multigrid), c.about)
		}
	}
}
