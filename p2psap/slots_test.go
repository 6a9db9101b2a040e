package p2psap

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/p2pdc/p2pdc/microproto"
	"github.com/p2pdc/p2pdc/microproto/ctp"
)

// misuse makes every call with a tag or a length that the session does not declare.
func misuse(t *testing.T, w *world, n *worldNode, id SessionID) {
	t.Helper()
	before, err := n.Info(id)
	require.NoError(t, err)
	for _, tag := range []Tag{0, 3, 1 << 31, 1<<32 - 2, 1<<32 - 1} {
		_, err := n.Send(w.now, id, tag, 1, make([]byte, 8))
		require.ErrorIs(t, err, ErrSlot)
		require.ErrorContains(t, err, fmt.Sprintf("tag %d", tag))
		_, _, err = n.SendCoalescing(w.now, id, tag, 1, make([]byte, 8))
		require.ErrorIs(t, err, ErrSlot)
		_, err = n.Receive(w.now, id, &Slot{Tag: tag, Data: make([]byte, 64)})
		require.ErrorIs(t, err, ErrSlot)
	}
	lengths := []int{65, 1 << 20}
	if n.Mode(id) == microproto.ModeAsynchronous {
		lengths = append(lengths, 0, 8, 63)
	}
	for _, length := range lengths {
		_, err := n.Send(w.now, id, 1, 1, make([]byte, length))
		require.ErrorIs(t, err, ErrSlot, "%d bytes", length)
	}
	after, err := n.Info(id)
	require.NoError(t, err)
	require.Equal(t, before.MessagesSent, after.MessagesSent)
	require.Equal(t, before.MessagesReceived, after.MessagesReceived)
}

// Send and Receive refuse tags that the session does not declare and lengths that do not fit the slot in
// every composition: before, during and after a change. Refused Sends take nothing of the receiver's grant.
func TestUndeclaredSlotsAreRefused(t *testing.T) {
	for _, column := range microproto.Columns() {
		t.Run(column.String(), func(t *testing.T) {
			w := newWorld(t, 5)
			node := func(name string) *worldNode {
				return w.add(name, func(c *NodeConfig) {
					c.Catalog, c.Rails[0].Network = ctp.Catalog(), Ethernet
					if column.InfiniBand {
						c.Rails[0].Network = Memory
					}
					if !column.Intra {
						c.Cluster = name
					}
				})
			}
			a, b := node("a"), node("b")
			w.connect()
			require.True(t, w.until(time.Second, func() bool {
				return a.Finding("b").Locality != 0 &&
					b.Finding("a").Locality != 0
			}))
			sa, sb := openAs(t, w, a, b, column.Mode)
			i, err := a.Info(sa)
			require.NoError(t, err)
			require.Equal(t, TableProtocols(column), i.Composition)
			mode, label := column.Mode, Label(0)
			for range 3 {
				for range 1000 { // of 72 bytes each, more than the grant
					_, err := a.Send(w.now, sa, 3, 1, make([]byte, 8))
					require.ErrorIs(t, err, ErrSlot)
				}
				misuse(t, w, a, sa)
				misuse(t, w, b, sb)
				label++
				_, err := a.Send(w.now, sa, 1, label, make([]byte, 64))
				require.NoError(t, err)
				w.run(50 * time.Millisecond)
				got, err := b.Receive(w.now, sb, &Slot{Tag: 1, Data: make([]byte, 64)})
				require.NoError(t, err)
				require.EqualValues(t, label, got.Label)

				other := microproto.ModeSynchronous + microproto.ModeAsynchronous - mode
				_, err = a.Adapt(w.now, sa, other)
				require.NoError(t, err)
				misuse(t, w, a, sa)
				w.run(20 * time.Millisecond)
				misuse(t, w, b, sb)
				_, err = b.Adapt(w.now, sb, other)
				require.NoError(t, err)
				misuse(t, w, b, sb)
				require.True(t, w.until(time.Second, func() bool { return a.Mode(sa) == other && b.Mode(sb) == other }))
				w.run(50 * time.Millisecond)
				mode = other
			}
		})
	}
}

// A session is refused if one end alone declares a tag, or if a tag is reserved. Both ends name the
// difference.
func TestSlotsThatDiffer(t *testing.T) {
	for _, c := range []struct {
		a, b []SlotSpec
		says [2]string
	}{
		{[]SlotSpec{{1, 64}, {2, 8}}, []SlotSpec{{1, 64}}, [2]string{"slot 2: the peer does not declare it",
			"slot 2: only the peer declares it"}},
		{nil, []SlotSpec{{1, 64}}, [2]string{"slot 1: only the peer declares it", "slot 1: the peer does not declare it"}},
		{[]SlotSpec{{1<<32 - 1, 64}}, []SlotSpec{{1<<32 - 1, 64}}, [2]string{"tag 4294967295", "tag 4294967295"}},
		{[]SlotSpec{{1<<32 - 2, 64}}, []SlotSpec{{1<<32 - 2, 64}}, [2]string{"tag 4294967294", "tag 4294967294"}},
	} {
		w := newWorld(t, 5)
		set := func(n *NodeConfig) { n.Catalog, n.Rails[0].Network = ctp.Catalog(), Ethernet }
		a, b := w.add("a", set), w.add("b", set)
		w.connect()
		require.True(t, w.until(time.Second, func() bool {
			return a.Finding("b").Locality != 0 &&
				b.Finding("a").Locality != 0
		}))
		o := syncOptions("s")
		o.Slots = c.a
		sa, err := a.Open(w.now, "b", o)
		require.NoError(t, err)
		o.Slots = c.b
		sb, err := b.Open(w.now, "a", o)
		require.NoError(t, err)
		w.run(time.Second)
		require.ErrorContains(t, a.ended[sa], c.says[0])
		require.ErrorContains(t, b.ended[sb], c.says[1])
	}
}

// Calls of a session that was closed at either end return that, whatever their arguments.
func TestCallsOnAClosedSession(t *testing.T) {
	for _, o := range []OpenOptions{syncOptions("s"), asyncOptions("s")} {
		w, a, b, sa, sb := pair(t, o)
		calls := func(n *worldNode, id SessionID, want error) {
			t.Helper()
			_, err := n.Send(w.now, id, 1, 1, make([]byte, 64))
			require.ErrorIs(t, err, want)
			_, err = n.Send(w.now, id, 9, 1, nil)
			require.ErrorIs(t, err, want)
			_, err = n.Adapt(w.now, id, microproto.ModeSynchronous)
			require.ErrorIs(t, err, want)
			_, err = n.Receive(w.now, id, &Slot{Tag: 1, Data: make([]byte, 64)})
			require.ErrorIs(t, err, want)
		}
		a.Close(w.now, sa)
		calls(a, sa, ErrClosed)
		w.run(time.Second)
		calls(b, sb, ErrPeerClosed)
		_, err := a.Adapt(w.now, sa, 7)
		require.Error(t, err)
		b.Close(w.now, sb)
		b.Close(w.now, sb)
		calls(b, sb, ErrSession)
	}
}

// Unknown modes are refused.
func TestUnknownModes(t *testing.T) {
	w, a, b, sa, _ := pair(t, syncOptions("s"))
	for _, m := range []microproto.Mode{0, 3, 255} {
		_, err := a.Adapt(w.now, sa, m)
		require.ErrorContains(t, err, "sync or async")
		o := syncOptions("t")
		o.Mode = m
		_, err = b.Open(w.now, "a", o)
		require.ErrorContains(t, err, "sync or async")
	}
}
