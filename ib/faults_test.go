package ib

import (
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/p2pdc/p2pdc/ib/internal/verbs"
	"github.com/p2pdc/p2pdc/ib/internal/verbs/software"
	"github.com/p2pdc/p2pdc/microproto"
)

const shortTimeout = 40 * time.Millisecond // Config.Timeout of these tests

// Unacknowledged frames reveal a dead peer. It reconnects with a new offer.
func TestPeerKilled(t *testing.T) {
	for mode, c := range transferModes() {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			c.Timeout = shortTimeout
			r := newRig(t, software.Config{})
			a, b, toB, toA := r.pair(c)
			pass(t, a, b, toB, toA)
			seen := watch(a)
			require.NoError(t, b.Close())
			drain(a)
			_, err := a.Send([]microproto.Frame{message(a, toB, microproto.ModeSynchronous, 0, 1, 500, false)})
			require.NoError(t, err)
			e := seen.next(t)
			require.Equal(t, toB, e.Peer)
			require.False(t, e.Up)
			require.ErrorContains(t, e.Err, `peer "b"`)
			require.ErrorContains(t, e.Err, "retry counter exceeded")
			_, err = a.Send([]microproto.Frame{message(a, toB, microproto.ModeSynchronous, 0, 1, 500, false)})
			require.NoError(t, err, "frames to a dead peer are lost without an error")
			require.GreaterOrEqual(t, a.Stats().Discarded, uint64(2))
			require.Equal(t, a.config.SendBlocks, a.Stats().FreeBlocks)

			// The same name reappears on another adapter.
			c.Name, c.Device, c.Fabric = "b", "b2", r.fabric
			require.NoError(t, r.fabric.Add("b2"))
			b2, err := Open(c)
			require.NoError(t, err)
			defer b2.Close()
			again, toA := r.join(a, b2)
			require.Equal(t, toB, again, "the peer's address stays")
			e = seen.next(t)
			require.Equal(t, microproto.LinkEvent{Peer: toB, Up: true}, e)
			received := 0
			_, err = a.Send([]microproto.Frame{message(a, toB, microproto.ModeSynchronous, 0, 1, 500, false)})
			require.NoError(t, err)
			pollUntil(t, "a frame after all", []*Link{b2}, func(f microproto.Frame) {
				require.Equal(t, toA, f.Peer)
				received++
			}, func() bool { return received == 1 })
		})
	}
}

// A dead peer is detected also if only asynchronous frames are sent to it.
func TestPeerKilledAmidAsynchronousFrames(t *testing.T) {
	for mode, c := range transferModes() {
		c.Timeout = shortTimeout
		r := newRig(t, software.Config{})
		a, b, toB, _ := r.pair(c)
		seen := watch(a)
		require.NoError(t, b.Close())
		var got []microproto.LinkEvent
		pollUntil(t, mode, []*Link{a}, nil, func() bool {
			_, err := a.Send([]microproto.Frame{message(a, toB, microproto.ModeAsynchronous, 1, 1, 500, false)})
			require.NoError(t, err)
			select {
			case e := <-seen:
				got = append(got, e)
			default:
			}
			return len(got) > 0
		})
		require.Equal(t, toB, got[0].Peer)
		require.Error(t, got[0].Err)
	}
}

// A port that goes down takes all connections down at once. When it is back, both ends offer
// again.
func TestPortDownAndUp(t *testing.T) {
	r := newRig(t, software.Config{})
	c := Config{Timeout: shortTimeout, WindowSlots: 4}
	a, b, toB, toA := r.pair(c)
	pass(t, a, b, toB, toA)
	atA, atB := watch(a), watch(b)
	drain(b)
	for range 3 {
		require.NoError(t, r.fabric.SetPort("a", false))
		e := atA.next(t)
		for e.Peer != 0 {
			require.Equal(t, toB, e.Peer)
			e = atA.next(t)
		}
		require.ErrorIs(t, e.Err, ErrPort)
		_, err := a.Offer("b")
		require.ErrorIs(t, err, ErrPort)
		// The other end detects the failure by itself.
		_, err = b.Send([]microproto.Frame{message(b, toA, microproto.ModeSynchronous, 0, 1, 500, false)})
		require.NoError(t, err)
		e = atB.next(t)
		require.Equal(t, toA, e.Peer)
		require.Error(t, e.Err)
		require.NoError(t, r.fabric.SetPort("a", true))
		require.Equal(t, microproto.LinkEvent{Up: true}, atA.next(t))
		again, toAAgain := r.join(a, b)
		require.Equal(t, toB, again)
		require.Equal(t, toA, toAAgain)
		require.Equal(t, microproto.LinkEvent{Peer: toA, Up: true}, atB.next(t))
		received := 0
		_, err = b.Send([]microproto.Frame{message(b, toA, microproto.ModeSynchronous, 0, 1, 500, false)})
		require.NoError(t, err)
		count := func(microproto.Frame) { received++ }
		pollUntil(t, "a frame", []*Link{a}, count, func() bool { return received == 1 })
		require.Equal(t, microproto.LinkEvent{Peer: toB, Up: true}, atA.next(t))
	}
}

