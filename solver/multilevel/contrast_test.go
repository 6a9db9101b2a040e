package multilevel

import (
	"flag"
	"fmt"
	"math"
	"testing"

	"github.com/p2pdc/p2pdc/internal/solvertest"
	"github.com/p2pdc/p2pdc/solver/iterate"
	"github.com/p2pdc/p2pdc/solver/problem"
	"github.com/stretchr/testify/require"
)

var long = flag.Bool("long", false, "also solve the slow rows of the contrast table, and cut every problem in every way")

// contrastCase is a diffusion that jumps, or varies, by a contrast.
type contrastCase struct {
	name string
	dim  int
	n    int
	of   func(q problem.Point, contrast float64) float64
}

func contrastProblem(c contrastCase, contrast float64) *problem.Problem {
	p := &problem.Problem{
		Name: c.name, Dimension: c.dim, N: [3]int{1, 1, 1}, Source: problem.Coefficient{Value: 1},
		Diffusion: problem.Coefficient{Of: func(q problem.Point) float64 { return c.of(q, contrast) }},
		Boundary:  func(problem.Point) float64 { return 0 },
		Obstacle: func(q problem.Point) float64 {
			v := 0.2
			if c.dim == 3 {
				v = 0.3
			}
			for a := range c.dim {
				v -= 2 * (q[a] - 0.5) * (q[a] - 0.5)
			}
			return v
		},
	}
	for a := range c.dim {
		p.Hi[a], p.N[a] = 1, c.n
	}
	return p
}

func contrastCases() []contrastCase {
	disk := func(q problem.Point, k float64) float64 {
		return solvertest.Where((q[0]-0.3)*(q[0]-0.3)+(q[1]-0.4)*(q[1]-0.4) < 0.04, k)
	}
	ball := func(q problem.Point, k float64) float64 {
		return solvertest.Where((q[0]-0.3)*(q[0]-0.3)+(q[1]-0.4)*(q[1]-0.4)+(q[2]-0.45)*(q[2]-0.45) < 0.04, k)
	}
	half := func(q problem.Point, k float64) float64 { return solvertest.Where(q[0] > 0.5, k) }
	layer := func(q problem.Point, k float64) float64 { return solvertest.Where(q[1] > 0.4 && q[1] < 0.45, k) }
	smooth := func(q problem.Point, k float64) float64 {
		return math.Exp(math.Log(k) / 2 * math.Sin(2*math.Pi*q[0]) * math.Cos(2*math.Pi*q[1]))
	}
	checker := func(dim int) func(q problem.Point, k float64) float64 {
		return func(q problem.Point, k float64) float64 {
			sum := 0
			for a := range dim {
				sum += int(8 * q[a])
			}
			return solvertest.Where(sum%2 == 0, k)
		}
	}
	var out []contrastCase
	for _, c := range []contrastCase{
		{"disk", 2, 0, disk}, {"half", 2, 0, half}, {"checker", 2, 0, checker(2)}, {"layer", 2, 0, layer},
		{"smooth", 2, 0, smooth},
	} {
		for _, n := range []int{63, 127} {
			c.n = n
			out = append(out, c)
		}
	}
	return append(out,
		contrastCase{"ball", 3, 31, ball},
		contrastCase{"half", 3, 31, half},
		contrastCase{"checker", 3, 31, checker(3)},
		contrastCase{"layer", 3, 31, layer},
		contrastCase{"smooth", 3, 31, smooth},
	)
}

// contrasts are the columns of the table.
var contrasts = [...]float64{10, 100, 1e3, 1e4, 1e6, 1e-4}

