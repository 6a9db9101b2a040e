package method

import (
	"math"
	"testing"

	"github.com/p2pdc/p2pdc/internal/kernel"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// drawCoarsest draws the problem of a coarsest grid: edges of a contrast of up to 1e12, flows, reactions and obstacles that
// may be missing, equal or hold a point by force.
func drawCoarsest(t *rapid.T) (*Level, [3]int) {
	dim := rapid.IntRange(1, 3).Draw(t, "dim")
	n := [3]int{1, 1, 1}
	for a := range dim {
		n[a] = rapid.IntRange(1, 2).Draw(t, "n")
	}
	n[0] = 2
	layout, err := kernel.NewLayout(dim, n)
	require.NoError(t, err)
	number := func(name string) float64 { return rapid.Float64Range(-3, 3).Draw(t, name) }
	op := kernel.Operator{Form: kernel.Variable}
	for d := range 1 + 2*dim {
		op.Arrays[d] = make([]float64, layout.Points())
	}
	flow := rapid.Bool().Draw(t, "flow")
	for i := range layout.Points() {
		p := [3]int{i % n[0], i / n[0] % n[1], i / (n[0] * n[1])}
		for a := range dim {
			for side := range 2 {
				k := kernel.West + 2*a + side
				if before := p; side == 0 && p[a] > 0 && !flow {
					before[a]--
					op.Arrays[k][i] = op.Arrays[k+1][layout.Dense(before[0], before[1], before[2])]
				} else {
					op.Arrays[k][i] = math.Pow(10, 2*number("edge"))
				}
				op.Arrays[kernel.Center][i] += op.Arrays[k][i]
			}
		}
		op.Arrays[kernel.Center][i] += rapid.SampledFrom([]float64{0, 0, 1}).Draw(t, "reaction")
	}
	source, lower, upper := make([]float64, layout.Points()), make([]float64, layout.Points()), make([]float64, layout.Points())
	for i := range source {
		source[i] = 100 * number("source")
		lower[i] = rapid.SampledFrom([]float64{math.Inf(-1), -1, -0.1, 0}).Draw(t, "lower")
		upper[i] = lower[i] + rapid.SampledFrom([]float64{math.Inf(1), 0, 0.1, 2}).Draw(t, "upper")
		if lower[i] == 0 && rapid.Bool().Draw(t, "pressed") {
			source[i] = pressingSource
		}
		if math.IsNaN(upper[i]) || lower[i] == math.Inf(-1) {
			upper[i] = math.Inf(1)
		}
	}
	u := make([]float64, layout.Len())
	for i := range u {
		u[i] = number("u")
	}
	l, err := NewLevel(LevelConfig{
		Part: kernel.Whole(layout), Operator: op, Source: kernel.Field{Array: source},
		Lower: kernel.Field{Array: lower}, Upper: kernel.Field{Array: upper},
	}, false)
	require.NoError(t, err)
	l.Values = u
	return l, n
}

// TestCoarsestGridIsSolvedAtEveryContrast checks that the solution satisfies the inequalities up to rounding.
func TestCoarsestGridIsSolvedAtEveryContrast(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l, n := drawCoarsest(t)
		h := Hierarchy{Dim: l.Part.Layout.Dim, Grids: [][3]int{n}}
		l.Solve(h.solve(0), kernel.Sequential{})
		eachPoint([3]int{}, n, func(p [3]int) {
			d := l.Part.Layout.Dense(p[0], p[1], p[2])
			w := l.stencilAt(p, l.Part.Layout.Index(p[0], p[1], p[2]), d, 0)
			u, lo, hi := l.Values[w.index], l.Lower.At(d), l.Upper.At(d)
			r := w.center*u - l.neighbourSum(&w) - l.Source.At(d)
			scale := 1e-9 * (w.center*(math.Abs(u)+1) + math.Abs(l.neighbourSum(&w)))
			require.True(t, lo <= u && u <= hi, "%v not in [%v, %v]", u, lo, hi)
			require.True(t, u == lo || r <= scale, "%v at %v: residual %v", p, u, r)
			require.True(t, u == hi || r >= -scale, "%v at %v: residual %v", p, u, r)
		})
	})
}

// TestCoarsestGridOfConstantCoefficientsIsRelaxed checks that the values are those of the sweeps of the stage, which
// suffice there.
func TestCoarsestGridOfConstantCoefficientsIsRelaxed(t *testing.T) {
	layout, err := kernel.NewLayout(2, [3]int{2, 2, 1})
	require.NoError(t, err)
	h := Hierarchy{Dim: 2, Grids: [][3]int{layout.N}}
	var got [2][]float64
	for i := range got {
		l, err := NewLevel(LevelConfig{
			Part: kernel.Whole(layout), Operator: kernel.Operator{Diag: 4, Off: 1}, Source: kernel.Field{Value: 1},
			Lower: kernel.NoLower(), Upper: kernel.NoUpper(),
		}, false)
		require.NoError(t, err)
		l.Values = make([]float64, layout.Len())
		s := h.solve(0)
		if i == 0 {
			l.Solve(s, kernel.Sequential{})
		} else {
			l.Sweep.RedBlack(l.Values, s.Omega, s.Sweeps, kernel.Sequential{})
		}
		got[i] = l.Values
	}
	require.Equal(t, got[1], got[0])
}