// The ends reconnect whatever the order of detection, offers and acceptance. A synchronous frame
// sent then arrives exactly once.
func TestCrossedOffers(t *testing.T) {
	for order := range 24 {
		r := newRig(t, software.Config{})
		a, b, toB, toA := r.pair(Config{Timeout: shortTimeout, Peers: 1})
		pass(t, a, b, toB, toA)
		for _, l := range []*Link{a, b} {
			if order%3 == 2 && l == b {
				continue // not detected yet
			}
			l.mu.Lock()
			l.peers[0].fail(errUnanswered)
			l.mu.Unlock()
		}
		var fromA, fromB []byte
		var err error
		offer := func(l *Link, name string) []byte {
			o, err := l.Offer(name)
			require.NoError(t, err)
			return o
		}
		if order&1 == 0 {
			fromA = offer(a, "b")
		}
		fromB = offer(b, "a")
		if order&2 == 0 {
			if _, err = a.Accept(fromB); err != nil { // an offer used before
				require.ErrorIs(t, err, ErrDown)
			}
		}
		if fromA == nil {
			fromA = offer(a, "b")
		}
		_, err = b.Accept(fromA)
		require.NoError(t, err)
		if order&4 == 0 {
			fromB = offer(b, "a")
		}
		_, err = a.Accept(fromB)
		require.NoError(t, err)
		pass(t, a, b, toB, toA)
		g := &checker{tb: t, async: map[uint64]uint32{}}
		for k := range uint32(50) {
			_, err := a.Send([]microproto.Frame{message(a, toB, microproto.ModeSynchronous, 0, k+1, 5000, false)})
			require.NoError(t, err)
		}
		pollUntil(t, "frames over the new connection", []*Link{b}, g.take, func() bool { return g.sync == 50 })
		require.NoError(t, a.Close())
		require.NoError(t, b.Close())
	}
}

// An older offer is refused.
func TestOldOffer(t *testing.T) {
	r := newRig(t, software.Config{})
	a, b, toB, toA := r.pair(Config{Timeout: shortTimeout})
	old, err := b.Offer("a")
	require.NoError(t, err)
	b.mu.Lock()
	b.peers[0].fail(errUnanswered)
	b.mu.Unlock()
	r.join(a, b)
	_, err = a.Accept(old)
	require.ErrorContains(t, err, "older")
	pass(t, a, b, toB, toA)
}

func TestDeviceRemoved(t *testing.T) {
	for _, wait := range []Completion{CompletionSpin, CompletionChannel, CompletionPolling} {
		r := newRig(t, software.Config{})
		a, b, toB, toA := r.pair(Config{Timeout: shortTimeout, Completion: wait, WindowSlots: 4})
		pass(t, a, b, toB, toA)
		seen := watch(a)
		done := make(chan error, 1)
		go func() {
			_, err := a.Recv(make([]microproto.Frame, 4))
			done <- err
		}()
		require.NoError(t, r.fabric.Remove("a"))
		e := seen.next(t)
		for e.Peer != 0 {
			e = seen.next(t)
		}
		require.ErrorIs(t, e.Err, verbs.ErrGone)
		_, err := a.Offer("c")
		require.ErrorIs(t, err, verbs.ErrGone)
		_, err = a.Send([]microproto.Frame{message(a, toB, microproto.ModeSynchronous, 0, 1, 500, false)})
		require.NoError(t, err)
		require.NoError(t, a.Close(), "what was made can be closed")
		require.ErrorIs(t, <-done, net.ErrClosed)
	}
}

