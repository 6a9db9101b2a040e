package problem_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/p2pdc/p2pdc/solver/problem"
)

// A function that is linear along each axis is interpolated exactly, at grid points, between them and on the boundary.
func TestInterpolate(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := &problem.Problem{Dimension: rapid.IntRange(1, 3).Draw(t, "dimension"), N: [3]int{1, 1, 1}}
		for a := range p.Dimension {
			p.N[a] = rapid.IntRange(1, 6).Draw(t, "n")
			p.Lo[a] = rapid.Float64Range(-3, 3).Draw(t, "low")
			p.Hi[a] = p.Lo[a] + rapid.Float64Range(0.1, 4).Draw(t, "length")
		}
		f := func(q problem.Point) float64 { return (2 + q[0]) * (3 - 0.5*q[1]) * (1 + 2*q[2]) }
		p.Boundary = f
		u := make([]float64, p.Points())
		for _, idx := range (problem.Box{Hi: p.N}).Each {
			u[p.Dense(idx)] = f(p.At(idx[0], idx[1], idx[2]))
		}
		var q problem.Point
		for a := range p.Dimension {
			q[a] = p.Lo[a] + (p.Hi[a]-p.Lo[a])*rapid.Float64Range(0, 1).Draw(t, "at")
			q[a] = min(q[a], p.Hi[a])
		}
		require.InDelta(t, f(q), p.Interpolate(u, q), 1e-12*(1+100*math.Abs(f(q))))
		for _, idx := range (problem.Box{Hi: p.N}).Each {
			at := p.At(idx[0], idx[1], idx[2])
			require.InDelta(t, u[p.Dense(idx)], p.Interpolate(u, at), 1e-12*(1+100*math.Abs(f(at))))
		}
		a := rapid.IntRange(0, p.Dimension-1).Draw(t, "axis")
		for _, x := range []float64{math.Nextafter(p.Lo[a], -9), math.Nextafter(p.Hi[a], 9), math.NaN(), math.Inf(1)} {
			q[a] = x
			require.True(t, math.IsNaN(p.Interpolate(u, q)))
		}
	})
}
