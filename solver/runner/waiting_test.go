package runner

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/p2pdc/p2pdc/p2psap"
)

// Time during which the process stood still is not held against the others, and patience ends
// all the same.
func TestPatienceCountsTheTimeThatTheProcessRuns(t *testing.T) {
	grace := 8 * time.Second
	r := &Runner{config: Config{Grace: grace}, stopping: true, byRank: nil}
	nb := &neighbour{left: true, leftAt: 0}
	r.neighbours = []*neighbour{nb}
	now := time.Duration(0)
	pass := func(d time.Duration) error {
		now += d
		return r.departed(r.ran.at(now, r.tick()))
	}
	require.NoError(t, pass(time.Hour), "it stood still")
	require.Equal(t, now+r.tick(), r.deadline(), "it looks again soon")
	for range 6 {
		require.NoError(t, pass(time.Second))
	}
	require.ErrorIs(t, pass(time.Second), p2psap.ErrPeerClosed)
	nb.leftAt = r.ran.total
	calls := 0
	for pass(time.Hour) == nil { // also one that always stands still comes to an end
		calls++
	}
	require.Equal(t, 7, calls)
}
