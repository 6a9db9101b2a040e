package method

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

// Reactions are encoded with a relative error of at most 1/16, beside the codes of all six arms.
func TestReactionCodes(t *testing.T) {
	var arms uint64
	for d := range 6 {
		arms |= fractionCode(0.1+0.15*float64(d)) << (armBits * d)
	}
	for part := 1e-9; part < 1e9; part *= 1.07 {
		code := float64(arms | encodeReaction(part)<<reactionShift)
		require.InDelta(t, part, decodeReaction(code), part/16)
		for d := range 6 {
			require.Equal(t, int(fractionCode(0.1+0.15*float64(d))), arm(code, d))
		}
	}
	require.Zero(t, decodeReaction(float64(arms)))
	for _, nothing := range []float64{0, -1, math.NaN()} {
		require.Zero(t, encodeReaction(nothing))
	}
	require.EqualValues(t, 1<<reactionBits-1, encodeReaction(math.Inf(1)))
	require.EqualValues(t, 1, encodeReaction(1e-300))
}
