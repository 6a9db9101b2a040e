package p2psap

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/p2pdc/p2pdc/microproto"
)

// A path that carries long frames costs one heartbeat of each end, and no probe unless its round trip is longer than the
// time to the first.
func TestLongFramesPassWithoutProbes(t *testing.T) {
	for _, latency := range []time.Duration{ms, 40 * ms, 150 * ms} {
		d := quietTwoNodes(1, latency)
		d.mtu = 1400
		probes := 0
		d.tap = func(_ int, frame []byte) bool {
			if len(frame) == probeBytes {
				probes++
			}
			return true
		}
		d.start(microproto.ModeAsynchronous, longHeartbeat)
		d.gapsOf(2, 3*time.Second)
		require.NoError(t, d.fault)
		require.Equal(t, 2*latency > firstEvery, probes > 0, latency)
		for i, e := range d.ends {
			f := &e.n.peer([]string{"b", "a"}[i]).frames
			require.NotZero(t, f.heard.LongFrames, "%v, end %d", latency, i)
			require.Zero(t, f.first.next)
			require.Zero(t, e.n.peer([]string{"b", "a"}[i]).frameLimit)
		}
	}
}

// What begins with many losses is no narrow path: short frames are lost, too.
func TestLossIsNoNarrowPath(t *testing.T) {
	for seed := range uint64(20) {
		d := quietTwoNodes(seed, 5*ms)
		d.mtu = 1400
		d.tap = func(int, []byte) bool { return d.rand.Float64() > 0.2 }
		d.start(microproto.ModeAsynchronous, longHeartbeat)
		d.gapsOf(2, time.Second)
		require.NoError(t, d.fault)
		for i, e := range d.ends {
			require.Zero(t, e.n.peer([]string{"b", "a"}[i]).frameLimit, "seed %d, end %d", seed, i)
		}
	}
}
