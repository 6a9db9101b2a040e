package method

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// alternate returns the work to reduce a residual of 1 to 1e-6 by two methods with constant rates per unit of work, a step
// at a time, and the number of changes. Method 1 is SOR: during the given work after a change its residual grows. settle is
// the estimate of the work in which it settles.
func alternate(rates [2]float64, grows, settle, step float64) (work float64, changes int) {
	const tol = 1e-6
	a := Alternation{SOR: 1}
	a.Begin(0, 0)
	level, since := 0.0, 0.0 // logarithm of the residual; work at the newest change
	for level > math.Log(tol) && work < 1e7 {
		i := a.Current()
		rate := rates[i]
		if i == 1 && work-since < grows {
			rate = -rate
		}
		work += step
		level -= rate * step
		if a.Observe(work, math.Exp(level), tol, settle) {
			changes++
			since = work
		}
	}
	return work, changes
}

// The work is a small multiple of that of the better method.
func TestAlternationNeedsLittleWork(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var rates [2]float64
		for i := range rates {
			rates[i] = math.Pow(10, rapid.Float64Range(-4, 0).Draw(t, "log of the rate"))
		}
		best := -math.Log(1e-6) / max(rates[0], rates[1])
		work, _ := alternate(rates, 0, 0, rapid.Float64Range(1, 8).Draw(t, "step"))
		require.LessOrEqual(t, work, 2.5*best+3*ShortestTrial)
	})
}

// A fast method is not changed, SOR is given the time in which its rate shows, and a better method is kept.
func TestAlternationTries(t *testing.T) {
	_, changes := alternate([2]float64{0.3, 0.001}, 0, 0, 5)
	require.Zero(t, changes)
	work, changes := alternate([2]float64{1e-5, 0.002}, 1000, 4000, 8)
	require.Less(t, work, 15000., "SOR alone needs 8,900")
	require.Less(t, changes, 20)
	_, changes = alternate([2]float64{1e-4, 0.05}, 0, 0, 5)
	require.Equal(t, 1, changes)
	for grows := 250.; grows < 20000; grows *= 2 { // beside a method that stands still
		work, _ = alternate([2]float64{1e-9, 0.002}, grows, 0, 8)
		require.Less(t, work, 3.5*(2*grows+6908), "SOR alone grows, makes up for it and ends")
	}
}

// Where both methods stand still, both get a share of the work, whichever is the better one.
func TestBothMethodsThatStandStillAreTried(t *testing.T) {
	for better := range 2 {
		a := Alternation{SOR: 1}
		a.Begin(0, 0)
		var worked [2]float64
		level := 0.0
		for work := 4.; work < 1e6; work += 4 {
			i := a.Current()
			worked[i] += 4
			if level -= 4e-12; i == better {
				level -= 4e-11
			}
			a.Observe(work, math.Exp(level), 1e-6, 0)
		}
		require.Greater(t, min(worked[0], worked[1]), 1e5, worked)
	}
}

// Residuals that are no numbers, and runs without a tolerance, change nothing.
func TestAlternationIgnoresOtherNumbers(t *testing.T) {
	for _, v := range []float64{math.NaN(), math.Inf(1), 0, -1} {
		a := Alternation{SOR: 1}
		a.Begin(0, 0)
		for work := range 100 {
			a.Observe(float64(10*work), v, 1e-6, v)
			a.Observe(float64(10*work), 1, v, 0)
		}
		require.False(t, math.IsNaN(a.Left(1000)), v)
	}
	a := Alternation{SOR: 1}
	a.Begin(0, 0)
	for work := range 1000 {
		require.False(t, a.Observe(float64(work), 1, 0, 0))
	}
}
