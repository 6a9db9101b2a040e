package p2psap

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/p2pdc/p2pdc/microproto"
	"github.com/p2pdc/p2pdc/microproto/ctp"
)

// An idle session costs nothing: in every column, also after losses, no timer is left but the heartbeats of
// the control channel, and no frame is sent.
func TestIdleSessionHasNoTimer(t *testing.T) {
	for _, column := range microproto.Columns() {
		if column.InfiniBand && !column.Intra {
			continue // as the intra-cluster one
		}
		for _, loss := range []float64{0, 0.1} {
			if loss > 0 && column.InfiniBand {
				continue // it promises to lose none
			}
			name := column.String()
			if loss > 0 {
				name += ", with losses"
			}
			t.Run(name, func(t *testing.T) {
				w := newWorld(t, 11)
				at := func(cluster string) func(*NodeConfig) {
					return func(c *NodeConfig) {
						c.Catalog, c.PeerTimeout = ctp.Catalog(), time.Hour
						if !column.InfiniBand {
							c.Rails[0].Network = Ethernet
						}
						if !column.Intra {
							c.Cluster = cluster
						}
					}
				}
				a, b := w.add("a", at("one")), w.add("b", at("two"))
				w.connect()
				w.run(10 * time.Millisecond)
				sa, sb := openAs(t, w, a, b, column.Mode)
				w.frameLoss = loss
				for k := range uint64(40) {
					swap(t, w, a, b, sa, sb, column.Mode, k)
				}
				w.frameLoss = 0
				w.run(20 * time.Second)
				before := [2]uint64{a.Counters().FramesIn, b.Counters().FramesIn}
				require.NotZero(t, before[0])
				beats := 0
				for end := w.now.Add(10 * time.Minute); w.now < end; {
					for _, n := range []*worldNode{a, b} {
						p := n.peers[0]
						// A heartbeat is all that is left.
						require.Equal(t, microproto.Never, n.timers.First(), n.Name())
						require.Equal(t, microproto.Never, (*controlHost)(n.Node).Deadline(p.Peer), n.Name())
						require.Equal(t, n.associations.Deadline(), n.Deadline(), n.Name())
						require.Less(t, n.Deadline(), p.LastHeard.Add(n.config.PeerTimeout), n.Name())
						require.Empty(t, n.Frames(0))
					}
					w.step(end)
					beats++
				}
				require.Less(t, beats, 2*2*600+10, "two ends, a heartbeat a second, sent and received")
				require.Equal(t, before, [2]uint64{a.Counters().FramesIn, b.Counters().FramesIn})
				swap(t, w, a, b, sa, sb, column.Mode, 1007) // and it works at once
				require.Positive(t, receiveAll(t, a, sa, column.Mode)+receiveAll(t, b, sb, column.Mode))
			})
		}
	}
}

func openAs(t *testing.T, w *world, a, b *worldNode, m microproto.Mode) (sa, sb SessionID) {
	t.Helper()
	o := syncOptions("s")
	o.Mode = m
	sa, err := a.Open(w.now, "b", o)
	require.NoError(t, err)
	sb, err = b.Open(w.now, "a", o)
	require.NoError(t, err)
	require.True(t, w.until(time.Second, func() bool { return a.state(sa) == SessionOpen && b.state(sb) == SessionOpen }))
	return sa, sb
}

// swap sends a message each way, lets some time pass, and receives what has arrived.
func swap(t *testing.T, w *world, a, b *worldNode, sa, sb SessionID, m microproto.Mode, k uint64) {
	t.Helper()
	data := make([]byte, 64)
	for _, x := range []struct {
		n *worldNode
		s SessionID
	}{{a, sa}, {b, sb}} {
		_, err := x.n.Send(w.now, x.s, 1, Label(k+1), data)
		require.NoError(t, err)
	}
	w.run(5 * time.Millisecond)
	if k%8 != 7 { // what is not received waits
		receiveAll(t, a, sa, m)
		receiveAll(t, b, sb, m)
	}
}

func receiveAll(t *testing.T, n *worldNode, s SessionID, m microproto.Mode) (count int) {
	t.Helper()
	for {
		got, err := n.Receive(n.w.now, s, &Slot{Tag: 1, Data: make([]byte, 64)})
		if err == ErrNothing || err == nil && m == microproto.ModeAsynchronous && !got.Fresh {
			n.w.settle()
			return count
		}
		require.NoError(t, err)
		count++
	}
}
