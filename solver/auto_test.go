package solver

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/p2pdc/p2pdc/solver/iterate"
	"github.com/p2pdc/p2pdc/solver/problem"
)

// pattern returns a row of TestAutoNeedsLittleWork, in the unit interval, square or cube.
func pattern(about string, n []int, keys ...string) choiceCase {
	axes := strings.TrimSuffix(strings.Repeat("[0, 1], ", len(n)), ", ")
	text := fmt.Sprintf("dimension: %d\ndomain: [%s]\nboundary: \"0\"\nobstacle: \"0.05*sin(9*x) - 0.1\"\n", len(n), axes)
	return choiceCase{about: about, text: text + strings.Join(append(keys, ""), "\n"), n: n}
}

func autoPatterns() []choiceCase {
	push, pull := "f: \"100\"", "f: \"-1\""
	kappa := func(inside, contrast string) string { return "diffusion: \"" + inside + " ? " + contrast + " : 1\"" }
	islands := func(cells int) string { return fmt.Sprintf("sin(22*floor(%d*x) + 62*floor(%d*y)) > 0.2", cells, cells) }
	board := func(cells int) string {
		sum := fmt.Sprintf("floor(%d*x) + floor(%d*y)", cells, cells)
		return fmt.Sprintf("%s - 2*floor((%s)/2) > 0.5", sum, sum)
	}
	flow := func(x, y string) string { return fmt.Sprintf("velocity: [\"%s\", \"%s\"]", x, y) }
	disk := "(x-0.45)^2 + (y-0.52)^2 < 0.04"
	return []choiceCase{
		pattern("constant, 1-D", []int{255}, pull),
		pattern("constant", []int{63, 63}, pull),
		pattern("constant, 3-D", []int{15, 15, 15}, pull),
		pattern("stripes", []int{63, 63}, push, kappa("sin(23*x) > 0", "1e4")),
		pattern("thin stripes", []int{63, 63}, push, kappa("sin(140*y) > 0", "1e6")),
		pattern("disk", []int{31, 31}, push, kappa(disk, "1e6")),
		pattern("disk of low diffusion", []int{31, 31}, push, kappa(disk, "1e-4")),
		pattern("disks", []int{63, 63}, push, kappa("sin(19*x)*sin(17*y) > 0.5", "1e4")),
		pattern("checkerboard 100", []int{31, 31}, push, kappa(board(8), "100")),
		pattern("checkerboard 1e6", []int{31, 31}, push, kappa(board(8), "1e6")),
		pattern("checkerboard off the grid", []int{63, 63}, push, kappa(board(5), "1000")),
		pattern("islands 100", []int{31, 31}, push, kappa(islands(8), "100")),
		pattern("islands 1e4", []int{31, 31}, push, kappa(islands(8), "1e4")),
		pattern("islands 1e6", []int{31, 31}, push, kappa(islands(8), "1e6")),
		pattern("islands of a point", []int{31, 31}, push, kappa(islands(31), "1e4")),
		pattern("islands, 3-D", []int{15, 15, 15}, push,
			kappa("sin(22*floor(4*x) + 62*floor(4*y) + 35*floor(4*z)) > 0.2", "1e4")),
		pattern("any diffusion", []int{64, 64}, push, "diffusion: \"exp(6*sin(97*floor(31*x) + 311*floor(31*y)))\""),
		pattern("anisotropic", []int{127, 7}, pull),
		pattern("contrast, 1-D", []int{1023}, push, kappa("sin(400*x) > 0.2", "1e4")),
		pattern("rough contrast, 1-D", []int{1023}, pull, kappa("sin(22*floor(500*x)) > 0.2", "1e4")),
		pattern("outward", []int{31, 31}, pull, flow("50*(x-0.5)", "50*(y-0.5)")),
		pattern("fast outward", []int{31, 31}, pull, flow("1000*(x-0.5)", "1000*(y-0.5)")),
		pattern("inward", []int{31, 31}, pull, flow("50*(0.5-x)", "50*(0.5-y)")),
		pattern("fast inward", []int{127, 127}, pull, flow("10000*(0.5-x)", "10000*(0.5-y)")),
		pattern("vortex", []int{31, 31}, pull, flow("1000*(y-0.5)", "1000*(0.5-x)")),
		pattern("saddle", []int{63, 63}, pull, flow("1000*(x-0.5)", "1000*(0.5-y)")),
		pattern("sinks, 1-D", []int{127}, "velocity: [\"60*sin(12*x)\"]\nf: \"1\""),
		pattern("reaction", []int{63, 63}, pull, "reaction: \"1000\""),
		pattern("reaction in a half", []int{63, 63}, pull, "reaction: \"x > 0.5 ? 100000 : 0\""),
	}
}

// The choice of the program, with the changes of the method during the run, takes at most twice the work of the best
// method, also where neither method shows its rate for thousands of sweeps.
func TestAutoNeedsLittleWork(t *testing.T) {
	for _, c := range autoPatterns() {
		if c.about == "islands 1e6" && testing.Short() {
			continue
		}
		p := c.problem(t)
		of := func(name string, most iterate.Iteration) float64 {
			s, err := Solve(t.Context(), p, Options{Method: problem.MethodConfig{Name: name}, MaxSweeps: most, Threads: 1})
			work := float64(s.Peers[0].Points) / float64(p.Points())
			if name == Auto {
				require.NoError(t, err, "%s: %s, %v", c.about, s.Method, work)
				require.LessOrEqual(t, s.Evaluation.RelativeResidual, DefaultTolerance)
				t.Logf("%-26s auto %.0f: %s %s", c.about, work, s.Choice.Name, s.Method)
			}
			if err != nil {
				return math.Inf(1)
			}
			return work
		}
		auto := of(Auto, 0)
		best := math.Inf(1)
		costs := map[string]float64{problem.Multigrid: 4, problem.SOR: 1, problem.Schwarz: 4, problem.Richardson: 1}
		if auto > 5000 {
			costs[problem.Schwarz] = 50 // as measured: most cycles are replaced by relaxation
		}
		for name, cost := range costs { // a method that would need more work than auto is not the best one
			best = min(best, of(name, iterate.Iteration(auto/cost)+16))
		}
		require.LessOrEqual(t, auto, 2*best, c.about)
	}
}
