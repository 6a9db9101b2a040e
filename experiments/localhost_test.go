package main

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// Errors are those of medians, relative to the real runs. The bound depends on the number of peers
// per core.
func TestErrorsOfPredictions(t *testing.T) {
	c := localCase{
		peers: 4, scheme: "async", rounds: make([]localRound, 3),
		predictedSeconds: []float64{1.2, 1.1, 5}, predictedSweeps: []float64{4500, 4400, 9000},
		realSeconds: []float64{0.9, 1, 9}, realSweeps: []float64{4900, 5000, 5100},
	}
	within, beyond := c.results(4), c.results(2)
	require.Len(t, within, 3)
	require.InDelta(t, 1.2, within[0].Peers[0].Ratio, 1e-9)
	require.False(t, *within[0].Met, "20 % with a core for each peer")
	require.True(t, *beyond[0].Met, "20 % with fewer cores")
	require.InDelta(t, 0.9, within[2].Peers[0].Ratio, 1e-9)
	c.scheme = "sync"
	require.Len(t, c.results(2), 2, "synchronous sweeps are those of one peer")
}

// The processor time of other programs and of the host is a share of what was worked, idle time
// excluded.
func TestProcessorTimeOfOthers(t *testing.T) {
	a := parseUsage("cpu  100 0 50 1000 10 1 2 30 0 0\ncpu0 1 2\n")
	require.Equal(t, usage{worked: 153, stolen: 30}, a)
	b := parseUsage("cpu  200 10 80 5000 10 1 2 50 0 0\n")
	b.own = 133
	require.InDelta(t, 100*27.0/160, a.takenUntil(b), 1e-9)
	b.own = 150 // own and worked come from clocks of different resolution
	require.InDelta(t, 100*20.0/160, a.takenUntil(b), 1e-9)
	require.Zero(t, a.takenUntil(a))
	require.Zero(t, parseUsage("cpu 1 2"))
	require.Zero(t, parseUsage("cpu  1 2 3 x 5 6 7 8"))
}