// TestMultigridConvergesAtEveryContrast checks every row of a table of diffusions whose jumps lie on grid points or
// between them. The bounds on cycles and work are slightly above the measured ones.
// go test ./solver/multilevel -run Contrast -v -args -long prints the whole table.
func TestMultigridConvergesAtEveryContrast(t *testing.T) {
	for _, c := range contrastCases() {
		if c.n > 63 && !*long || testing.Short() && c.name == "checker" {
			continue
		}
		line := fmt.Sprintf("%-7s %d-D %3d:", c.name, c.dim, c.n)
		for _, contrast := range contrasts {
			if testing.Short() && c.dim == 3 && contrast < 1e6 {
				continue
			}
			most := 20
			if c.name == "checker" { // cells touch at corners only, and coarse grids connect them
				if most = 100; contrast < 1 {
					if most = 900; !*long {
						continue
					}
				}
			}
			p := contrastProblem(c, contrast)
			s, err := SolveBy(p, problem.MethodConfig{Name: problem.Multigrid}, 1e-6, most, nil)
			require.NoError(t, err)
			require.Equal(t, iterate.Converged, s.Reason, "%s, contrast %v: %v after %d cycles",
				line, contrast, s.Residual, s.Cycles)
			require.LessOrEqual(t, s.Work, 8*float64(s.Cycles)+10, "%s, contrast %v: cycles were rejected",
				line, contrast)
			line += fmt.Sprintf(" %4d (%.0f)", s.Cycles, s.Work)
			if !*long {
				continue
			}
			// At a contrast of 1e6 this is near what rounding allows, and cycles reduce the residual slowly.
			s, err = SolveBy(p, problem.MethodConfig{Name: problem.Multigrid}, 1e-10, 10*most, nil)
			require.NoError(t, err)
			require.Equal(t, iterate.Converged, s.Reason)
			line += fmt.Sprintf("/%d (%.0f)", s.Cycles, s.Work)
		}
		t.Log(line)
	}
}

// TestMultigridConvergesAtJumpsInOneDimension checks that a jump costs nothing in one dimension, wherever it
// lies.
func TestMultigridConvergesAtJumpsInOneDimension(t *testing.T) {
	for _, n := range []int{127, 255, 511, 512} {
		for _, at := range []float64{0.77, 0.75, 0.6180339887} {
			p := contrastProblem(
				contrastCase{
					"jump",
					1,
					n,
					func(q problem.Point, k float64) float64 { return solvertest.Where(q[0] >= at, k) },
				},
				1e4,
			)
			p.Source.Value, p.Obstacle = 0, func(q problem.Point) float64 { return 0.15 - 4*(q[0]-0.5)*(q[0]-0.5) }
			s, err := SolveBy(p, problem.MethodConfig{Name: problem.Multigrid}, 1e-11, 16, nil)
			require.NoError(t, err)
			require.Equal(t, iterate.Converged, s.Reason, "%d points, at %v: %v", n, at, s.Residual)
		}
	}
}

// After any number of cycles the residual is at most that of max(φ, 0).
func TestMultigridResidualNeverExceedsTheReference(t *testing.T) {
	for _, c := range contrastCases() {
		if c.n > 63 || c.name == "smooth" {
			continue
		}
		grids := []int{c.n, 20}
		if testing.Short() && c.dim == 3 {
			grids = []int{12}
		}
		for _, n := range grids {
			c.n = n
			for _, contrast := range []float64{1e6, 1e-4} {
				for most := range 2 {
					s, err := SolveBy(
						contrastProblem(c, contrast),
						problem.MethodConfig{Name: problem.Multigrid},
						1e-9,
						most+1,
						nil,
					)
					require.NoError(t, err)
					require.LessOrEqual(t, s.Residual, 1.0, "%s, %d points, contrast %v, cycle %d", c.name, n, contrast, most+1)
				}
			}
		}
	}
}

// Each peer evaluates the diffusion that it needs. The results are bitwise those of one peer.
func TestMultigridAtJumpsEqualsOnePeerOnAnyPartition(t *testing.T) {
	for i, c := range contrastCases() {
		if c.n == 127 || c.name == "half" {
			continue
		}
		n := [3]int{31, 31, 1}
		parts := [][3]int{{2, 3, 1}, {1, 4, 1}}
		if c.dim == 3 {
			n, parts = [3]int{15, 17, 15}, [][3]int{{2, 2, 2}, {1, 1, 3}, {1, 1, 15}}
		}
		if testing.Short() {
			parts = parts[:2]
			n = [3]int{15, 15, min(n[2], 7)}
		}
		for k, part := range parts {
			for _, small := range []int{1, 0} {
				if !*long && (k+i+small)%2 == 0 { // every cut and both ways of gathering, over all cases
					continue
				}
				p := contrastProblem(c, 1e3)
				p.N = n
				cut, err := problem.GridOf(n, part)
				require.NoError(t, err)
				config := problem.Config{
					Problem: p, Partition: cut, Scheme: iterate.Synchronous(), Tolerance: 1e-8, MaxSweeps: 6,
					Method: problem.MethodConfig{Name: problem.Multigrid}, GatherPoints: small,
				}
				one, _ := sameAsAlone(t, 7, config)
				want, err := SolveBy(p, config.Method, config.Tolerance, int(config.MaxSweeps), nil)
				require.NoError(t, err)
				solvertest.RequireSameBits(t, want.U, one.answer(p))
			}
		}
	}
}
