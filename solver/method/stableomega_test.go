package method

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/p2pdc/p2pdc/internal/kernel"
)

// rows returns the rows of −Δ + b·∇ with upwind differences and unit spacing in two dimensions.
func rows(b func(x, y int) [2]float64) func([3]int) [kernel.Directions]float64 {
	return func(at [3]int) (row [kernel.Directions]float64) {
		for a, v := range b(at[0], at[1]) {
			row[kernel.West+2*a], row[kernel.East+2*a] = 1+max(0, v), 1+max(0, -v)
			row[kernel.Center] += 2 + math.Abs(v)
		}
		return row
	}
}

func TestStableOmega(t *testing.T) {
	one, n := [3]int{1, 1, 1}, [3]int{9, 9, 1}
	for _, c := range []struct {
		name string
		b    func(x, y int) [2]float64
		want float64
		real bool
	}{
		{"symmetric", func(_, _ int) [2]float64 { return [2]float64{} }, 2, true},
		{"constant flow", func(_, _ int) [2]float64 { return [2]float64{2, -1} }, 2 / (1 + 3./7), true},
		{"one axis each", func(x, y int) [2]float64 { return [2]float64{float64(x - 5), math.Sin(float64(y))} }, 2, true},
		{"rotation", func(x, y int) [2]float64 { return [2]float64{float64(y - 5), float64(5 - x)} }, 2 / (1 + 8./12), false},
		{"strong rotation",
			func(x, y int) [2]float64 { return [2]float64{1e9 * float64(y-5), 1e9 * float64(5-x)} }, 1, false},
	} {
		omega, scalable := StableOmega(2, n, one, rows(c.b))
		require.InDelta(t, c.want, omega, 1e-8, c.name)
		require.Equal(t, c.real, scalable, c.name)
	}
	central := func([3]int) [kernel.Directions]float64 { return [kernel.Directions]float64{2, 4, -2} }
	omega, scalable := StableOmega(1, [3]int{9, 1, 1}, one, central)
	require.InDelta(t, 2/(1+3.), omega, 1e-12, "central differences, no M-matrix")
	require.False(t, scalable)
	jump := func(at [3]int) (row [kernel.Directions]float64) { // κ is 1 or 1e4; around y a weak flow
		for a := range 2 {
			low, high := 1., 1.
			if at[0] > 5 {
				low, high = 1e4, 1e4
			}
			if a == 0 && at[0] == 5 {
				high = 1e4
			}
			flow := 0.001 * float64((at[1-a]-5)*(1-2*a))
			row[kernel.West+2*a], row[kernel.East+2*a] = low+flow, high-flow
			row[kernel.Center] += low + high
		}
		return row
	}
	omega, scalable = StableOmega(2, n, one, jump)
	require.InDelta(t, 2/(1+2*0.001*8/4), omega, 1e-12, "a jump of the diffusion is no flow")
	require.False(t, scalable)
	for _, scale := range []float64{1e-300, 1e300} {
		row := func([3]int) [kernel.Directions]float64 {
			return [kernel.Directions]float64{4 * scale, scale, scale, scale, scale}
		}
		omega, scalable := StableOmega(2, n, one, row)
		require.Equal(t, 2., omega)
		require.True(t, scalable, "no overflow")
	}
}

// Whatever norms it observes, a guarded factor stays between its bounds. Its limit falls at most a few times, and ends at
// 1 where the residual does not fall.
func TestGuardedOmegaIsLoweredAFewTimes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limit := rapid.Float64Range(0.5, 2).Draw(t, "limit")
		f := NewGuardedOmega(rapid.Float64Range(0.5, 2).Draw(t, "first"), limit, rapid.Bool().Draw(t, "scalable"))
		norms := rapid.SliceOfN(rapid.Float64Range(-2, 2.3), 50, 200).Draw(t, "changes")
		again := f
		norm, lowered, before := 1., 0, f.limit
		for i := range 3000 {
			if norm *= math.Exp(norms[i%len(norms)]); !(norm > 1e-200 && norm < 1e200) {
				norm = 1
			}
			f.Observe(8*i, norm)
			again.Observe(8*i, norm)
			require.Equal(t, f, again)
			require.LessOrEqual(t, f.Omega(), limit)
			require.LessOrEqual(t, f.limit, before)
			if f.limit < before {
				lowered, before = lowered+1, f.limit
			}
		}
		require.LessOrEqual(t, lowered, 40)
	})
	for _, growth := range []float64{1, 1.001, 3} {
		f := NewGuardedOmega(1.9, 1.9, false)
		norm := 1.
		for k := 0; k < 8000; k += 8 {
			norm = min(norm*growth, 1e200)
			f.Observe(k, norm)
		}
		require.Equal(t, 1., f.Omega(), "growth %v", growth)
	}
	f := NewGuardedOmega(1.5, 2, true)
	f.Observe(8, 1)
	f.Observe(16, 1e9)
	require.Equal(t, 1.5, f.Omega(), "a scaled matrix may let the residual grow")
	f.Observe(24, 1e11)
	require.Equal(t, 1.25, f.Omega())
}

// The factor is at least 1 for every M-matrix, however much the entries of two neighbours differ: a fast flow from a row into
// one of low diffusion.
func TestStableOmegaOfFastFlows(t *testing.T) {
	row := func(idx [3]int) (r [kernel.Directions]float64) {
		size := 1.
		if idx[0]%2 == 0 {
			size = 1e4
		}
		r[kernel.Center], r[kernel.West], r[kernel.East] = 2.1*size, 1.5*size, 0.5*size
		return r
	}
	omega, _ := StableOmega(1, [3]int{9, 1, 1}, [3]int{1, 1, 1}, row)
	require.GreaterOrEqual(t, omega, 1.)
}
