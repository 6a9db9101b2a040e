package p2psap

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/p2pdc/p2pdc/microproto"
)

// One of two cables is pulled 20 times: its frames are lost until the link of the base rail sends over another one. Messages
// go on then, without waiting for a time-out. None is lost or comes twice.
func TestMessagesGoOnOverAnotherCable(t *testing.T) {
	for _, mode := range []microproto.Mode{microproto.ModeSynchronous, microproto.ModeAsynchronous} {
		for _, cluster := range []string{"one", "other"} {
			for _, silent := range []time.Duration{2 * ms, 800 * ms} {
				t.Run(fmt.Sprint(mode, " ", cluster, " ", silent), func(t *testing.T) {
					d := quietTwoNodes(1, ms)
					d.start(mode, func(i int, c *NodeConfig) {
						c.PeerTimeout, c.Heartbeat = 10*time.Second, time.Second
						c.Cluster = []string{"one", cluster}[i]
					})
					require.Empty(t, d.ends[0].n.Rails("b"))
					for range 20 {
						require.LessOrEqual(t, d.gaps(100*ms), 8*ms)
						d.block([]int{0, 1}, true)
						d.clock.After(silent, func() {
							d.block([]int{0, 1}, false)
							for i, e := range d.ends {
								peer := e.n.peer(string(rune('b' - i)))
								e.n.RailEvent(d.clock.Now(), 0, microproto.LinkEvent{Peer: peer.Link + 1, Up: true, Route: "of another"})
								e.n.RailEvent(d.clock.Now(), 0, microproto.LinkEvent{
									Peer: peer.Link, Up: true, Route: "over two; one is down", Err: errors.New("pulled"),
								})
								e.settle()
							}
						})
						require.LessOrEqual(t, d.gaps(silent+100*ms), silent+18*ms)
						require.NoError(t, d.fault)
					}
					for i, e := range d.ends {
						require.Equal(t, []RailInfo{{Ethernet, true, "", 0, true, "over two; one is down"}},
							e.n.Rails(string(rune('b'-i))))
						require.Equal(t, "over two; one is down", d.info(i).NetworkReason)
						require.Zero(t, d.info(i).Moves)
					}
				})
			}
		}
	}
}

// When the link has left a cable, the control connection, which may take the same one, is replaced at once, not after
// three heartbeats.
func TestControlLeavesACableToo(t *testing.T) {
	d := quietTwoNodes(1, ms)
	d.start(microproto.ModeSynchronous, longHeartbeat)
	d.gaps(100 * ms)
	wires := d.wires
	d.beDeaf(time.Minute)
	for i, e := range d.ends {
		peer := e.n.peer(string(rune('b' - i)))
		e.n.RailEvent(d.clock.Now(), 0, microproto.LinkEvent{Peer: peer.Link, Up: true, Route: "over two", Err: errors.New("pulled")})
		e.settle()
	}
	d.gaps(50 * ms)
	require.Equal(t, wires+1, d.wires)
	require.NoError(t, d.fault)
}
