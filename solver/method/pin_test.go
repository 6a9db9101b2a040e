package method

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

// What a pin holds goes through its code to a sixteenth, beside the walls of all six arms.
func TestPinCodes(t *testing.T) {
	var walls uint64
	for d := range 6 {
		walls |= wallCode(0.1+0.15*float64(d)) << (wallBits * d)
	}
	for part := 1e-9; part < 1e9; part *= 1.07 {
		code := float64(walls | pinCode(part)<<pinShift)
		require.InDelta(t, part, pin(code), part/16)
		for d := range 6 {
			require.Equal(t, int(wallCode(0.1+0.15*float64(d))), arm(code, d))
		}
	}
	require.Zero(t, pin(float64(walls)))
	for _, nothing := range []float64{0, -1, math.NaN()} {
		require.Zero(t, pinCode(nothing))
	}
	require.EqualValues(t, 1<<pinBits-1, pinCode(math.Inf(1)))
	require.EqualValues(t, 1, pinCode(1e-300))
}
