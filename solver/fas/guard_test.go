package fas

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

// observed holds the steps of a sequence of residuals that do without corrections, and the factors of those in others.
type observed struct {
	without []int
	factors []float64
}

func observe(residual func(k int) float64, travel, silent, steps int) (out observed) {
	var g guard
	for k := range steps {
		if g.observe(residual(k), travel, silent) {
			out.without = append(out.without, k)
		}
		if f := g.factor(); f < 1 && (len(out.factors) == 0 || out.factors[len(out.factors)-1] != f) {
			out.factors = append(out.factors, f)
		}
	}
	return out
}

// TestGuard checks that corrections are damped and then suspended where the residual grows or stands still, for longer each
// time and in the end for good, and not where it falls in jumps as long as values travel, at the level of rounding, or while a
// neighbour pauses.
func TestGuard(t *testing.T) {
	falls := func(k int) float64 { return math.Exp(float64(-k)) }
	require.Zero(t, observe(falls, 0, 0, 30))
	rounding := func(k int) float64 { return math.Max(falls(k), 1e-13) }
	require.Zero(t, observe(rounding, 0, 0, 200))
	saw := func(k int) float64 { return math.Exp(float64(-(k / 20))) * falls(k%20) } // what arrives raises it again
	require.Zero(t, observe(saw, 10, 0, 400))

	still := func(int) float64 { return 1 }
	require.Zero(t, observe(still, 0, 1000, 1000), "a neighbour pauses")
	first := 2 * guardWindow * (maxHalvings + 1)
	o := observe(still, 0, 0, 1<<12)
	require.Equal(t, []float64{.5, .25, .125}, o.factors)
	require.Equal(t, first-1, o.without[0], "the second window is as high as the first, four times")
	require.Equal(t, first-1+firstRest+2*guardWindow-1, o.without[firstRest])
	last := firstRest << maxTrips
	require.Equal(t, 1<<12-1-last, o.without[len(o.without)-1-last], "in the end for good")
	require.Less(t, observe(still, 1<<40, 0, 1000).without[0], 8*maxWindow)

	grows := func(k int) float64 { return math.Pow(2, float64(k)) }
	o = observe(grows, 100, 0, 20)
	require.Equal(t, 4, o.without[0], "beyond ten times the first residual it waits for no window")
	require.Equal(t, []float64{.5, .25}, o.factors)
	require.Len(t, o.without, 16, "nor for further halvings")
	require.Equal(t, 1, observe(func(k int) float64 { return []float64{1, math.NaN()}[min(k, 1)] }, 0, 0, 3).without[0])
}
