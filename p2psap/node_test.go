package p2psap

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/p2pdc/p2pdc/microproto"
)

func syncOptions(name string) OpenOptions {
	return OpenOptions{Name: name, Mode: microproto.ModeSynchronous, Slots: []SlotSpec{{1, 64}, {2, 8}}}
}

func asyncOptions(name string) OpenOptions {
	return OpenOptions{Name: name, Mode: microproto.ModeAsynchronous, Slots: []SlotSpec{{1, 64}, {2, 8}}}
}

// pair opens one session between two nodes without faults.
func pair(t *testing.T, o OpenOptions) (w *world, a, b *worldNode, sa, sb SessionID) {
	w = newWorld(t, 7)
	a, b = w.add("a", nil), w.add("b", nil)
	w.connect()
	w.run(10 * time.Millisecond)
	var err error
	sa, err = a.Open(w.now, "b", o)
	require.NoError(t, err)
	w.run(10 * time.Millisecond)
	require.Equal(t, SessionOpening, a.state(sa))
	sb, err = b.Open(w.now, "a", o)
	require.NoError(t, err)
	w.run(10 * time.Millisecond)
	require.Equal(t, SessionOpen, a.state(sa))
	require.Equal(t, SessionOpen, b.state(sb))
	return w, a, b, sa, sb
}

func TestMessagesArrive(t *testing.T) {
	for _, o := range []OpenOptions{syncOptions("s"), asyncOptions("s")} {
		t.Run(o.Mode.String(), func(t *testing.T) {
			w, a, b, sa, sb := pair(t, o)
			tr, err := a.Send(w.now, sa, 2, 5, []byte("8 bytes!"))
			require.NoError(t, err)
			require.Equal(t, Transfer(1), tr)
			w.run(5 * time.Millisecond)
			require.Equal(t, Transfer(1), a.Accepted(sa))
			require.Equal(t, uint64(1), b.Arrivals(sb))
			slot := Slot{Tag: 2, Data: make([]byte, 8)}
			got, err := b.Receive(w.now, sb, &slot)
			require.NoError(t, err)
			require.Equal(t, Arrival{Label: 5, Newest: 5, Length: 8, Fresh: true, Complete: true}, got)
			require.Equal(t, "8 bytes!", string(slot.Data))
			info, err := b.Info(sb)
			require.NoError(t, err)
			require.Equal(t, uint64(1), info.MessagesReceived)
			require.Equal(t, uint64(8), info.BytesReceived)
		})
	}
}

func TestGrantThenClose(t *testing.T) {
	w, a, b, sa, sb := pair(t, syncOptions("s"))
	data := make([]byte, 64)
	for i := 0; i < 4; i++ {
		_, err := a.Send(w.now, sa, 1, Label(i), data)
		require.NoError(t, err)
	}
	_, err := a.Send(w.now, sa, 1, 4, data)
	require.ErrorIs(t, err, ErrBusy)

	// Closing waits for the transfers, and what has arrived outlives the close.
	a.Close(w.now, sa)
	require.Equal(t, SessionLingering, a.state(sa))
	w.run(20 * time.Millisecond)
	require.Equal(t, SessionEnded, a.state(sa))
	require.Equal(t, Transfer(4), a.Accepted(sa))
	slot := Slot{Tag: 1, Data: make([]byte, 64)}
	for i := 0; i < 4; i++ {
		got, err := b.Receive(w.now, sb, &slot)
		require.NoError(t, err)
		require.Equal(t, uint64(i), got.Label)
	}
	_, err = b.Receive(w.now, sb, &slot)
	require.ErrorIs(t, err, ErrPeerClosed)
	require.ErrorIs(t, err, ErrClosed)
	_, err = b.Send(w.now, sb, 1, 9, data)
	require.ErrorIs(t, err, ErrPeerClosed)
	b.Close(w.now, sb)
	b.Close(w.now, sb)
	a.Close(w.now, sa)
	_, err = b.State(sb)
	require.ErrorIs(t, err, ErrSession)
	for _, n := range []*worldNode{a, b} {
		for _, s := range n.sessions {
			require.Nil(t, s)
		}
	}
}

// A transfer whose acknowledgement was lost is complete when the other end closes after having accepted it.
func TestCloseReportsAcceptedTransfers(t *testing.T) {
	w, a, b, sa, sb := pair(t, syncOptions("s"))
	_, err := a.Send(w.now, sa, 2, 1, make([]byte, 8))
	require.NoError(t, err)
	w.settle()
	w.frameLoss = 1 // the acknowledgement
	w.run(5 * time.Millisecond)
	require.Equal(t, uint64(1), b.Arrivals(sb))
	require.Zero(t, a.Accepted(sa))
	b.Close(w.now, sb)
	w.run(5 * time.Millisecond)
	require.Equal(t, SessionRemoteClosed, a.state(sa))
	require.Equal(t, Transfer(1), a.Accepted(sa))
}

func TestLingeringIsBounded(t *testing.T) {
	w, a, _, sa, _ := pair(t, syncOptions("s"))
	w.frameLoss = 1
	_, err := a.Send(w.now, sa, 2, 1, make([]byte, 8))
	require.NoError(t, err)
	start := w.now
	a.Close(w.now, sa)
	require.True(t, w.until(10*time.Second, func() bool { return a.state(sa) == SessionEnded }))
	require.InDelta(t, 2, w.now.Sub(start).Seconds(), 0.1)
	require.Zero(t, a.Accepted(sa))
}

