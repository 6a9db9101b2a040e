package ib

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/p2pdc/p2pdc/ib/internal/verbs/software"
	"github.com/p2pdc/p2pdc/microproto"
)

// In two-way traffic frames carry all the credit: no end has to probe for it or to send it alone.
// Each end answers every frame, many times the number of posted receives.
func TestCreditRidesOnFrames(t *testing.T) {
	for _, mode := range []microproto.Mode{microproto.ModeSynchronous, microproto.ModeAsynchronous} {
		t.Run(mode.String(), func(t *testing.T) {
			r := newRig(t, software.Config{})
			a, b, toB, toA := r.pair(Config{Peers: 1, ReceiveBlocks: 2 * minReceives})
			send := func(l *Link, to microproto.LinkAddr, k uint32) {
				n, err := l.Send([]microproto.Frame{message(l, to, mode, 0, k, 100, false)})
				require.NoError(t, err)
				require.Equal(t, 1, n)
			}
			for k := range uint32(20 * minReceives) {
				received := false
				send(a, toB, k+1)
				pollUntil(t, "a frame", []*Link{b}, func(microproto.Frame) { received = true }, func() bool { return received })
				received = false
				send(b, toA, k+1)
				pollUntil(t, "its answer", []*Link{a}, func(microproto.Frame) { received = true }, func() bool { return received })
			}
			for _, l := range []*Link{a, b} {
				require.Zero(t, l.Stats().CreditsAlone)
				require.Zero(t, l.Stats().Probes)
			}
		})
	}
}
