package suite

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"testing"

	"github.com/p2pdc/p2pdc/ib/internal/verbs"
	"github.com/stretchr/testify/require"
)

// sizesOfMessages are around the bounds of packets.
func (e *end) sizesOfMessages() []int {
	m := e.rig.mtu(e.port)
	return []int{0, 1, 63, 64, 65, m - 1, m, m + 1, 2 * m, 3*m + 5, 8128, 65536}
}

func testSend(t *testing.T, r Rig, tr verbs.Transport) {
	a, b := both(t, r, shape{config: verbs.PairConfig{Transport: tr}, retries: 7, rnr: 7})
	for i, n := range a.sizesOfMessages() {
		fill(a.memory[:n], i)
		clear(b.memory)
		b.expect(b.slot(uint64(100+i), 64, 65536))
		w := a.send(uint64(i), 0, n)
		if i%2 == 1 {
			w.Operation, w.Immediate = verbs.SendImmediate, uint32(0xa0000000+i)
		}
		a.post(w)
		a.ended(a.poll(a.sends, 1)[0], uint64(i), verbs.Sent)
		c := b.poll(b.recvs, 1)[0]
		b.ended(c, uint64(100+i), verbs.Received)
		require.EqualValues(t, n, c.Bytes)
		require.Equal(t, i%2 == 1, c.HasImmediate)
		if c.HasImmediate {
			require.EqualValues(t, 0xa0000000+i, c.Immediate)
		}
		require.True(t, bytes.Equal(a.memory[:n], b.memory[64:64+n]), "%d bytes", n)
		require.Zero(t, b.memory[63])
		require.Zero(t, b.memory[64+n], "a byte behind the message")
	}
}

// testGather: pieces of any sizes on both sides.
func testGather(t *testing.T, r Rig, tr verbs.Transport) {
	a, b := both(t, r, shape{config: verbs.PairConfig{Transport: tr}, retries: 7, rnr: 7})
	m := r.mtu(a.port)
	for i, n := range [][6]int{{1, 2, 3, 3, 2, 1}, {0, 100, 0, 0, 50, 50}, {m, m, m, 3 * m, 0, 0}, {m - 3, 7, 2*m + 1, 5, 3 * m, 0}} {
		fill(a.memory[:65536], i)
		clear(b.memory)
		b.expect(verbs.ReceiveRequest{ID: 7, Elements: []verbs.Element{b.piece(0, n[3]), b.piece(30000, n[4]), b.piece(60000, n[5])}})
		w := a.send(8, 0, 0)
		w.Elements = []verbs.Element{a.piece(50000, n[0]), a.piece(20000, n[1]), a.piece(0, n[2])}
		a.post(w)
		a.ended(a.poll(a.sends, 1)[0], 8, verbs.Sent)
		c := b.poll(b.recvs, 1)[0]
		b.ended(c, 7, verbs.Received)
		total := n[0] + n[1] + n[2]
		require.EqualValues(t, total, c.Bytes)
		sent := append(append(bytes.Clone(a.memory[50000:50000+n[0]]), a.memory[20000:20000+n[1]]...), a.memory[:n[2]]...)
		got := append(append(bytes.Clone(b.memory[:n[3]]), b.memory[30000:30000+n[4]]...), b.memory[60000:60000+n[5]]...)
		require.True(t, bytes.Equal(sent, got[:total]), "%v", n)
	}
}

