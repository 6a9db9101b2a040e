package main

import (
	"context"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/p2pdc/p2pdc/microproto"
)

// sequential is Jacobi's method on the whole interval.
func sequential(t *testing.T, points, sweeps int) []float64 {
	b := newBlock(points, 0, points)
	require.NoError(t, b.relaxFor(context.Background(), 1, sweeps))
	return b.u[1 : points+1]
}

func TestBothModes(t *testing.T) {
	for _, mode := range []microproto.Mode{microproto.ModeSynchronous, microproto.ModeAsynchronous} {
		r, err := solve(t.Context(), mode, 23, 3, 1e-6)
		require.NoError(t, err)
		require.LessOrEqual(t, r.residual, 1e-6)
		// The method's own error at h = 1/24 is π²h²/12 at x = 1/2, to first order.
		require.InDelta(t, math.Pi*math.Pi/12/24/24, r.worstError(), 2e-6)
		if mode == microproto.ModeSynchronous {
			require.Equal(t, sequential(t, 23, r.sweeps), r.u, "bit for bit the sequential method")
		}
	}
}
