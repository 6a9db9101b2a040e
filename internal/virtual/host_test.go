package virtual

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/p2pdc/p2pdc/internal/exchange"
	"github.com/p2pdc/p2pdc/microproto"
	"github.com/p2pdc/p2pdc/p2psap"
	"github.com/p2pdc/p2pdc/solver/iterate"
)

// A peer whose neighbour closed its sessions without a verdict fails after VerdictTime.
func TestNoVerdictAfterNeighbourHasLeft(t *testing.T) {
	w := &stopped{}
	h := NewHost(w, Config{Config: exchange.Config{Peer: pair{}}})
	h.Phase = Running
	h.Exchange.Neighbours()[0].Agree = gone{}
	h.Exchange.TouchAll()
	_, err := h.Exchange.Poll(0)
	require.NoError(t, err)
	w.now = 1
	h.Turn()
	require.Equal(t, microproto.Instant(1).Add(VerdictTime), w.wake)
	w.now = w.wake - 1
	h.Turn()
	require.NoError(t, w.fault)
	w.now = w.wake
	h.Turn()
	require.ErrorIs(t, w.fault, p2psap.ErrPeerClosed)
	require.ErrorContains(t, w.fault, "left too early by rank 1: no verdict 1h0m0s after it had left")
}

// stopped is a World whose time the test sets.
type stopped struct {
	World
	now   microproto.Instant
	wake  microproto.Instant
	fault error
}

func (w *stopped) Now() microproto.Instant { return w.now }
func (w *stopped) Fail(_ *Host, err error) { w.fault = err }

func (w *stopped) Wake(_ *Host, at microproto.Instant) { w.wake = at }

// gone is a session that the other end has closed.
type gone struct{ exchange.Session }

func (gone) Receive(*p2psap.Slot, bool) (p2psap.Arrival, error) {
	return p2psap.Arrival{}, p2psap.ErrPeerClosed
}

// pair is a peer with one neighbour.
type pair struct{ exchange.Peer }

func (pair) Links() []iterate.Link { return []iterate.Link{{Rank: 1, Agreement: 8}} }
