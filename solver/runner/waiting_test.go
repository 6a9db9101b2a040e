package runner

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/p2pdc/p2pdc/internal/exchange"
	"github.com/p2pdc/p2pdc/p2psap"
	"github.com/p2pdc/p2pdc/solver/iterate"
	"github.com/p2pdc/p2pdc/solver/problem"
)

// Time during which the process was stopped does not count as a delay of others. The timeout still ends.
func TestVerdictTimeoutCountsRunningTimeOnly(t *testing.T) {
	grace := 8 * time.Second
	r := &Runner{config: Config{Grace: grace}, stopping: true}
	now := time.Duration(0)
	pass := func(d time.Duration) (err error) {
		now += d
		r.nextTimeout, err = r.exchange.Age(r.ran.at(now, r.tick()), r.verdictTimeout())
		return err
	}
	leave := func() {
		r.exchange = exchange.New(exchange.Config{Peer: linked{}, Name: func(iterate.Rank) string { return "gone" }})
		r.exchange.Neighbours()[0].Agree = gone{}
		r.exchange.TouchAll()
		_, err := r.exchange.Poll(now)
		require.NoError(t, err)
		require.NoError(t, pass(0))
	}
	leave()
	require.NoError(t, pass(time.Hour), "it was stopped")
	require.LessOrEqual(t, r.deadline(), now+r.tick(), "it looks again soon")
	for range 6 {
		require.NoError(t, pass(time.Second))
	}
	require.ErrorIs(t, pass(time.Second), p2psap.ErrPeerClosed)
	leave()
	calls := 0
	for pass(time.Hour) == nil { // also a process that is stopped again and again comes to an end
		calls++
	}
	require.Equal(t, 7, calls)
}

// A peer that was asked for an early end ends alone soon after it, once the path to a neighbour carries nothing.
func TestCutOff(t *testing.T) {
	path := &infoSocket{}
	r := &Runner{config: Config{Grace: time.Hour}, sessions: []*session{{Socket: &infoSocket{}}, {Socket: path}}}
	r.stopping, r.stopRequestedAt = true, time.Minute
	require.False(t, r.cutOff(time.Minute+cutOffAfter), "the path works")
	path.info.PathDown = "ether carries nothing"
	require.False(t, r.cutOff(time.Minute+2*cutOffAfter-1), "it does not look at every call")
	require.True(t, r.cutOff(time.Minute+2*cutOffAfter))
}

// infoSocket has no more than a description.
type infoSocket struct {
	Socket
	info p2psap.SessionInfo
}

func (s *infoSocket) Info() p2psap.SessionInfo { return s.info }

// linked is a peer with one neighbour.
type linked struct{ exchange.Peer }

func (linked) Links() []iterate.Link { return []iterate.Link{{Rank: 1, Agreement: 8}} }

// gone is a session that the other end has closed.
type gone struct{ exchange.Session }

func (gone) Receive(*p2psap.Slot, bool) (p2psap.Arrival, error) {
	return p2psap.Arrival{}, p2psap.ErrPeerClosed
}

// values stands for the newest iterate of a peer.
type values struct{ problem.Peer }

func (values) Values(dst []float64, _ problem.Box) { dst[0] = 7 }

// A copy that is still being made when the runner is closed reads no array that the next run may use.
func TestNoValuesAfterClose(t *testing.T) {
	r := &Runner{gridPeer: values{}, end: func() {}}
	read, u := r.valuesUntilClose(), []float64{0}
	require.True(t, read(u, problem.Box{}))
	require.Equal(t, []float64{7}, u)
	r.Close()
	u[0] = 0
	require.False(t, read(u, problem.Box{}))
	require.Equal(t, []float64{0}, u)
}
