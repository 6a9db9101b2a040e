package option

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

// Implicit Euler is of first order in Δt, the differences are of second order in h. Numbers of steps are compared
// on one grid, and grids at one number of steps.
func TestConvergence(t *testing.T) {
	o := one(Put, 0)
	want := latticeOf(o).limit(1000)
	t.Logf("American put, S = K = 100, r = 5 %%, volatility 20 %%, one year; lattice: %.5f", want)
	price := func(n, steps int) float64 {
		o.Steps = steps
		return quote(t, o, n).Price
	}
	order := func(what string, sizes []int, price func(size int) float64, limit float64) float64 {
		last, slope := math.NaN(), math.NaN()
		for _, size := range sizes {
			v := price(size)
			e := math.Abs(v - limit)
			slope = math.Log2(last / e)
			t.Logf("%s %4d: price %.5f, error %.2e, order %.2f; against the lattice %.2e", what, size, v, e, slope,
				v-want)
			last = e
		}
		return slope
	}
	// The limit is extrapolated from the two finest results.
	const n = 127
	limit := 2*price(n, 1024) - price(n, 512)
	require.InDelta(t, 1, order("n = 127, steps", []int{16, 32, 64, 128, 256},
		func(m int) float64 { return price(n, m) }, limit), 0.15)
	limit = (4*price(255, 16) - price(127, 16)) / 3
	require.InDelta(t, 2, order("16 steps, n =", []int{15, 31, 63, 127}, func(m int) float64 { return price(m, 16) },
		limit), 0.3)
	o.Steps = 256
	require.InDelta(t, want, extrapolated(t, o, 255).Price, 1e-3)
}

// With averages over cells with a kink, the error does not depend on the position of the strike between grid points.
func TestErrorDoesNotJump(t *testing.T) {
	o := one(Put, 0)
	o.Steps, o.Strike = 16, 103
	limit := (4*quote(t, o, 255).Price - quote(t, o, 127).Price) / 3
	least, most := math.Inf(1), 0.0
	for n := 40; n <= 56; n++ {
		h := 1 / float64(n+1)
		constant := (limit - quote(t, o, n).Price) / (h * h)
		least, most = min(least, constant), max(most, constant)
	}
	t.Logf("error = C·h², C from %.4g to %.4g", least, most)
	require.Positive(t, least)
	require.Less(t, most, 1.4*least)
}

// With decreasing time to expiry the critical price increases from that of the perpetual option to the strike.
func TestCriticalPriceInTime(t *testing.T) {
	o := one(Put, 0)
	var last float64
	for _, years := range []float64{0.1, 0.5, 1, 5} {
		o.Maturity = years
		p, u := solved(t, o, 127)
		critical, err := o.Critical(p, u)
		require.NoError(t, err)
		require.Greater(t, critical, 5./7)
		if last > 0 {
			require.Less(t, critical, last)
		}
		last = critical
	}
	o.Maturity = 1
	p, u := solved(t, o, 255)
	critical, err := o.Critical(p, u)
	require.NoError(t, err)
	require.InDelta(t, latticeCritical(o, 400), critical, 5e-3)
	// The critical price is the same if today's price lies in the exercise region.
	o.Assets[0].Price = 60
	q, v := solved(t, o, 255)
	from, err := o.Critical(q, v)
	require.NoError(t, err)
	require.InDelta(t, critical, 0.6*from, 2e-3)
	exercised, err := o.Quote(q, v)
	require.NoError(t, err)
	require.True(t, exercised.Exercise)
	require.InDelta(t, 40, exercised.Price, 1e-12)
	require.InDelta(t, -1, exercised.Delta[0], 1e-6)
}

// latticeCritical returns the highest price at which the tree of one asset exercises.
func latticeCritical(o *Option, steps int) float64 {
	exercised, held := 0.5, 1.0
	for held-exercised > 1e-4 {
		l := latticeOf(o)
		l.spot = []float64{o.Assets[0].Price * (exercised + held) / 2}
		if l.price(steps) <= l.pays(l.spot)*(1+1e-9) {
			exercised = (exercised + held) / 2
		} else {
			held = (exercised + held) / 2
		}
	}
	return exercised
}
