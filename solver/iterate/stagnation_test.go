package iterate

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Sweeps that are made while values are under way are no work: the solution is not out of reach because they change nothing.
func TestSweepsOfARoundTrip(t *testing.T) {
	e := &snapshotRule{verdicts: verdicts{p: &Coordination{Spent: 1 << 20, Now: time.Second}}}
	require.Equal(t, float64(1<<20), e.work(0), "the round trip is unknown")
	e.scheduler.newestRound = 10 * time.Millisecond
	require.Equal(t, float64(100*sweepsPerRound), e.work(0))
	e.scheduler.newestRound = time.Nanosecond
	require.Equal(t, float64(1<<20), e.work(0))
}
