package mptest

import (
	"bytes"
	"encoding/binary"
	"errors"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/p2pdc/p2pdc/internal/await"
	"github.com/p2pdc/p2pdc/microproto"
)

// ConformLink runs the conformance suite of a microproto.Link. factory returns two fresh ends that
// can reach each other and have not exchanged offers. It registers further resources to be closed
// with tb.Cleanup.
//
// A link must take frames over any Buffer, not only those of its own Acquire. It may lose frames
// unless its Caps are reliable: the suite sends again.
func ConformLink(t *testing.T, factory func(tb testing.TB) (a, b microproto.Link)) {
	t.Helper()
	for _, c := range []struct {
		name string
		run  func(t *testing.T, a, b microproto.Link)
	}{
		{"caps", linkCaps},
		{"offer and accept", linkOffers},
		{"sizes", linkSizes},
		{"batch keeps its order", linkOrder},
		{"frames are released once", linkReleases},
		{"a full link takes a prefix and becomes writable", linkFlood},
		{"frames from unaccepted addresses are not received", linkUnaccepted},
		{"several senders at once", linkConcurrent},
		{"close", linkClose},
	} {
		t.Run(c.name, func(t *testing.T) {
			a, b := factory(t)
			t.Cleanup(func() { _ = a.Close(); _ = b.Close() })
			c.run(t, a, b)
		})
	}
}

func isClosed(t failer, err error, what string) {
	t.Helper()
	must(t, errors.Is(err, net.ErrClosed), "%s: %v instead of net.ErrClosed", what, err)
}

// connect exchanges offers and returns each end's address for the other.
func connect(t *testing.T, a, b microproto.Link) (toB, toA microproto.LinkAddr) {
	t.Helper()
	toA = accept(t, b, a, "b")
	return accept(t, a, b, "a"), toA
}

// accept accepts the offer of a link at another, which has the name peer.
func accept(t *testing.T, at, of microproto.Link, peer string) microproto.LinkAddr {
	t.Helper()
	offer, err := of.Offer(peer)
	noError(t, err, "Offer to end %s", peer)
	addr, err := at.Accept(offer)
	noError(t, err, "Accept at end %s", peer)
	return addr
}

// receiver receives until its link is closed.
type receiver struct {
	frames chan receivedFrame
	done   chan error
}

type receivedFrame struct {
	peer microproto.LinkAddr
	data []byte
}

func startReceiver(t *testing.T, l microproto.Link) *receiver {
	e := &receiver{frames: make(chan receivedFrame, 1<<16), done: make(chan error, 1)}
	go func() {
		batch := make([]microproto.Frame, 8)
		for {
			n, err := l.Recv(batch)
			for i := range n {
				e.frames <- receivedFrame{batch[i].Peer, bytes.Clone(batch[i].Data)}
				batch[i].Release()
			}
			if err != nil {
				e.done <- err
				return
			}
			if n == 0 {
				t.Error("Recv returned no frame although Wake was not called")
			}
		}
	}()
	t.Cleanup(func() {
		_ = l.Close()
		isClosed(t, <-e.done, "Recv after Close")
	})
	return e
}

func (e *receiver) next(d time.Duration) (receivedFrame, bool) {
	select {
	case h := <-e.frames:
		return h, true
	case <-time.After(d):
		return receivedFrame{}, false
	}
}

// numbered returns a frame of n bytes: its number, then a pattern of it.
func numbered(peer microproto.LinkAddr, number uint32, n int, freed *atomic.Int64) microproto.Frame {
	const room = 64
	b := make([]byte, room+n)
	body := b[room:]
	for i := range body {
		body[i] = byte(number)*31 + byte(i)
	}
	if n >= 4 {
		binary.BigEndian.PutUint32(body, number)
	}
	return microproto.NewBuffer(b, func(*microproto.Buffer) {
		if freed != nil {
			freed.Add(1)
		}
	}).Frame(peer, room, n)
}

func intact(h receivedFrame) bool {
	if len(h.data) < 4 {
		return true
	}
	number := binary.BigEndian.Uint32(h.data)
	for i := 4; i < len(h.data); i++ {
		if h.data[i] != byte(number)*31+byte(i) {
			return false
		}
	}
	return true
}

// sendAll sends a batch. It waits for room when the link is full.
func sendAll(t testing.TB, l microproto.Link, batch []microproto.Frame) {
	for {
		n, err := l.Send(batch)
		noError(t, err, "Send")
		must(t, n >= 0 && n <= len(batch), "Send took %d of %d frames", n, len(batch))
		if batch = batch[n:]; len(batch) == 0 {
			return
		}
		awaitWritable(l)
	}
}

