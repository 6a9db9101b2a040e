package p2psap

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/p2pdc/p2pdc/microproto"
)

// A path that becomes too narrow for the frames of its sessions, or was so when they opened, carries fresh values again
// within five seconds, and within one if it was so when they opened, also where the session is the only one and all of its frames are long.
func TestNarrowedPath(t *testing.T) {
	for _, mode := range []microproto.Mode{microproto.ModeSynchronous, microproto.ModeAsynchronous} {
		for _, cluster := range []string{"one", "other"} {
			for k, from := range []time.Duration{0, 2 * time.Second, 0, 2 * time.Second} {
				mtu := []int{1400, 2200}[k/2] // values take two frames, or one
				t.Run(fmt.Sprint(mode, " ", cluster, " ", from, " ", mtu), func(t *testing.T) {
					d := quietTwoNodes(1, ms)
					d.mtu = mtu
					begin := microproto.Instant(0).Add(from)
					d.tap = func(_ int, frame []byte) bool { return len(frame) <= 1250 || d.clock.Now() < begin }
					d.start(mode, func(i int, c *NodeConfig) {
						c.PeerTimeout, c.Heartbeat = 10*time.Second, time.Second
						c.Cluster = []string{"one", cluster}[i]
					})
					longest := d.gapsOf(2, 12*time.Second)
					t.Log(longest)
					most := 5 * time.Second
					if from == 0 {
						most = time.Second
					}
					require.LessOrEqual(t, longest, most)
					require.LessOrEqual(t, d.gapsOf(2, time.Second), 10*ms)
					require.NoError(t, d.fault)
				})
			}
		}
	}
}
