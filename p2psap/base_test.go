package p2psap

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/p2pdc/p2pdc/microproto"
)

// block has the base rail carry nothing from the ends named, while the control connection works.
func (d *twoNodes) block(ends []int, on bool) {
	for _, end := range ends {
		d.link.Partition(end, on)
	}
}

// Where the base rail carries nothing in one direction or in both while the control connection works, both ends say so
// within seconds. Sessions go on over the rail that stands by, and back on the base rail when that works again. No
// message is lost or comes twice.
func TestBaseCarriesNothing(t *testing.T) {
	for _, mode := range []microproto.Mode{microproto.ModeSynchronous, microproto.ModeAsynchronous} {
		for _, cluster := range []string{"one", "other"} {
			for _, ends := range [][]int{{0}, {1}, {0, 1}} {
				t.Run(fmt.Sprint(mode, " ", cluster, " ", ends), func(t *testing.T) {
					d := quietTwoNodes(1, ms)
					d.cables = &[2]cable{}
					d.start(mode, func(i int, c *NodeConfig) {
						c.PeerTimeout, c.Heartbeat = 10*time.Second, time.Second
						c.Rails[1].Standby, c.Rails[1].Synchronous = true, true
						c.Cluster = []string{"one", cluster}[i]
						c.Monitor.RailDwell = time.Second
					})
					d.gaps(time.Second)
					require.Zero(t, d.ends[0].n.Rails("b")[0].Failures)
					require.False(t, d.ends[0].n.Rails("b")[0].Up)
					require.Equal(t, Ethernet, d.info(0).Conditions.Network)
					d.block(ends, true)
					require.LessOrEqual(t, d.gaps(20*time.Second), 4500*ms)
					require.LessOrEqual(t, d.gaps(time.Second), 8*ms)
					require.NoError(t, d.fault)
					for i, e := range d.ends {
						rails := e.n.Rails(string(rune('b' - i)))
						require.Len(t, rails, 2)
						require.Equal(t, RailInfo{InfiniBand, true, "", 0, false, ""}, rails[0])
						require.False(t, rails[1].Up)
						require.Contains(t, rails[1].Reason, "ether carries nothing from ")
						require.Equal(t, InfiniBand, d.info(i).Conditions.Network)
						require.EqualValues(t, 1, d.info(i).Moves)
					}
					d.block(ends, false)
					require.LessOrEqual(t, d.gaps(5*time.Second), 8*ms)
					require.NoError(t, d.fault)
					for i, e := range d.ends {
						require.Equal(t, Ethernet, d.info(i).Conditions.Network)
						rails := e.n.Rails(string(rune('b' - i)))
						require.Equal(t, RailInfo{Ethernet, true, "", 1, true, ""}, rails[1])
					}
				})
			}
		}
	}
}

// Before a session has measured the round trip, that of the control channel counts: frames on a long path have not arrived yet.
func TestBaseOfALongPath(t *testing.T) {
	d := quietTwoNodes(1, ms)
	d.cables = &[2]cable{}
	d.start(microproto.ModeSynchronous, func(i int, c *NodeConfig) {
		c.PeerTimeout, c.Heartbeat = time.Minute, time.Second
		c.Rails[1].Standby, c.Rails[1].Synchronous = true, true
		c.Cluster = []string{"one", "other"}[i]
		c.Monitor.RailDwell = time.Second
	})
	d.gaps(time.Second)
	for _, e := range d.ends {
		e.n.peers[0].RTT = 3 * time.Second
	}
	d.block([]int{0, 1}, true)
	d.gaps(7 * time.Second)
	require.False(t, d.ends[0].n.peers[0].paths.Base.Down())
	d.gaps(3 * time.Second)
	require.True(t, d.ends[0].n.peers[0].paths.Base.Down())
}

func (d *twoNodes) info(end int) SessionInfo {
	info, err := d.ends[end].n.Info(d.ends[end].id)
	if err != nil {
		d.fail(err)
	}
	return info
}

// Without another rail, a short stop is survived. After a longer one than the peer time-out the peer is lost at both
// ends, for the reason that holds.
func TestBaseIsTheOnlyRail(t *testing.T) {
	for _, mode := range []microproto.Mode{microproto.ModeSynchronous, microproto.ModeAsynchronous} {
		for _, ends := range [][]int{{0}, {1}, {0, 1}} {
			t.Run(fmt.Sprint(mode, " ", ends), func(t *testing.T) {
				d := quietTwoNodes(1, ms)
				d.start(mode, func(_ int, c *NodeConfig) { c.PeerTimeout, c.Heartbeat = 10*time.Second, time.Second })
				d.gaps(time.Second)
				d.block(ends, true)
				d.clock.After(5*time.Second, func() { d.block(ends, false) })
				require.LessOrEqual(t, d.gaps(8*time.Second), 7*time.Second)
				require.NoError(t, d.fault)
				require.LessOrEqual(t, d.gaps(time.Second), 8*ms)
				d.block(ends, true)
				d.deadly = true
				for _, e := range d.ends { // afterwards nothing more is sent, and no user asks
					for k := range 15 {
						d.clock.After(time.Duration(k)*100*ms, func() { e.sendUnder(1) })
					}
				}
				d.until(14*time.Second, "not lost", func() bool {
					a, _ := d.ends[0].n.Peer("b")
					b, _ := d.ends[1].n.Peer("a")
					return a == PeerLost && b == PeerLost
				})
				require.NoError(t, d.fault)
				for i, e := range d.ends {
					_, err := e.n.Peer(string(rune('b' - i)))
					lost, is := errors.AsType[*PeerLostError](err)
					require.True(t, is)
					require.Contains(t, lost.Error(), "ether carries nothing from ")
				}
			})
		}
	}
}
