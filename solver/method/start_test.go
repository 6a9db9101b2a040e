package method

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/p2pdc/p2pdc/internal/kernel"
)

// diskSystem returns a disk of diffusion 1e6 in a region of diffusion 1. Coarse operators are taken from
// single fine points here, so that coarse corrections are wrong by the contrast.
func diskSystem(t *testing.T, n int) (System, []float64) {
	l, err := kernel.NewLayout(2, [3]int{n, n, 1})
	require.NoError(t, err)
	op := kernel.Operator{Form: kernel.Variable}
	for d := range 5 {
		op.Arrays[d] = make([]float64, l.Points())
	}
	h := 1 / float64(n+1)
	kappa := func(x, y float64) float64 {
		if (x-0.3)*(x-0.3)+(y-0.4)*(y-0.4) < 0.04 {
			return 1e6
		}
		return 1
	}
	for i := range l.Points() {
		x, y := float64(i%n+1)*h, float64(i/n+1)*h
		row := [5]float64{0, kappa(x-h/2, y), kappa(x+h/2, y), kappa(x, y-h/2), kappa(x, y+h/2)}
		for d := 1; d < 5; d++ {
			op.Arrays[d][i] = row[d] / h / h
			op.Arrays[0][i] += row[d] / h / h
		}
	}
	s := System{Layout: l, Operator: op, Source: kernel.Field{Value: 1}, Lower: kernel.NoLower(),
		Upper: kernel.NoUpper(), Symmetric: true}
	return averaged(s), make([]float64, l.Len())
}

// The full multigrid start is kept only if it does not increase the residual, on coarse grids and, after
// a cycle, on the finest.
func TestStartIsGuarded(t *testing.T) {
	for _, n := range []int{31, 63, 64} {
		s, u := diskSystem(t, n)
		r0, zero := residualOf(t, s, u), make([]float64, s.Layout.Len())
		m, err := NewMultigrid(s, Options{})
		require.NoError(t, err)
		m.Start(u)
		largest := 0.0
		for _, v := range interior(s.Layout, u) {
			largest = max(largest, math.Abs(v))
		}
		require.Less(t, largest, 10.0, "the solution is below 0.1")
		better := func() bool { // by the residual or, as relaxation may increase it, by the energy
			var change kernel.Sum
			m.levels[0].Sweep.Energy(&change, zero, u, s.Layout.Interior())
			return residualOf(t, s, u) <= r0 || change.Float64() < 0
		}
		m.Cycle(u)
		require.True(t, better(), "%d points", n)

		// Without the guards on coarse grids, the one of the first cycle remains.
		clear(u)
		m.start = Fuse(m.hierarchy.Start("", false), func(Stage) bool { return true })
		m.Start(u)
		require.False(t, better(), "%d points: the start is good without guards", n)
		m.Cycle(u)
		require.True(t, better(), "%d points", n)
	}
}

func TestSafeguardBegins(t *testing.T) {
	g := NewSafeguard(true, false)
	g.Begin(2, true)
	require.Equal(t, Accepted, g.Evaluate(2), "the residual does not increase")
	require.Equal(t, Undecided, g.Evaluate(2))
	for _, r := range []float64{2.1, math.Inf(1), math.NaN()} {
		g.Begin(2, true)
		require.Equal(t, StartRejected, g.Evaluate(r))
		require.NotEqual(t, StartRejected, g.Evaluate(r), "the next cycle begins with the old values")
	}
	g.Begin(2, false) // values worth keeping
	require.Equal(t, Undecided, g.Evaluate(2))
	require.Equal(t, Accepted, g.Evaluate(1.5))
}

// The energy along a step t is a·t² − b·t, with its minimum at b/2a.
func TestStepFraction(t *testing.T) {
	for _, c := range []struct{ a, b, want float64 }{
		{3, 2, 1.0 / 3}, {1, 1, 0.5}, {10, 1, 0.05}, {10, 0.9, 0}, {1, -1, 0}, {-1, -3, 0}, {0, 0, 0},
	} {
		g := NewSafeguard(true, false)
		g.Begin(1, false)
		require.Equal(t, Undecided, g.Evaluate(5))
		require.Equal(t, Rejected, g.EvaluateEnergy(c.a-c.b, 5))
		require.True(t, g.TryHalfStep(5))
		require.InDelta(t, 2*c.want, g.StepFraction(c.a/4-c.b/2), 1e-12, "%v", c)
	}
	g := NewSafeguard(true, false)
	g.Evaluate(1)
	require.Equal(t, Rejected, g.Evaluate(math.Inf(1)))
	require.False(t, g.TryHalfStep(math.Inf(1)), "the energy is not finite")
}

// Interpolation that follows the diffusion preserves constants and, for constant diffusion, linear
// functions. Coarse edges of constant diffusion equal it.
func TestWeightedInterpolationPreservesConstants(t *testing.T) {
	for _, grid := range [][2][3]int{{{15, 7, 1}, {7, 3, 1}}, {{7, 7, 7}, {3, 3, 3}}, {{20, 9, 6}, {9, 9, 3}},
		{{9, 1, 1}, {4, 1, 1}}} {
		dim := 3
		for dim > 1 && grid[0][dim-1] == 1 {
			dim--
		}
		lo, hi := WholeGrid(dim, grid[0])
		e := NewEdges(dim, grid[0], lo, hi, [3]float64{1, 0.5, 2})
		for _, jump := range []bool{false, true} {
			for a := range dim {
				for i := range e.Diffusion[a] {
					if e.Diffusion[a][i] = 3; jump && (i*i+a)%5 < 2 {
						e.Diffusion[a][i] = 3e4
					}
				}
			}
			below := e.CoarsenWhole(grid[1])
			p := newInterpolation(e, grid[1])
			for z := range grid[0][2] {
				for y := range grid[0][1] {
					for x := range grid[0][0] {
						var w [8]float64
						base := p.weights([3]int{x, y, z}, 0, &w)
						sum, at := 0.0, 0.0
						for corner, part := range w {
							require.GreaterOrEqual(t, part, 0.0)
							sum += part
							at += part * p.position(0, base[0]+corner&1)
						}
						require.InDelta(t, 1, sum, 1e-14)
						if !jump {
							require.InDelta(t, float64(x), at, 1e-12)
						}
					}
				}
			}
			for a := range dim {
				for i, v := range below.Diffusion[a] {
					if jump && v != 0 {
						require.Greater(t, v, 0.0)
						require.LessOrEqual(t, v, 3e4*4)
					} else if v != 0 {
						require.InDelta(t, 3, v, 1e-12, "%v axis %d, %d", grid, a, i)
					}
				}
			}
		}
	}
}
