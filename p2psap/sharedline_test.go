package p2psap

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/p2pdc/p2pdc/microproto"
	"github.com/p2pdc/p2pdc/microproto/ctp"
)

// Node b has an asynchronous session with a in its cluster, and one with c that needs congestion control: c is in another
// cluster, or the path loses much. Both fill b's port of the switch, so the first one gets congestion control, too, soon and
// for as long as the other is open. a, which has no other session, does not take it back.
func TestSessionSharesItsLine(t *testing.T) {
	const length = 4000
	for name, x := range map[string]struct {
		network Network
		near    microproto.Mode
		far     string // cluster of c
		loss    float64
		shares  bool
	}{
		"far":         {Ethernet, microproto.ModeAsynchronous, "two", 0, true},
		"lossy":       {Ethernet, microproto.ModeAsynchronous, "one", 0.1, true},
		"near":        {Ethernet, microproto.ModeAsynchronous, "one", 0, false},
		"synchronous": {Ethernet, microproto.ModeSynchronous, "two", 0, false},
		"reliable":    {InfiniBand, microproto.ModeAsynchronous, "two", 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, 7)
			at := func(cluster string) func(*NodeConfig) {
				return func(c *NodeConfig) { c.Catalog, c.Rails[0].Network, c.Cluster = ctp.Catalog(), x.network, cluster }
			}
			a, b, c := w.add("a", at("one")), w.add("b", at("one")), w.add("c", at(x.far))
			w.connect()
			w.run(10 * time.Millisecond)
			open := func(p, q *worldNode, mode microproto.Mode) [2]SessionID {
				o := OpenOptions{Name: "s", Mode: mode, Slots: []SlotSpec{{1, length}}}
				one, err := p.Open(w.now, q.Name(), o)
				require.NoError(t, err)
				two, err := q.Open(w.now, p.Name(), o)
				require.NoError(t, err)
				return [2]SessionID{one, two}
			}
			near, far := open(a, b, x.near), open(b, c, microproto.ModeAsynchronous)
			info := func() SessionInfo {
				i, err := a.Info(near[0])
				require.NoError(t, err)
				return i
			}
			label, slot := Label(0), Slot{Tag: 1, Data: make([]byte, length)}
			play := func(span time.Duration) {
				for end := w.now.Add(span); w.now < end; w.run(10 * time.Millisecond) {
					label++
					_, _ = a.Send(w.now, near[0], 1, label, slot.Data)
					_, _ = b.Send(w.now, near[1], 1, label, slot.Data)
					b.peer("c").metrics.Loss = x.loss
					_, _ = b.Send(w.now, far[0], 1, label, slot.Data)
					_, _ = c.Send(w.now, far[1], 1, label, slot.Data)
					_, _ = a.Receive(w.now, near[0], &slot)
					_, _ = b.Receive(w.now, near[1], &slot)
				}
			}
			play(200 * time.Millisecond)
			require.Equal(t, x.shares, info().Conditions.Lossy)
			play(30 * time.Second)
			require.Equal(t, x.shares, info().Conditions.Lossy)
			if !x.shares {
				require.Zero(t, info().Changes)
				return
			}
			require.Contains(t, info().Composition, "DCCPAck")
			require.EqualValues(t, 1, info().Changes)
			b.Close(w.now, far[0])
			c.Close(w.now, far[1])
			play(10 * time.Second)
			require.False(t, info().Conditions.Lossy)
			require.EqualValues(t, 2, info().Changes)
		})
	}
}
