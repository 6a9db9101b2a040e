package main

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// Errors are of medians, relative to the real runs', and held against the bound of as many
// peers as there are cores, or of more.
func TestHomeAccount(t *testing.T) {
	c := homeCase{peers: 4, scheme: "async", predicted: []float64{1.2, 1.1, 5}, meant: []float64{4500, 4400, 9000}, seconds: []float64{0.9, 1, 9}, relaxed: []float64{4900, 5000, 5100}}
	within, beyond := c.account(4), c.account(2)
	require.Len(t, within, 6)
	require.InDelta(t, 20, within[2].Value, 1e-9)
	require.False(t, *within[2].Met, "20 % with a core each")
	require.True(t, *beyond[2].Met, "20 % with fewer")
	require.InDelta(t, -10, within[5].Value, 1e-9)
	c.scheme = "sync"
	require.Len(t, c.account(2), 3, "synchronous sweeps are those of one peer")
}