func awaitWritable(l microproto.Link) {
	ready := make(chan struct{})
	l.Writable(sync.OnceFunc(func() { close(ready) }))
	<-ready
}

func linkCaps(t *testing.T, a, _ microproto.Link) {
	for _, m := range []microproto.Mode{microproto.ModeSynchronous, microproto.ModeAsynchronous} {
		caps := a.Caps(m)
		if m == microproto.ModeAsynchronous && caps.MTU == 0 {
			continue // the link carries synchronous sessions only
		}
		must(t, caps.MTU > 0 && caps.Headroom >= 0 && caps.Batch > 0, "Caps(%v) is %+v", m, caps)
		for _, n := range []int{1, caps.MTU} {
			f := a.Acquire(n)
			must(t, len(f.Data) == n, "Acquire(%d) gives a frame of %d bytes", n, len(f.Data))
			f.Data[n-1] = 1
			f.Release()
		}
	}
}

func linkOffers(t *testing.T, a, b microproto.Link) {
	toB, toA := connect(t, a, b)
	must(t, toA != 0 && toB != 0, "Accept gives address 0, which stands for no peer")
	offer, err := b.Offer("a")
	noError(t, err, "Offer")
	again, err := a.Accept(offer)
	noError(t, err, "Accept")
	must(t, toB == again, "the same offer accepted twice gives the addresses %d and %d", toB, again)
	for _, bad := range [][]byte{nil, {}, {0}, []byte("not an offer"), make([]byte, 4096), offer[:len(offer)/2]} {
		addr, err := a.Accept(bad)
		must(t, err != nil, "offer %q gave address %d", bad, addr)
	}
}

func linkSizes(t *testing.T, a, b microproto.Link) {
	toB, toA := connect(t, a, b)
	e := startReceiver(t, b)
	mtu := a.Caps(microproto.ModeSynchronous).MTU
	for k, n := range []int{1, 2, 4, 5, 100, mtu/2 + 1, mtu - 1, mtu} {
		got := sendUntilReceived(t, a, e, func() microproto.Frame { return numbered(toB, uint32(k), n, nil) })
		must(t, len(got.data) == n, "a frame of %d bytes came with %d", n, len(got.data))
		must(t, got.peer == toA, "a frame of address %d came as of address %d", toA, got.peer)
		must(t, intact(got), "a frame of %d bytes came changed", n)
	}
}

// sendUntilReceived sends a frame repeatedly until one of its length arrives.
func sendUntilReceived(t *testing.T, l microproto.Link, e *receiver, frame func() microproto.Frame) receivedFrame {
	t.Helper()
	all := receiveUntil(t, l, e, frame)
	return all[len(all)-1]
}

// receiveUntil is sendUntilReceived, and also returns the frames that arrived before.
func receiveUntil(t *testing.T, l microproto.Link, e *receiver, frame func() microproto.Frame) (all []receivedFrame) {
	t.Helper()
	await.Until(t, func() bool {
		f := frame()
		n := len(f.Data)
		sendAll(t, l, []microproto.Frame{f})
		for {
			got, ok := e.next(200 * time.Millisecond)
			if !ok {
				return false // the frame may be lost
			}
			if all = append(all, got); len(got.data) == n {
				return true
			}
		}
	}, "a frame to arrive")
	return all
}

// shortFrame returns a frame of a length that no other has. When it arrives, the frames sent before
// have arrived or are lost, unless the link changes the order.
func shortFrame(to microproto.LinkAddr) func() microproto.Frame {
	return func() microproto.Frame { return numbered(to, 0, 7, nil) }
}

func linkOrder(t *testing.T, a, b microproto.Link) {
	toB, _ := connect(t, a, b)
	e := startReceiver(t, b)
	const attempts, frames = 10, 32
	for attempt := range uint32(attempts) {
		var batch []microproto.Frame
		for i := range uint32(frames) {
			batch = append(batch, numbered(toB, attempt*frames+i, 40+int(i%3), nil))
		}
		sendAll(t, a, batch)
		inOrder := 0
		for _, got := range receiveUntil(t, a, e, shortFrame(toB)) {
			must(t, intact(got), "a frame came changed")
			if len(got.data) != 7 && binary.BigEndian.Uint32(got.data) == attempt*frames+uint32(inOrder) {
				inOrder++
			}
		}
		if inOrder == frames {
			return
		}
		must(t, !a.Caps(microproto.ModeSynchronous).Ordered, "an ordered link changed the order of a batch")
	}
	t.Fatalf("no batch in %d arrived whole and in order", attempts)
}

