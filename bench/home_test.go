package main

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// Errors are relative to the median of the real runs, and held against the bound of as many
// peers as there are cores, or of more.
func TestHomeAccount(t *testing.T) {
	c := homeCase{peers: 4, scheme: "async", predicted: rehearsed{Seconds: 1.2, Sweeps: 4500}, seconds: []float64{0.9, 1, 9}, sweeps: []float64{4900, 5000, 5100}}
	within, beyond := c.account(4), c.account(2)
	require.Len(t, within, 4)
	require.InDelta(t, 20, within[2].Value, 1e-9)
	require.False(t, *within[2].Met, "20 % with a core each")
	require.True(t, *beyond[2].Met, "20 % with fewer")
	require.InDelta(t, -10, within[3].Value, 1e-9)
	c.scheme = "sync"
	require.Len(t, c.account(2), 3, "synchronous sweeps are those of one peer")
}
