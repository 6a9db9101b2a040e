package method

import (
	"math"
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// For a linear iteration whose rate satisfies Young's relation the optimal factor is found.
func TestAdaptiveOmegaFindsTheOptimum(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rho := 1 - math.Pow(10, rapid.Float64Range(-4, -1).Draw(t, "log of 1 - rho"))
		best := OptimalOmega(rho)
		f := NewAdaptiveOmega(1+(best-1)*rapid.Float64Range(0, 1).Draw(t, "first"), false)
		norm, k := 1.0, 0
		for range 200 {
			// λ − ωρ√λ + ω − 1 = 0 solved for √λ, which is complex above the optimal ω.
			w := f.Omega()
			rate := w - 1
			if root := w*w*rho*rho - 4*(w-1); root > 0 {
				s := (w*rho + math.Sqrt(root)) / 2
				rate = s * s
			}
			step := int(math.Ceil(max(8, 1/(2-w))))
			norm *= math.Pow(rate, float64(step))
			if norm < 1e-200 {
				norm = 1
				f.hasLast = false
			}
			k += step
			f.Observe(k, norm)
		}
		require.InDelta(t, math.Log(2-best), math.Log(2-f.Omega()), 0.12, "ω %v, best %v", f.Omega(), best)
	})
}

func TestAdaptiveOmegaDecreasesWhenTheResidualGrows(t *testing.T) {
	f := NewAdaptiveOmega(1.9, false)
	norm := 1.0
	for k := 0; k < 2000; k += 50 {
		norm *= 1.1
		f.Observe(k, norm)
	}
	require.Equal(t, 1.0, f.Omega())
	f = NewAdaptiveOmega(1.9, true)
	for k := 0; k < 2000; k += 50 {
		norm *= 1.1
		f.Observe(k, norm)
	}
	require.Equal(t, 1.9, f.Omega(), "a fixed factor is kept")
}

func TestAdaptiveOmegaRevertsAWorseChange(t *testing.T) {
	f := NewAdaptiveOmega(1.5, false)
	k, norm := 0, 1.0
	observe := func(rate float64) {
		k += 40
		norm *= math.Pow(rate, 40)
		f.Observe(k, norm)
	}
	for range 4 {
		observe(0.99)
	}
	require.Greater(t, f.Omega(), 1.7)
	for range 5 {
		observe(0.999)
	}
	require.Equal(t, 1.5, f.Omega())
}

// A factor that was given back grows again where its rate has settled, and not before the number of sweeps has doubled: the
// rate may have been worse for another reason than the factor.
func TestAdaptiveOmegaGrowsAgain(t *testing.T) {
	f := NewAdaptiveOmega(1.5, false)
	k, norm := 0, 1.0
	for k < 360 || f.Omega() > 1.5 {
		rate := 0.99
		if f.Omega() > 1.5 {
			rate = 0.999
		}
		k += 40
		norm *= math.Pow(rate, 40)
		f.Observe(k, norm)
	}
	require.Equal(t, 1.5, f.Omega())
	begin := k
	for f.Omega() == 1.5 {
		k += 40
		require.Less(t, k, 3*begin)
		norm *= math.Pow(0.99, 40)
		f.Observe(k, norm)
	}
	require.Greater(t, k, 3*begin/2)
	for range 8 { // a residual that rises takes the factor that was good, not a smaller one
		k += 40
		norm *= 1.01
		f.Observe(k, norm)
	}
	require.Equal(t, 1.5, f.Omega())
}

// Damp sets ω to 1 for an eighth of the sweeps. Then the factor before returns, also when the values are changed meanwhile.
// A fixed factor and one that is at most 1 remain.
func TestDampedSweepsEnd(t *testing.T) {
	before := 1.999
	f := NewAdaptiveOmega(before, false)
	f.Observe(80000, 1e-3)
	require.InDelta(t, 1/(2-before), f.Gain(), 1e-9)
	f.Damp(80000)
	for k := 80008; k < 90000; k += 8 {
		f.Observe(k, 1e-6)
		require.Equal(t, 1.0, f.Omega())
		require.Equal(t, 1.0, f.Gain())
		require.Equal(t, before, f.Undamped())
		require.False(t, f.CanDamp())
	}
	kept := AdaptiveOmega{}
	var values []any
	f.Fields(func(v any) { values = append(values, v) })
	kept.Fields(func(v any) {
		reflect.ValueOf(v).Elem().Set(reflect.ValueOf(values[0]).Elem())
		values = values[1:]
	})
	require.Equal(t, f, kept, "the state of a checkpoint")
	for k := 90000; k < 90100; k += 50 {
		f.Observe(k, 1e-3)
		require.Equal(t, before, f.Omega())
	}
	for _, change := range []func(*AdaptiveOmega){(*AdaptiveOmega).Forget, (*AdaptiveOmega).Resume} {
		f.Damp(90100)
		require.True(t, f.Damped())
		change(&f)
		require.Equal(t, before, f.Omega())
		require.False(t, f.Damped())
	}
	for _, f := range []AdaptiveOmega{NewAdaptiveOmega(1.9, true), NewAdaptiveOmega(1, false), NewAdaptiveOmega(0.5, false)} {
		before = f.Omega()
		require.False(t, f.CanDamp())
		f.Damp(1000)
		require.Equal(t, before, f.Omega())
	}
}
