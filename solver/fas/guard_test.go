package fas

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

// suspensions returns the steps of a sequence of residuals that do without corrections.
func suspensions(residual func(k int) float64, age, steps int) (out []int) {
	var g guard
	for k := range steps {
		if g.observe(residual(k), age) {
			out = append(out, k)
		}
	}
	return out
}

// TestGuard checks that corrections are suspended where the residual grows or stands still, for longer each time, and not
// where it falls in jumps as long as values travel, nor at the level of rounding.
func TestGuard(t *testing.T) {
	falls := func(k int) float64 { return math.Exp(float64(-k)) }
	require.Empty(t, suspensions(falls, 0, 30))
	rounding := func(k int) float64 { return math.Max(falls(k), 1e-13) }
	require.Empty(t, suspensions(rounding, 0, 200))
	saw := func(k int) float64 { return math.Exp(float64(-(k / 20))) * falls(k%20) } // what arrives raises it again
	require.Empty(t, suspensions(saw, 10, 400))

	still := func(int) float64 { return 1 }
	at := suspensions(still, 0, 100)
	require.Equal(t, 15, at[0], "the second window is as high as the first")
	require.Less(t, suspensions(still, 1<<40, 1000)[0], 2*maxWindow, "values of a peer that has ended grow older for ever")
	require.Len(t, suspensions(still, 0, 15+firstRest+16+2*firstRest), 3*firstRest, "the second suspension is twice as long")

	grows := func(k int) float64 { return math.Pow(2, float64(k)) }
	require.Equal(t, 4, suspensions(grows, 100, 10)[0], "beyond ten times the first residual it waits for no window")
	require.Equal(t, 1, suspensions(func(k int) float64 { return []float64{1, math.NaN()}[min(k, 1)] }, 0, 3)[0])
}