func linkReleases(t *testing.T, a, b microproto.Link) {
	toB, _ := connect(t, a, b)
	e := startReceiver(t, b)
	var freed atomic.Int64
	const frames = 64
	var batch []microproto.Frame
	for i := range uint32(frames) {
		batch = append(batch, numbered(toB, i, 200, &freed))
	}
	sendAll(t, a, batch)
	sendUntilReceived(t, a, e, shortFrame(toB))
	await.Until(t, func() bool { return freed.Load() == frames }, "%d frames to be released, each once", frames)
}

func linkFlood(t *testing.T, a, b microproto.Link) {
	toB, _ := connect(t, a, b)
	mtu := a.Caps(microproto.ModeSynchronous).MTU
	var freed atomic.Int64
	taken, full := 0, false
	const rounds, perBatch = 128, 16
	for r := 0; r < rounds && !full; r++ {
		batch := make([]microproto.Frame, perBatch)
		for i := range batch {
			batch[i] = numbered(toB, uint32(r*perBatch+i), mtu, &freed)
		}
		n, err := a.Send(batch)
		noError(t, err, "a full link is no error")
		taken += n
		full = n < perBatch
		for i := n; i < perBatch; i++ {
			must(t, len(batch[i].Data) == mtu, "a frame that was not taken stays the caller's")
			batch[i].Release()
		}
		if full {
			taken += perBatch - n // released by this test
		}
	}
	e := startReceiver(t, b)
	if full {
		awaitWritable(a)
	}
	await.Until(t, func() bool { return freed.Load() == int64(taken) }, "%d frames to be released", taken)
	for _, got := range receiveUntil(t, a, e, func() microproto.Frame { return numbered(toB, 7, 99, nil) }) {
		must(t, intact(got), "a frame came changed")
	}
}

func linkUnaccepted(t *testing.T, a, b microproto.Link) {
	toB := accept(t, a, b, "a")
	e := startReceiver(t, b)
	for i := range uint32(20) {
		sendAll(t, a, []microproto.Frame{numbered(toB, i, 50, nil)})
	}
	_, ok := e.next(300 * time.Millisecond)
	must(t, !ok, "a frame of an end that was never accepted was returned")
	toA := accept(t, b, a, "b")
	got := sendUntilReceived(t, a, e, func() microproto.Frame { return numbered(toB, 99, 60, nil) })
	must(t, got.peer == toA, "a frame of address %d came as of address %d", toA, got.peer)
}

func linkConcurrent(t *testing.T, a, b microproto.Link) {
	toB, _ := connect(t, a, b)
	e := startReceiver(t, b)
	const senders, each = 4, 64
	var freed atomic.Int64
	errs := make(chan error, senders)
	for s := range uint32(senders) {
		go func() {
			for i := range uint32(each) {
				batch := []microproto.Frame{numbered(toB, s*each+i, 300+int(i), &freed)}
				for len(batch) > 0 {
					n, err := a.Send(batch)
					batch = batch[n:]
					if err != nil {
						errs <- err
						return
					}
				}
			}
			errs <- nil
		}()
	}
	for range senders {
		noError(t, <-errs, "Send")
	}
	await.Until(t, func() bool { return freed.Load() == senders*each }, "%d frames to be released", senders*each)
	count := 0
	for _, got := range receiveUntil(t, a, e, shortFrame(toB)) {
		if len(got.data) == 7 {
			continue
		}
		number := binary.BigEndian.Uint32(got.data)
		must(t, number < senders*each, "frame %d of %d", number, senders*each)
		must(t, len(got.data) == 300+int(number%each) && intact(got), "frames of several senders are mixed up")
		count++
	}
	must(t, count > 0, "no frame arrived")
}

func linkClose(t *testing.T, a, b microproto.Link) {
	toB, _ := connect(t, a, b)
	blocked := make(chan error, 1)
	go func() {
		_, err := a.Recv(make([]microproto.Frame, 4))
		blocked <- err
	}()
	noError(t, a.Close(), "Close")
	isClosed(t, <-blocked, "Recv that blocked before Close")
	_, err := a.Recv(make([]microproto.Frame, 4))
	isClosed(t, err, "Recv after Close")
	_ = a.Close() // a second Close must not panic
	var freed atomic.Int64
	batch := []microproto.Frame{numbered(toB, 1, 10, &freed)}
	n, err := a.Send(batch)
	isClosed(t, err, "Send after Close")
	for i := n; i < len(batch); i++ {
		batch[i].Release()
	}
	must(t, freed.Load() == 1, "a frame was released %d times", freed.Load())
	_, _ = b.Offer("a") // it must not block
}