func testWrite(t *testing.T, r Rig, tr verbs.Transport) {
	a, b := both(t, r, shape{config: verbs.PairConfig{Transport: tr}, retries: 7, rnr: 7})
	for i, n := range a.sizesOfMessages() {
		fill(a.memory[:n], i)
		clear(b.memory)
		const there = 1000 // not at a line's boundary
		b.expect(verbs.ReceiveRequest{ID: uint64(i)})
		w := a.write(1, 0, n, b, there)
		w.Signaled = false
		notice := a.write(2, 0, 0, b, there)
		notice.Operation, notice.Immediate = verbs.WriteImmediate, uint32(i)
		if i%2 == 1 { // the data with the notice, or before it
			w.Operation, w.Immediate, w.Signaled = verbs.WriteImmediate, uint32(i), true
			a.post(w)
		} else {
			a.post(w, notice)
		}
		a.ended(a.poll(a.sends, 1)[0], uint64(2-i%2), verbs.Written)
		c := b.poll(b.recvs, 1)[0]
		b.ended(c, uint64(i), verbs.ReceivedImmediate)
		require.True(t, c.HasImmediate)
		require.EqualValues(t, i, c.Immediate)
		require.True(t, bytes.Equal(a.memory[:n], b.memory[there:there+n]), "%d bytes", n)
		require.Zero(t, b.memory[there-1])
		require.Zero(t, b.memory[there+n])
		a.quiet(a.sends)
	}
	// A write alone completes nothing at the other end, and takes no receive request.
	b.expect(b.slot(99, 0, 8))
	a.post(a.write(3, 0, 8, b, 0))
	a.ended(a.poll(a.sends, 1)[0], 3, verbs.Written)
	b.quiet(b.recvs)
}

// testInline: the payload is copied when the request is posted.
func testInline(t *testing.T, r Rig, tr verbs.Transport) {
	a, b := both(t, r, shape{config: verbs.PairConfig{Transport: tr, InlineBytes: 32}, retries: 7, rnr: 7})
	for i := range 9 {
		b.expect(b.slot(uint64(i), 64*i, 64))
	}
	for i := range 8 {
		copy(a.memory, fmt.Sprintf("message %d", i))
		w := a.send(uint64(i), 0, 9)
		w.Inline = true
		a.post(w)
		clear(a.memory[:9])
	}
	for i, c := range b.poll(b.recvs, 8) {
		b.ended(c, uint64(i), verbs.Received)
		require.Equal(t, fmt.Sprintf("message %d", i), string(b.memory[64*i:64*i+9]))
	}
	a.poll(a.sends, 8)
	w := a.send(9, 0, 1<<16)
	w.Inline = true
	n, err := a.pair.PostSend([]verbs.SendRequest{a.send(8, 0, 1), w})
	require.ErrorIs(t, err, verbs.ErrLimit)
	require.Equal(t, 1, n, "the prefix is posted")
	a.ended(a.poll(a.sends, 1)[0], 8, verbs.Sent)
}

// testOrder: requests of all kinds complete in the order posted, on both sides.
func testOrder(t *testing.T, r Rig, tr verbs.Transport) {
	a, b := both(t, r, shape{config: verbs.PairConfig{Transport: tr}, retries: 7, rnr: 7})
	for range 4 {
		var sends []verbs.SendRequest
		for i := range uint64(mostRequests) {
			b.expect(b.slot(i, int(i)*4000, 4000))
			w := a.send(i, 0, int(i)*31)
			switch i % 4 {
			case 0:
				w.Operation = verbs.SendImmediate
			case 1:
				w = a.write(i, 0, int(i)*31, b, 0)
				w.Operation = verbs.WriteImmediate
			}
			w.Immediate = uint32(i)
			sends = append(sends, w)
		}
		a.post(sends[:10]...)
		a.post(sends[10:]...)
		for i, c := range a.poll(a.sends, mostRequests) {
			a.ended(c, uint64(i), kind(sends[i]))
		}
		for i, c := range b.poll(b.recvs, mostRequests) {
			require.Equal(t, verbs.StatusOK, c.Status)
			require.EqualValues(t, i, c.ID)
			require.Equal(t, i%4 == 1, c.Kind == verbs.ReceivedImmediate)
			require.Equal(t, i%4 < 2, c.HasImmediate)
		}
	}
}