// Frames are checked before any micro-protocol sees them.
func TestUnknownFrames(t *testing.T) {
	w, a, b, _, sb := pair(t, asyncOptions("s"))
	frame := func(peer microproto.LinkAddr, bytes ...byte) {
		b.Input(w.now, 0, microproto.NewBuffer(bytes, nil).Frame(peer, 0, len(bytes)))
	}
	good := make([]byte, HeaderBytes)
	header{epoch: 0, run: b.run, session: sb}.put(good)
	from := b.session(sb).peer.Link
	alter := func(i int) []byte {
		x := append([]byte(nil), good...)
		x[i] ^= 1
		return x
	}
	frame(from)
	frame(from, good[:7]...)
	frame(from, alter(0)...)
	frame(0, good...)
	require.Equal(t, uint64(4), b.Counters().FramesMalformed)
	frame(from, alter(1)...)
	require.Equal(t, uint64(1), b.Counters().FramesOtherEpoch)
	frame(from, alter(2)...)
	require.Equal(t, uint64(1), b.Counters().FramesOtherRun)
	frame(from, alter(4)...)
	frame(from, alter(7)...)
	frame(from+1, good...)
	require.Equal(t, uint64(3), b.Counters().FramesUnknown)
	require.Empty(t, b.Frames(0), "nothing of it is answered")
	require.Zero(t, b.Arrivals(sb))
	_ = a
}

// On a busy link the newest asynchronous value replaces the one that waits, in its place; synchronous frames
// all wait.
func TestBusyLink(t *testing.T) {
	long := []SlotSpec{{1, 4000}, {2, 4000}}
	w, a, _, sa, _ := pair(t, OpenOptions{Name: "s", Mode: microproto.ModeAsynchronous, Slots: long})
	a.busy = true
	data := make([]byte, 4000)
	for i := range 10 {
		for tag := Tag(1); tag <= 2; tag++ {
			_, err := a.Send(w.now, sa, tag, Label(i), data)
			require.NoError(t, err)
		}
	}
	require.Len(t, a.Frames(0), 6)
	require.Equal(t, uint64(54), a.Counters().FramesReplaced)
	label := func(i int) byte { return a.Frames(0)[i].Data[HeaderBytes+1+4+7] }
	for i := range 6 {
		require.Equal(t, byte(9), label(i))
	}
	// Two frames leave; the next value's first segments queue up behind the rest.
	for i := range 2 {
		a.Frames(0)[i].Release()
	}
	a.Sent(0, 2)
	_, err := a.Send(w.now, sa, 1, 10, data)
	require.NoError(t, err)
	require.Len(t, a.Frames(0), 6)
	require.Equal(t, []byte{10, 9, 9, 9, 10, 10}, []byte{label(0), label(1), label(2), label(3), label(4), label(5)})
	a.Close(w.now, sa)
	require.Empty(t, a.Frames(0))

	w, a, _, sa, _ = pair(t, OpenOptions{Name: "s", Mode: microproto.ModeSynchronous, Slots: long})
	a.busy = true
	for i := range 4 {
		_, err := a.Send(w.now, sa, 1, Label(i), data)
		require.NoError(t, err)
	}
	require.Len(t, a.Frames(0), 12)
	require.Zero(t, a.Counters().FramesReplaced)
}

// On a link that promises to lose nothing, a synchronous session fails beyond the bound of waiting frames: no
// micro-protocol would send them again.
func TestWaitingFramesOverflow(t *testing.T) {
	for _, mode := range []microproto.Mode{microproto.ModeSynchronous, microproto.ModeAsynchronous} {
		o := OpenOptions{Name: "s", Mode: mode, Slots: []SlotSpec{{1, 800}, {2, 800}, {3, 800}}}
		w, a, _, sa, _ := pair(t, o)
		a.busy = true
		a.config.Limits.QueuedFrames = 2
		for tag := Tag(1); tag <= 3; tag++ {
			_, _ = a.Send(w.now, sa, tag, 1, make([]byte, 800))
		}
		require.Equal(t, uint64(1), a.Counters().FramesDropped)
		_, err := a.Send(w.now, sa, 1, 2, make([]byte, 800))
		if mode == microproto.ModeSynchronous {
			require.ErrorIs(t, err, ErrLimit)
		} else {
			require.NoError(t, err, "a lost value costs nothing that the next does not bring")
		}
	}
}

func TestSegmentSizeIsTheSmaller(t *testing.T) {
	w := newWorld(t, 3)
	a := w.add("a", func(c *NodeConfig) { c.Rails[0].Link = namedLink{worldLink{w}, "a", 9000} })
	b := w.add("b", func(c *NodeConfig) { c.Rails[0].Link = namedLink{worldLink{w}, "b", 1280} })
	w.connect()
	w.run(10 * time.Millisecond)
	sa, err := a.Open(w.now, "b", syncOptions("s"))
	require.NoError(t, err)
	sb, err := b.Open(w.now, "a", syncOptions("s"))
	require.NoError(t, err)
	w.run(10 * time.Millisecond)
	ia, err := a.Info(sa)
	require.NoError(t, err)
	ib, err := b.Info(sb)
	require.NoError(t, err)
	require.Equal(t, ia.SegmentSize, ib.SegmentSize)
	require.Equal(t, 1280-HeaderBytes-13, ia.SegmentSize)
}
