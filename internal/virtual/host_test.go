package virtual

import (
	"testing"

	"github.com/p2pdc/p2pdc/microproto"
	"github.com/p2pdc/p2pdc/p2psap"
	"github.com/p2pdc/p2pdc/solver/iterate"
	"github.com/p2pdc/p2pdc/solver/problem"
	"github.com/stretchr/testify/require"
)

// A peer whose neighbour closed its sessions without a verdict fails after VerdictTime.
func TestNoVerdictAfterNeighbourHasLeft(t *testing.T) {
	w := &stopped{}
	h := NewHost(w, Config{Peer: pair{}})
	h.Phase, h.waiting = Running, true
	nb := h.neighbours[0]
	nb.left, h.departing = 1, true
	w.now = nb.left.Add(VerdictTime - 1)
	h.Turn()
	require.NoError(t, w.fault)
	w.now = nb.left.Add(VerdictTime)
	h.Turn()
	require.ErrorIs(t, w.fault, p2psap.ErrPeerClosed)
	require.ErrorContains(t, w.fault, "neighbour 1: no verdict 1h0m0s after it had left")
}

// stopped is a World whose time the test sets.
type stopped struct {
	World
	now   microproto.Instant
	fault error
}

func (w *stopped) Now() microproto.Instant { return w.now }
func (w *stopped) Fail(_ *Host, err error) { w.fault = err }

// pair is a peer with one neighbour.
type pair struct{ problem.Peer }

func (pair) Links() []iterate.Link { return []iterate.Link{{Rank: 1, Agreement: 8}} }
