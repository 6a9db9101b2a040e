package verify

import (
	"math"
	"testing"

	"github.com/p2pdc/p2pdc/internal/kernel"
	"github.com/p2pdc/p2pdc/internal/solvertest"
	"github.com/p2pdc/p2pdc/solver/problem"
	"github.com/stretchr/testify/require"
	"gonum.org/v1/gonum/mat"
	"pgregory.net/rapid"
)

// TestConstantBarrierBoundsTheInverseClosely compares the barriers with ‖A⁻¹‖∞ computed by gonum.
func TestConstantBarrierBoundsTheInverseClosely(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := anyMMatrix(t, true)
		b := constantBarrier(p, solvertest.Backwards{})
		want := inverseNorm(t, p)
		require.GreaterOrEqual(t, b.inverse(), want*(1-1e-12), b.by)
		require.LessOrEqual(t, b.inverse(), want*1.25, b.by)
	})
	p := solvertest.Membrane([3]int{127, 127, 127}, 3)
	require.InDelta(
		t,
		0.0569,
		constantBarrier(p, problem.Sequential{}).inverse(),
		0.0008,
		"‖A⁻¹‖∞ tends to 0.0562 on the unit cube",
	)
	p = solvertest.Membrane([3]int{999, 1, 1}, 1)
	require.InDelta(t, 0.125, constantBarrier(p, problem.Sequential{}).inverse(), 1e-9)
}

// TestBarrierCheckAgreesWithTheDenseMatrix compares least and top with A·w by the dense matrix. A w that is no
// barrier proves nothing.
func TestBarrierCheckAgreesWithTheDenseMatrix(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := anyMMatrix(t, true)
		s := newSeparable(p, "random")
		n := p.Points()
		w := mat.NewVecDense(n, nil)
		for range rapid.IntRange(1, 3).Draw(t, "terms") {
			v, rim := oneTables(p), [3]float64{1, 1, 1}
			even := rapid.Bool().Draw(t, "even")
			for a := range p.Dimension {
				rim[a] = 0
				for i := range v[a] {
					v[a][i] = rapid.Float64Range(0, 1).Draw(t, "v")
				}
				if even {
					s.symmetrise(a, v[a])
				}
			}
			s.add(1, v, rim)
			problem.Box{Hi: p.N}.Each(func(d int, idx [3]int) bool {
				w.SetVec(d, w.AtVec(d)+v[0][idx[0]-1]*v[1][idx[1]-1]*v[2][idx[2]-1])
				return true
			})
		}
		var aw mat.VecDense
		aw.MulVec(matrix(p), w)
		b := s.check(solvertest.Backwards{})
		slack := 1e-12 * scaleOf(p)
		require.InDelta(t, mat.Min(&aw), b.least, slack)
		require.LessOrEqual(t, b.least, mat.Min(&aw)+1e-3*slack)
		require.InEpsilon(t, 1+mat.Max(w), 1+b.top, 1e-12)
		if mat.Min(&aw) <= 0 {
			require.True(t, math.IsNaN(b.inverse()))
		}
	})
}

// scaleOf returns the diagonal, to which rounding is relative.
func scaleOf(p *problem.Problem) float64 {
	return problem.NewStencil(p).At([3]int{1, 1, 1})[kernel.Center]
}

// The extremes are those of all points, where symmetry spares some and where it does not.
func TestBarrierCheckFindsTheExtremesOfAllPoints(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := solvertest.Membrane([3]int{1, 1, 1}, rapid.IntRange(1, 3).Draw(t, "dimension"))
		for a := range p.Dimension {
			p.N[a] = rapid.IntRange(1, 5).Draw(t, "n")
		}
		if p.Dimension == 3 && rapid.Bool().Draw(t, "cube") {
			if p.N[2] = p.N[1]; rapid.Bool().Draw(t, "all axes") {
				p.N[0] = p.N[1]
			}
		}
		s := newSeparable(p, "a test")
		same := rapid.Bool().Draw(t, "same tables")
		for range rapid.IntRange(1, 4).Draw(t, "terms") {
			v := oneTables(p)
			for a := range p.Dimension {
				for i := range v[a] {
					v[a][i] = rapid.Float64Range(0.1, 2).Draw(t, "w")
				}
				if same && rapid.Bool().Draw(t, "symmetric") {
					s.symmetrise(a, v[a])
				}
			}
			if same && p.N[1] == p.N[2] {
				if copy(v[2], v[1]); p.N[0] == p.N[1] {
					copy(v[0], v[1])
				}
			}
			s.add(rapid.Float64Range(0.1, 2).Draw(t, "weight"), v, [3]float64{})
		}
		least, top := math.Inf(1), 0.0
		aw, w := make([]float64, p.N[0]), make([]float64, p.N[0])
		for z := range p.N[2] {
			for y := range p.N[1] {
				s.rowAt(aw, w, [3]int{1, y + 1, z + 1})
				for x := range w {
					least, top = min(least, aw[x]), max(top, w[x])
				}
			}
		}
		got := s.check(solvertest.Backwards{})
		require.InDelta(t, least-s.rounding(), got.least, 3*s.rounding())
		require.InEpsilon(t, top*s.up(), got.top, 1e-14)
	})
}