// testUnsignaled: only signaled requests leave a completion, which tells of those before.
func testUnsignaled(t *testing.T, r Rig, tr verbs.Transport) {
	a, b := both(t, r, shape{config: verbs.PairConfig{Transport: tr, SendRequests: 16}, retries: 7, rnr: 7})
	for round := range 20 {
		for i := range 8 {
			b.expect(b.slot(uint64(i), i*8, 8))
			binary.LittleEndian.PutUint64(a.memory[i*8:], uint64(round*8+i))
			w := a.send(uint64(i), i*8, 8)
			w.Signaled = i == 7
			a.post(w)
		}
		a.ended(a.poll(a.sends, 1)[0], 7, verbs.Sent)
		for i, c := range b.poll(b.recvs, 8) {
			b.ended(c, uint64(i), verbs.Received)
			require.EqualValues(t, round*8+i, binary.LittleEndian.Uint64(b.memory[i*8:]))
		}
	}
	a.quiet(a.sends)
}

// testQueueFull: a queue takes as many as it was made for, and says when it is full.
func testQueueFull(t *testing.T, r Rig, tr verbs.Transport) {
	a, b := both(t, r, shape{config: verbs.PairConfig{Transport: tr, SendRequests: 8, ReceiveRequests: 8}, retries: 7, rnr: 7})
	count := func(one func(i uint64) (int, error)) (n uint64) {
		for n < 1<<16 {
			k, err := one(n)
			if err != nil {
				require.ErrorIs(t, err, verbs.ErrQueueFull)
				require.Zero(t, k)
				return n
			}
			n++
		}
		t.Fatal("the queue is never full")
		return 0
	}
	receives := count(func(i uint64) (int, error) {
		return b.pair.PostReceive([]verbs.ReceiveRequest{b.slot(i, 0, 64)})
	})
	require.GreaterOrEqual(t, receives, uint64(8))
	if !r.Exact {
		return
	}
	require.EqualValues(t, 8, receives)
	// Unsignaled requests keep their room, although they are long done.
	n := count(func(i uint64) (int, error) {
		w := a.send(i, 0, 8)
		w.Signaled = i == 3
		return a.pair.PostSend([]verbs.SendRequest{w})
	})
	require.EqualValues(t, 8, n)
	a.ended(a.poll(a.sends, 1)[0], 3, verbs.Sent) // four are free now
	b.poll(b.recvs, 8)
	for i := range uint64(4) {
		b.expect(b.slot(i, 0, 64))
	}
	n = count(func(i uint64) (int, error) { return a.pair.PostSend([]verbs.SendRequest{a.send(i, 0, 8)}) })
	require.EqualValues(t, 4, n)
	a.poll(a.sends, 4)
	b.poll(b.recvs, 4)
}

// testReuse: requests and their elements are the caller's again when a post returns.
func testReuse(t *testing.T, r Rig, tr verbs.Transport) {
	a, b := both(t, r, shape{config: verbs.PairConfig{Transport: tr}, retries: 7, rnr: 7})
	element, into := make([]verbs.Element, 1), make([]verbs.Element, 1)
	sends, receives := make([]verbs.SendRequest, 1), make([]verbs.ReceiveRequest, 1)
	for i := range 10 {
		into[0] = b.piece(i*64, 64)
		receives[0] = verbs.ReceiveRequest{ID: uint64(i), Elements: into}
		b.expect(receives...)
		into[0], receives[0] = verbs.Element{}, verbs.ReceiveRequest{}
	}
	for i := range 10 {
		copy(a.memory[i*64:], fmt.Sprintf("number %d", i))
		element[0] = a.piece(i*64, 8)
		sends[0] = verbs.SendRequest{ID: uint64(i), Operation: verbs.Send, Elements: element, Signaled: true, Solicited: i%2 == 0}
		a.post(sends...)
		element[0], sends[0] = verbs.Element{}, verbs.SendRequest{}
	}
	for i, c := range a.poll(a.sends, 10) {
		a.ended(c, uint64(i), verbs.Sent)
	}
	for i, c := range b.poll(b.recvs, 10) {
		b.ended(c, uint64(i), verbs.Received)
		require.Equal(t, fmt.Sprintf("number %d", i), string(b.memory[i*64:i*64+8]))
	}
}

