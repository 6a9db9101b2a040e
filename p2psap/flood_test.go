package p2psap

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/p2pdc/p2pdc/microproto"
	"github.com/p2pdc/p2pdc/microproto/ctp"
)

// wire carries what a node sends at a rate. Its link holds a number of bytes, like the send queue of a socket, and is
// full then until half of them have left.
type wire struct {
	each  time.Duration // per byte
	holds int
	free  microproto.Instant // when it has sent what the link holds
	full  bool
	cut   bool // what leaves is lost
}

// carries returns the time that n bytes take.
func (w *wire) carries(n int) time.Duration { return time.Duration(n) * w.each }

// flush offers the link the frames that wait.
func (w *wire) flush(n *worldNode) {
	now := n.w.now
	for !w.full {
		frames, taken := n.Frames(0), 0
		for ; taken < len(frames) && !w.full; taken++ {
			f := frames[taken]
			if w.full = w.free.Sub(now)+w.carries(len(f.Data)) > w.carries(w.holds); w.full {
				n.w.after(w.free.Sub(now)-w.carries(w.holds)/2, func() { w.full = false })
				break
			}
			w.free = max(w.free, now).Add(w.carries(len(f.Data)))
			to := n.w.nodes[f.Peer-1]
			f.Peer = microproto.LinkAddr(n.index + 1)
			if !w.cut {
				n.w.after(w.free.Sub(now)+n.w.latency, func() { to.Input(n.w.now, 0, f) })
			}
		}
		if n.Sent(0, taken); taken == 0 {
			return
		}
	}
}

// trainLink is a link of the world that takes trains.
type trainLink struct{ namedLink }

func (trainLink) Caps(microproto.Mode) microproto.Caps {
	return microproto.Caps{MTU: 1400, Train: 61 << 10}
}

// wired returns two nodes of one cluster. a sends over a wire of 200 Mbit/s, behind a link that holds two trains.
func wired(t *testing.T, change func(*NodeConfig)) (w *world, a, b *worldNode) {
	w = newWorld(t, 7)
	w.latency = 100 * time.Microsecond
	node := func(name string) *worldNode {
		return w.add(name, func(c *NodeConfig) {
			c.Catalog = ctp.Catalog()
			c.Rails[0] = Rail{Network: Ethernet, Link: trainLink{namedLink{worldLink: worldLink{w}, self: name}}}
			c.Cluster = "one"
			if change != nil {
				change(c)
			}
		})
	}
	a, b = node("a"), node("b")
	w.connect()
	w.run(100 * time.Millisecond)
	a.wire = &wire{each: 40 * time.Nanosecond, holds: 122 << 10}
	return w, a, b
}

// openBoth opens a session at both ends.
func openBoth(w *world, a, b *worldNode, o OpenOptions) (at, to SessionID) {
	at, err := a.Open(w.now, b.Name(), o)
	require.NoError(w.t, err)
	to, err = b.Open(w.now, a.Name(), o)
	require.NoError(w.t, err)
	require.True(w.t, w.until(time.Second, func() bool {
		return a.state(at) == SessionOpen && b.state(to) == SessionOpen
	}))
	return at, to
}

// Eight asynchronous sessions offer five times what the wire carries. An agreement message arrives within 2 ms and
// the time that the wire takes for one value, and none has to be sent again, although the window is too small for the
// values that wait.
func TestAgreementPassesAFlood(t *testing.T) {
	const valueBytes, floods = 128 << 10, 8
	w, a, b := wired(t, func(c *NodeConfig) { c.Limits.QueuedFrames = 20 })
	agree, agreed := openBoth(w, a, b, OpenOptions{
		Name: "agree", Mode: microproto.ModeSynchronous, Class: ClassAgreement, Slots: []SlotSpec{{Length: 64}},
	})
	var faces [floods]SessionID
	for i := range faces {
		faces[i], _ = openBoth(w, a, b, OpenOptions{
			Name: fmt.Sprintf("halo%d", i), Mode: microproto.ModeAsynchronous, Slots: []SlotSpec{{Length: valueBytes}},
		})
	}
	value, message, slot := make([]byte, valueBytes), make([]byte, 64), Slot{Data: make([]byte, 64)}
	each := a.wire.carries(valueBytes) / 5
	worst := time.Duration(0)
	for i := range 2000 {
		_, err := a.Send(w.now, faces[i%floods], 0, Label(i), value)
		require.NoError(t, err)
		if i%20 == 10 {
			began := w.now
			_, err := a.Send(w.now, agree, 0, Label(i), message)
			require.NoError(t, err)
			require.True(t, w.until(time.Second, func() bool {
				_, err := b.Receive(w.now, agreed, &slot)
				return err == nil
			}))
			worst = max(worst, w.now.Sub(began))
		}
		w.run(each)
	}
	require.LessOrEqual(t, worst, 2*time.Millisecond+a.wire.carries(valueBytes))
	info, err := a.Info(agree)
	require.NoError(t, err)
	require.Zero(t, info.Retransmitted)
	require.NotZero(t, a.Counters().FramesDropped, "the window was full")
	require.Greater(t, a.Counters().FramesReplaced, uint64(1000))
}

