package launch

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"github.com/p2pdc/p2pdc/obstacle/internal/rendezvous"
)

// watched is a run in progress of so many peers, without connections.
func watched(timeout time.Duration, peers int) *run {
	r := &run{Plan: Plan{PeerTimeout: timeout, Log: zerolog.Nop()}, every: lookEvery(timeout), happen: make(chan occurrence, 16)}
	for rank := range peers {
		r.members = append(r.members, &member{rank: rank, out: make(chan rendezvous.Message, outbox)})
	}
	return r
}

// A peer is silent after as many looks as the peer timeout takes, and no time between two
// looks, however long, counts as more than one.
func TestSilenceIsCountedInLooks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, timeout := range []time.Duration{20 * time.Millisecond, time.Second, time.Hour} {
			r := watched(timeout, 2)
			most := r.looks(timeout)
			require.GreaterOrEqual(t, time.Duration(most)*r.every, timeout, "not before the timeout")
			for range most - 1 {
				r.listen()
			}
			<-time.After(10 * timeout) // the launcher stands still
			r.listen()
			require.Nil(t, r.failure)
			r.handle(occurrence{of: r.members[0], bytes: 8}) // what came meanwhile
			r.listen()
			require.Contains(t, r.failure.text, "peer 1 has been silent for more than")
			require.False(t, r.members[0].gone)
			require.True(t, r.members[1].gone)
		}
	})
}

// A process that has ended is not judged before what it had sent is read: its result may be
// there. One that the launcher keeps waiting will send nothing more.
func TestEndOfAProcessWaitsForItsMessages(t *testing.T) {
	killed := errors.New("signal: killed")
	r := watched(time.Second, 3)
	a, b, c := r.members[0], r.members[1], r.members[2]
	r.handle(occurrence{of: a, exited: true})
	r.handle(occurrence{of: a, message: rendezvous.Result{Reason: Converged, Lost: -1}})
	r.handle(occurrence{of: a, closed: errors.New("end of stream")})
	require.Nil(t, r.failure)
	require.NotNil(t, a.result)
	r.handle(occurrence{of: b, exited: true, exit: killed})
	require.Nil(t, r.failure)
	r.handle(occurrence{of: b, closed: errors.New("end of stream")})
	require.Equal(t, "peer 1 ended: signal: killed", r.failure.text)
	r.failure = nil
	r.handle(occurrence{of: c, exited: true, exit: killed})
	c.held.Store(true)
	r.listen()
	require.Equal(t, "peer 2 ended: signal: killed", r.failure.text)
}

// What has happened already counts, however late it is looked at.
func TestEndsWithin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		done := make(chan struct{})
		begin := time.Now()
		require.False(t, endsWithin(time.Second, done))
		require.GreaterOrEqual(t, time.Since(begin), time.Second)
		time.AfterFunc(500*time.Millisecond, func() { close(done) })
		begin = time.Now()
		require.True(t, endsWithin(time.Second, done))
		require.Equal(t, 500*time.Millisecond, time.Since(begin))
		require.True(t, endsWithin(0, done))
	})
}