func TestLockLimitTooLow(t *testing.T) {
	c := Config{WindowSlots: 16}
	need, err := c.RegionBytes()
	require.NoError(t, err)
	window, err := c.WindowBytes()
	require.NoError(t, err)
	r := newRig(t, software.Config{LockLimit: need - 1})
	c.Name, c.Device, c.Fabric = "a", "a", r.fabric
	require.NoError(t, r.fabric.Add("a"))
	_, err = Open(c)
	var limit *verbs.LockLimitError
	require.ErrorAs(t, err, &limit)
	require.ErrorContains(t, err, "--ib-blocks")
	require.ErrorContains(t, err, "ulimit -l")

	r = newRig(t, software.Config{LockLimit: need + window})
	a := r.open("a", c)
	_, err = a.Offer("b")
	require.NoError(t, err, "%d + %d bytes are allowed", need, window)
	_, err = a.Offer("c")
	require.ErrorAs(t, err, &limit, "the second peer's window is too much")
	a.Forget(1)
	_, err = a.Offer("c")
	require.NoError(t, err, "the first one's was given back")
}

func TestMismatch(t *testing.T) {
	r := newRig(t, software.Config{})
	a, b := r.open("a", Config{}), r.open("b", Config{BlockBytes: 4096})
	o, err := b.Offer("a")
	require.NoError(t, err)
	_, err = a.Accept(o)
	require.ErrorContains(t, err, "blocks of 4096 bytes")
	other := newRig(t, software.Config{Subnet: 0xfec0 << 48})
	o, err = other.open("c", Config{}).Offer("a")
	require.NoError(t, err)
	_, err = a.Accept(o)
	require.ErrorIs(t, err, ErrFabric)
	require.Equal(t, 0, a.Stats().Peers, "refused offers leave nothing")
}

// False data in an offer is detected when frames are sent.
func TestFalseOffers(t *testing.T) {
	for name, c := range map[string]struct {
		lie  func(*offer)
		mode microproto.Mode
		want string
	}{
		"RC number": {func(o *offer) { o.RC.Number ^= 0x40 }, microproto.ModeSynchronous, "retry counter exceeded"},
		"UC number": {func(o *offer) { o.UC.Number ^= 0x40 }, microproto.ModeAsynchronous, "does not answer"},
		"LID":       {func(o *offer) { o.LID += 77 }, microproto.ModeSynchronous, "retry counter exceeded"},
		"key":       {func(o *offer) { o.Key ^= 0x10000 }, microproto.ModeAsynchronous, "remote access error"},
		"address":   {func(o *offer) { o.Address += 4096 }, microproto.ModeAsynchronous, "remote access error"},
		"slots":     {func(o *offer) { o.Slots++ }, microproto.ModeAsynchronous, "remote access error"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, software.Config{})
			c0 := Config{Timeout: shortTimeout, WindowSlots: 4}
			a, b := r.open("a", c0), r.open("b", c0)
			blob, err := b.Offer("a")
			require.NoError(t, err)
			o, err := decodeOffer(blob)
			require.NoError(t, err)
			c.lie(&o)
			mine, err := a.Offer("b")
			require.NoError(t, err)
			_, err = b.Accept(mine)
			require.NoError(t, err)
			toB, err := a.Accept(o.append(nil))
			require.NoError(t, err)
			seen := watch(a)
			var e microproto.LinkEvent
			pollUntil(t, "the lie comes out", []*Link{b}, nil, func() bool {
				_, err := a.Send([]microproto.Frame{message(a, toB, c.mode, uint64(c.mode)-1, 1, 100, false)})
				require.NoError(t, err)
				select {
				case e = <-seen:
				default:
				}
				return e.Err != nil
			})
			require.ErrorContains(t, e.Err, c.want)
			require.Equal(t, toB, e.Peer)
		})
	}
}

