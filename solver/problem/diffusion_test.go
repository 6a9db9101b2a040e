package problem_test

import (
	"math"
	"testing"

	"github.com/p2pdc/p2pdc/internal/kernel"
	"github.com/p2pdc/p2pdc/internal/solvertest"
	"github.com/p2pdc/p2pdc/solver/iterate"
	"github.com/p2pdc/p2pdc/solver/method"
	"github.com/p2pdc/p2pdc/solver/multilevel"
	"github.com/p2pdc/p2pdc/solver/problem"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// jumping is −(κu′)′ = 1 in d dimensions, κ jumping to k inside or behind a place off the
// grid, with the exact solution.
func jumping1d(n int, at, k float64) *problem.Problem {
	c := ((1-at*at)/(2*k) + at*at/2) / (at + (1-at)/k)
	exact := func(q problem.Point) float64 {
		if x := q[0]; x < at {
			return c*x - x*x/2
		}
		return ((1-q[0]*q[0])/2 - c*(1-q[0])) / k
	}
	return &problem.Problem{
		Name: "jump", Dimension: 1, Hi: problem.Point{1}, N: [3]int{n, 1, 1}, Source: problem.Coefficient{Value: 1}, Exact: exact, Boundary: exact,
		Diffusion: problem.Coefficient{Of: func(q problem.Point) float64 { return solvertest.Where(q[0] >= at, k) }},
	}
}

func jumping2d(n int, k float64) *problem.Problem {
	const radius = 0.0729
	far := func(q problem.Point) float64 { return (q[0]-0.47)*(q[0]-0.47) + (q[1]-0.53)*(q[1]-0.53) }
	exact := func(q problem.Point) float64 {
		if r := far(q); r < radius {
			return (radius - r) / 4 / k
		}
		return (radius - far(q)) / 4
	}
	return &problem.Problem{
		Name: "disk", Dimension: 2, Hi: problem.Point{1, 1}, N: [3]int{n, n, 1}, Source: problem.Coefficient{Value: 1}, Exact: exact, Boundary: exact,
		Diffusion: problem.Coefficient{Of: func(q problem.Point) float64 { return solvertest.Where(far(q) < radius, k) }},
	}
}

func errorOf(t *testing.T, p *problem.Problem) float64 {
	s, err := multilevel.SolveBy(p, problem.MethodConfig{Name: problem.Multigrid}, 1e-11, 60, nil)
	require.NoError(t, err)
	require.Equal(t, iterate.Converged, s.Reason, "%v points: %v", p.N, s.Residual)
	largest := 0.0
	problem.Box{Hi: p.N}.Each(func(d int, idx [3]int) bool {
		largest = max(largest, math.Abs(s.U[d]-p.Exact(p.At(idx[0], idx[1], idx[2]))))
		return true
	})
	return largest
}

// TestErrorAtJumpsOffTheGridIsSecondOrder checks that the error decreases with the square of the spacing
// wherever κ jumps. The expected factor of two halvings is 16; the position of the jump in its edge changes it
// by up to 4.
func TestErrorAtJumpsOffTheGridIsSecondOrder(t *testing.T) {
	for _, c := range []struct{ at, k float64 }{{0.77, 100}, {1 / math.Sqrt2, 1e4}, {0.3333, 0.01}, {0.9, 3}} {
		coarse, fine := errorOf(t, jumping1d(31, c.at, c.k)), errorOf(t, jumping1d(511, c.at, c.k))
		require.Greater(t, coarse/fine, 60.0, "%v: %v, %v", c, coarse, fine)
	}
	for _, k := range []float64{100, 0.01, 2} {
		coarse, fine := errorOf(t, jumping2d(31, k)), errorOf(t, jumping2d(127, k))
		require.Greater(t, coarse/fine, 10.0, "%v: %v, %v", k, coarse, fine)
	}
}

// TestEdgeDiffusionOfDrawnFunctions checks that the value of an edge is the harmonic mean, whether κ is smooth, steep or
// jumps.
func TestEdgeDiffusionOfDrawnFunctions(t *testing.T) {
	edge := func(of problem.Function, x, h float64) float64 {
		c := problem.Coefficient{Of: of}
		return problem.EdgeOf(c, problem.Point{x}, 0, h, of(problem.Point{x}), of(problem.Point{x + h}))
	}
	rapid.Check(t, func(t *rapid.T) {
		x, h := rapid.Float64Range(-1, 1).Draw(t, "x"), rapid.Float64Range(1e-4, 0.3).Draw(t, "h")
		steep, wave := rapid.Float64Range(-30, 30).Draw(t, "steep"), rapid.Float64Range(0, 20).Draw(t, "wave")
		smooth := func(q problem.Point) float64 { return math.Exp(steep*q[0] + math.Sin(wave*q[0])) }
		mean := 0.0
		const parts = 4000
		for i := range parts {
			mean += 1 / smooth(problem.Point{x + (float64(i)+0.5)/parts*h}) / parts
		}
		require.InEpsilon(t, 1/mean, edge(smooth, x, h), 1e-5)

		at := rapid.Float64Range(0.001, 0.999).Draw(t, "at")
		k := math.Exp(rapid.Float64Range(0.001, 15).Draw(t, "log of the contrast"))
		v := edge(func(q problem.Point) float64 { return solvertest.Where(q[0] > x+at*h, k) }, x, h)
		require.InEpsilon(t, 1/(at+(1-at)/k), v, 1e-5)
	})
	for _, at := range []float64{0.25, 0.375} { // both ends of an edge
		v := edge(func(q problem.Point) float64 { return solvertest.Where(q[0] >= at, 1e6) }, 0.25, 0.125)
		require.InEpsilon(t, solvertest.Where(at == 0.25, 1e6), v, 1e-6, "a jump at %v", at)
	}
}

// TestDiffusionMakesSymmetricMatrices checks that the rows of two neighbours have the same entry for each other.
func TestDiffusionMakesSymmetricMatrices(t *testing.T) {
	p := jumping2d(20, 1)
	p.Diffusion.Of = func(q problem.Point) float64 { return math.Exp(4 * math.Sin(6*q[0]) * math.Cos(6*q[1])) }
	b, err := problem.Discretize(p, problem.Box{Hi: p.N})
	require.NoError(t, err)
	b.Box.Each(func(d int, idx [3]int) bool {
		for a, stride := range [2]int{1, 20} {
			if idx[a] < p.N[a] {
				require.Equal(t, b.Operator.Arrays[kernel.East+2*a][d], b.Operator.Arrays[kernel.West+2*a][d+stride])
			}
		}
		return true
	})
}

// TestCoarseEdgesAreIndependentOfTheBox checks that coarse edges do not depend on the box that is evaluated at
// once.
func TestCoarseEdgesAreIndependentOfTheBox(t *testing.T) {
	for _, n := range [][3]int{{31, 15, 1}, {20, 33, 1}, {15, 15, 15}, {17, 9, 12}} {
		p := jumping2d(n[0], 50)
		p.N = n
		if n[2] > 1 {
			p.Dimension, p.Hi = 3, problem.Point{1, 1, 1}
		}
		h := method.NewHierarchy(p.Dimension, p.N, p.Strength())
		lo, hi := method.WholeGrid(p.Dimension, p.N)
		e := problem.DiffusionOf(p, lo, hi)
		for l := 1; l <= h.Coarsest(); l++ {
			e = e.CoarsenWhole(h.Grids[l])
			for first := range h.Grids[l][0] {
				box := problem.Box{Lo: [3]int{first - 1, 0, 0}, Hi: [3]int{first + 1, h.Grids[l][1], h.Grids[l][2]}}
				part := p.CoarseEdges(&h, l, box.Lo, box.Hi)
				for a := range p.Dimension {
					box.Each(func(_ int, idx [3]int) bool {
						q := [3]int{idx[0] - 1, idx[1] - 1, idx[2] - 1}
						if q[a]+1 < box.Hi[a] && part.Interior(a, q) {
							require.Equal(
								t,
								e.Diffusion[a][e.Index(q)],
								part.Diffusion[a][part.Index(q)],
								"%v level %d axis %d at %v",
								n,
								l,
								a,
								q,
							)
						}
						return true
					})
				}
			}
		}
	}
}

// TestEdgeDiffusionAtJumps checks that the diffusion between two points 0 and 1 is the harmonic mean along the edge,
// wherever κ jumps between them.
func TestEdgeDiffusionAtJumps(t *testing.T) {
	step := func(at, left, right float64) func(problem.Point) float64 {
		return func(q problem.Point) float64 {
			if q[0] < at {
				return left
			}
			return right
		}
	}
	for name, c := range map[string]struct {
		of   func(problem.Point) float64
		want float64
	}{
		"constant":                  {func(problem.Point) float64 { return 3 }, 3},
		"jump at 0.2":               {step(0.2, 1, 10), 1 / (0.2 + 0.8/10)},
		"jump half-way":             {step(0.5, 1, 10), 1 / (0.5 + 0.5/10)},
		"just behind half-way":      {step(math.Nextafter(0.5, 1), 10, 1), 1 / (0.5/10 + 0.5)},
		"jump down at 0.9":          {step(0.9, 1e6, 1), 1 / (0.9/1e6 + 0.1)},
		"two jumps":                 {func(q problem.Point) float64 { return step(0.25, 1, 100)(q) * step(0.75, 1, 100)(q) }, 1 / (0.25 + 0.5/100 + 0.25/1e4)},
		"jump at the first point":   {step(0, 1, 10), 10},
		"jump at the second point":  {step(1, 1, 10), 1},
		"steep and smooth":          {func(q problem.Point) float64 { return math.Exp(4 * q[0]) }, 4 / (1 - math.Exp(-4))},
		"over many decades, smooth": {func(q problem.Point) float64 { return math.Exp(20 * q[0]) }, 20 / (1 - math.Exp(-20))},
		"a thin interface":          {logistic(0.37, 1e-5, 100), 1 / logisticResistance(0.37, 1e-5, 100)(1)},
		"not positive":              {func(q problem.Point) float64 { return q[0] - 0.3 }, 0.2},
	} {
		k := problem.Coefficient{Of: c.of}
		got := problem.EdgeOf(k, problem.Point{}, 0, 1, c.of(problem.Point{0}), c.of(problem.Point{1}))
		require.InEpsilon(t, c.want, got, 1e-5, name)
	}
}