// Between clusters a congestion window bounds what is in flight. On a wire without loss the window only grows, but
// values that wait for a full link stay young. The test offers five times the rate of the wire.
func TestAgeBehindAFullLink(t *testing.T) {
	for _, bytes := range []int{8 << 10, 128 << 10} {
		w, a, b := wired(t, func(c *NodeConfig) { c.Cluster = c.Name })
		from, to := openBoth(w, a, b, OpenOptions{
			Name: "s", Mode: microproto.ModeAsynchronous, Slots: []SlotSpec{{Length: bytes}},
		})
		value, slot := make([]byte, bytes), Slot{Data: make([]byte, bytes)}
		each := a.wire.carries(bytes) / 5
		var sent []microproto.Instant
		var ages []time.Duration
		began := w.now
		for i := 0; w.now.Sub(began) < 3*time.Second; i++ {
			sent = append(sent, w.now)
			_, err := a.Send(w.now, from, 0, Label(i), value)
			require.NoError(t, err)
			w.run(each)
			arrival, err := b.Receive(w.now, to, &slot)
			require.NoError(t, err)
			if arrival.Fresh && w.now.Sub(began) > time.Second {
				ages = append(ages, w.now.Sub(sent[arrival.Label]))
			}
		}
		slices.Sort(ages)
		require.Greater(t, len(ages), int(2*time.Second/each/5/2), "%d bytes: half of what the wire carries", bytes)
		require.LessOrEqual(t, ages[len(ages)/2], 5*time.Millisecond+3*a.wire.carries(bytes), "%d bytes", bytes)
	}
}

// An agreement message that was sent during an outage arrives at most AgreementRTOMax after its end; another one may
// wait a second. An outage of three seconds does not count as loss.
func TestAgreementAfterAnOutage(t *testing.T) {
	for class, most := range map[Class]time.Duration{ClassAgreement: AgreementRTOMax, ClassFace: time.Second} {
		w, a, b := wired(t, nil)
		from, to := openBoth(w, a, b, OpenOptions{
			Name: "s", Mode: microproto.ModeSynchronous, Class: class, Slots: []SlotSpec{{Length: 64}},
		})
		slot, waited := Slot{Data: make([]byte, 64)}, []time.Duration{}
		for i := range 10 {
			a.wire.cut = true
			_, err := a.Send(w.now, from, 0, Label(i), slot.Data)
			require.NoError(t, err)
			w.run(3*time.Second - time.Duration(i)*7*time.Millisecond)
			a.wire.cut = false
			began := w.now
			require.True(t, w.until(2*time.Second, func() bool {
				_, err := b.Receive(w.now, to, &slot)
				return err == nil
			}))
			waited = append(waited, w.now.Sub(began))
			w.run(10 * time.Millisecond)
			if i > 0 {
				continue
			}
			info, err := a.Info(from)
			require.NoError(t, err)
			require.False(t, info.Conditions.Lossy)
			require.Less(t, info.Retransmitted, uint64(lossFrames))
		}
		require.LessOrEqual(t, slices.Max(waited), most+time.Millisecond, "class %d", class)
		require.Greater(t, slices.Max(waited), most/10, "class %d", class)
	}
}