// Received frames and acquired memory outlive the connection and the link. Their blocks are not
// reused meanwhile.
func TestFramesOutliveTheirLink(t *testing.T) {
	r := newRig(t, software.Config{})
	c := Config{Peers: 1, MessageBytes: 1000, Timeout: shortTimeout}
	a, b, toB, toA := r.pair(c)
	var kept []microproto.Frame
	get := func(number uint32) {
		_, err := a.Send([]microproto.Frame{message(a, toB, microproto.ModeSynchronous, 0, number, 900, false)})
		require.NoError(t, err)
		batch := make([]microproto.Frame, 1)
		n, err := b.Recv(batch)
		require.NoError(t, err)
		require.Equal(t, 1, n)
		kept = append(kept, batch[0])
	}
	check := func() {
		g := &checker{tb: t, async: map[uint64]uint32{}}
		for _, f := range kept {
			g.take(f)
		}
	}
	get(1)
	get(2)
	_, inBlock := b.memory.offset(kept[0].Data)
	require.True(t, inBlock, "it was not copied")
	b.Forget(toA)
	_, err := b.Offer("a")
	require.ErrorContains(t, err, "allow more peers", "their blocks are in use")
	check()
	kept[0].Release()
	kept[1].Release()
	kept = nil
	a.mu.Lock()
	a.peers[toB-1].fail(errUnanswered)
	a.mu.Unlock()
	toB, toA = r.join(a, b)
	pass(t, a, b, toB, toA)
	get(1)
	f := a.Acquire(10)
	require.NoError(t, a.Close())
	require.NoError(t, b.Close())
	check()
	kept[0].Release()
	f.Data[9] = 1
	f.Release()
	require.Nil(t, a.memory.bytes, "the last frame frees the memory")
	require.Nil(t, b.memory.bytes)
	_ = toA
}

func TestForget(t *testing.T) {
	r := newRig(t, software.Config{})
	c := Config{Peers: 2, WindowSlots: 4, Timeout: shortTimeout}
	a, b, toB, toA := r.pair(c)
	pass(t, a, b, toB, toA)
	live := r.fabric.software.Live()
	for range 20 {
		a.Forget(toB)
		b.Forget(toA)
		_, err := a.Send([]microproto.Frame{message(a, toB, microproto.ModeSynchronous, 0, 1, 10, false)})
		require.ErrorContains(t, err, "forgotten")
		toB, toA = r.join(a, b)
		pass(t, a, b, toB, toA)
		require.Equal(t, live, r.fabric.software.Live())
	}
	a.Forget(12345)
}

// Messages of unknown format are counted and ignored. One longer than a block takes the
// connection down, at both ends.
func TestForeignMessages(t *testing.T) {
	r := newRig(t, software.Config{})
	a, b, toB, toA := r.pair(Config{Timeout: shortTimeout, WindowSlots: 2})
	pass(t, a, b, toB, toA)
	post := func(p *pair, change func(*verbs.SendRequest)) {
		m := a.memory
		req := verbs.SendRequest{ID: 1<<62 | 1, Operation: verbs.Send, Elements: []verbs.Element{m.element(0, 100)}}
		change(&req)
		_, err := p.qp.PostSend([]verbs.SendRequest{req})
		require.NoError(t, err)
	}
	none := func(microproto.Frame) { require.Fail(t, "a frame was delivered") }
	before := b.Stats().Malformed
	post(a.peers[0].rc, func(*verbs.SendRequest) {}) // without immediate data
	post(a.peers[0].uc, func(*verbs.SendRequest) {})
	post(a.peers[0].uc, func(q *verbs.SendRequest) { // a notice of a slot that does not exist
		q.Operation, q.Immediate, q.Elements = verbs.WriteImmediate, 1000, nil
		q.RemoteAddr, q.RemoteKey = a.peers[0].remoteOffer.Address, a.peers[0].remoteOffer.Key
	})
	pollUntil(t, "they are counted", []*Link{b}, none, func() bool { return b.Stats().Malformed == before+3 })
	pass(t, a, b, toB, toA)
	atA, atB := watch(a), watch(b)
	drain(a)
	drain(b)
	post(a.peers[0].rc, func(q *verbs.SendRequest) {
		q.Operation = verbs.SendImmediate
		q.Elements = []verbs.Element{a.memory.element(0, b.config.BlockBytes), a.memory.element(0, 1)}
	})
	require.ErrorContains(t, atB.next(t).Err, "local length error")
	require.Error(t, atA.next(t).Err)
}