// testOneQueue: pairs of both transports complete in one queue, sends and receives; the
// completions say whose they are, and those of one queue of a pair are in order.
func testOneQueue(t *testing.T, r Rig, tr verbs.Transport) {
	s := shape{config: verbs.PairConfig{Transport: tr}, retries: 7, rnr: 7, oneQueue: true}
	a, b := both(t, r, s)
	other := s
	other.config.Transport = verbs.RC + verbs.UC - tr
	a2, b2 := *a, *b
	a2.pair, b2.pair = a.create(other.config), b.create(other.config)
	a2.join(&b2, other, 0)
	b2.join(&a2, other, 1)
	for i := range uint64(10) {
		for k, e := range []*end{b, &b2} {
			e.expect(e.slot(i, 0, 64))
			[]*end{a, &a2}[k].post([]*end{a, &a2}[k].send(i, 0, int(i)))
		}
	}
	for _, e := range []*end{a, b} {
		next := map[uint32]uint64{}
		for _, c := range e.poll(e.sends, 20) {
			require.Equal(t, verbs.StatusOK, c.Status)
			require.Equal(t, next[c.Pair], c.ID)
			next[c.Pair]++
			require.Equal(t, e == a, c.Kind == verbs.Sent)
			if e == b {
				require.EqualValues(t, c.ID, c.Bytes)
			}
		}
		require.Len(t, next, 2)
		e.quiet(e.sends)
	}
}

// testDuplex: both ends send at once, each from a goroutine of its own.
func testDuplex(t *testing.T, r Rig, tr verbs.Transport) {
	const messages, slots, size = 300, 16, 3000
	a, b := both(t, r, shape{config: verbs.PairConfig{Transport: tr}, retries: 7, rnr: 7})
	for _, e := range []*end{a, b} {
		for i := range uint64(slots) {
			e.expect(e.slot(i, int(i)*size, size))
		}
	}
	done := make(chan string, 2)
	go func() { done <- a.exchange(messages, slots, size) }()
	go func() { done <- b.exchange(messages, slots, size) }()
	require.Empty(t, <-done)
	require.Empty(t, <-done)
}

// exchange sends a message and takes one, over and over, both ends alike; what is wrong
// is told as text, for it runs beside the test.
func (e *end) exchange(messages, slots, size int) string {
	from := slots * size
	want := make([]byte, size)
	var c [1]verbs.Completion
	await := func(q verbs.CompletionQueue) (err error) {
		e.until("a message", func() bool {
			var n int
			n, err = q.Poll(c[:])
			return n == 1 || err != nil
		})
		if err == nil && c[0].Status != verbs.StatusOK {
			err = fmt.Errorf("%v", c[0].Status)
		}
		return err
	}
	for i := range messages {
		n := i * 37 % size
		fill(e.memory[from:from+n], i)
		if _, err := e.pair.PostSend([]verbs.SendRequest{e.send(uint64(i), from, n)}); err != nil {
			return err.Error()
		}
		if err := await(e.sends); err != nil {
			return fmt.Sprintf("send %d: %v", i, err)
		}
		if err := await(e.recvs); err != nil {
			return fmt.Sprintf("receive %d: %v", i, err)
		}
		at := int(c[0].ID) * size
		fill(want[:n], i)
		if int(c[0].Bytes) != n || !bytes.Equal(want[:n], e.memory[at:at+n]) {
			return fmt.Sprintf("message %d, %d bytes, is not what was sent", i, c[0].Bytes)
		}
		if _, err := e.pair.PostReceive([]verbs.ReceiveRequest{e.slot(c[0].ID, at, size)}); err != nil {
			return err.Error()
		}
	}
	return ""
}
