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
	require.Len(t, within, 7)
	require.InDelta(t, 20, within[3].Value, 1e-9)
	require.False(t, *within[3].Met, "20 % with a core each")
	require.True(t, *beyond[3].Met, "20 % with fewer")
	require.InDelta(t, -10, within[6].Value, 1e-9)
	c.scheme = "sync"
	require.Len(t, c.account(2), 4, "synchronous sweeps are those of one peer")
}

// What the host and other programs took is told of the time that the processors would have worked,
// idleness apart.
func TestTaken(t *testing.T) {
	a := ticksOf("cpu  100 0 50 1000 10 1 2 30 0 0\ncpu0 1 2\n")
	require.Equal(t, ticks{worked: 153, stolen: 30}, a)
	b := ticksOf("cpu  200 10 80 5000 10 1 2 50 0 0\n")
	b.own = 133
	require.InDelta(t, 100*27.0/160, a.takenUntil(b), 1e-9)
	b.own = 150 // clocks of different grain
	require.InDelta(t, 100*20.0/160, a.takenUntil(b), 1e-9)
	require.Zero(t, a.takenUntil(a))
	require.Zero(t, ticksOf("cpu 1 2"))
	require.Zero(t, ticksOf("cpu  1 2 3 x 5 6 7 8"))
}
