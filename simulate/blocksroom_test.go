package simulate

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/p2pdc/p2pdc/microproto"
	"github.com/p2pdc/p2pdc/simulate/cluster"
)

// Synchronous frames of InfiniBand wait for registered blocks: 1000 are 1.5 MB here. Asynchronous ones are refused behind
// 208 KiB, so that newer values replace them in the node. A given send queue bounds both.
func TestInfiniBandTakesSynchronousFramesWhileThereAreBlocks(t *testing.T) {
	for _, c := range []struct {
		mode  microproto.Mode
		queue int
		most  int // trains of 40 000 bytes
	}{
		{microproto.ModeSynchronous, 0, 38}, {microproto.ModeAsynchronous, 0, 6},
		{microproto.ModeSynchronous, 80_000, 2}, {microproto.ModeAsynchronous, 80_000, 2},
	} {
		m := gigabit(2)
		m.Networks[0].Kind = cluster.IB
		e := still(m)
		e.run.SendQueue = c.queue
		e.connect(len(m.Hosts))
		sent := 0
		train := func() microproto.Frame {
			f := e.train(1, 40, 962)
			f.Mode = c.mode
			return f
		}
		for e.hosts[0].Carry(nil, 0, train()) {
			sent++
		}
		require.InDelta(t, c.most, sent, 1, "%v, %d bytes", c.mode, c.queue)
	}
}
