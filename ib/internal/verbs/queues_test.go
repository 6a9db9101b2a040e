package verbs_test

import (
	"encoding/binary"
	"fmt"
	"testing"

	"github.com/p2pdc/p2pdc/ib/internal/verbs"
	"github.com/stretchr/testify/require"
)

// testOrder checks that requests of all kinds complete in the order posted, at both ends.
func testOrder(t *testing.T, r rig, tr verbs.Transport) {
	a, b := openBoth(t, r, reliable(tr))
	for range 4 {
		var sends []verbs.SendRequest
		for i := range uint64(maxRequests) {
			b.postReceive(b.receive(i, int(i)*4000, 4000))
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
		for i, c := range a.poll(a.sends, maxRequests) {
			a.requireSuccess(c, uint64(i), kind(sends[i]))
		}
		for i, c := range b.poll(b.recvs, maxRequests) {
			require.Equal(t, verbs.StatusOK, c.Status)
			require.EqualValues(t, i, c.ID)
			require.Equal(t, i%4 == 1, c.Kind == verbs.ReceivedImmediate)
			require.Equal(t, i%4 < 2, c.HasImmediate)
		}
	}
}

// testUnsignaled checks that only signaled requests leave a completion, which implies the earlier
// ones.
func testUnsignaled(t *testing.T, r rig, tr verbs.Transport) {
	a, b := openBoth(t, r, options{config: verbs.PairConfig{Transport: tr, SendRequests: 16}, retries: 7, rnr: 7})
	for round := range 20 {
		for i := range 8 {
			b.postReceive(b.receive(uint64(i), i*8, 8))
			binary.LittleEndian.PutUint64(a.memory[i*8:], uint64(round*8+i))
			w := a.send(uint64(i), i*8, 8)
			w.Signaled = i == 7
			a.post(w)
		}
		a.requireSuccess(a.poll(a.sends, 1)[0], 7, verbs.Sent)
		for i, c := range b.poll(b.recvs, 8) {
			b.requireSuccess(c, uint64(i), verbs.Received)
			require.EqualValues(t, round*8+i, binary.LittleEndian.Uint64(b.memory[i*8:]))
		}
	}
	a.requireEmpty(a.sends)
}

// testQueueFull checks that a queue takes as many requests as configured, and then reports that
// it is full.
func testQueueFull(t *testing.T, r rig, tr verbs.Transport) {
	s := reliable(tr)
	s.config.SendRequests, s.config.ReceiveRequests = 8, 8
	a, b := openBoth(t, r, s)
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
		t.Fatal("the queue never becomes full")
		return 0
	}
	receives := count(func(i uint64) (int, error) {
		return b.pair.PostReceive([]verbs.ReceiveRequest{b.receive(i, 0, 64)})
	})
	require.GreaterOrEqual(t, receives, uint64(8))
	if !r.Exact {
		return
	}
	require.EqualValues(t, 8, receives)
	// Unsignaled requests occupy their room even after they are done.
	n := count(func(i uint64) (int, error) {
		w := a.send(i, 0, 8)
		w.Signaled = i == 3
		return a.pair.PostSend([]verbs.SendRequest{w})
	})
	require.EqualValues(t, 8, n)
	a.requireSuccess(a.poll(a.sends, 1)[0], 3, verbs.Sent) // frees four
	b.poll(b.recvs, 8)
	for i := range uint64(4) {
		b.postReceive(b.receive(i, 0, 64))
	}
	n = count(func(i uint64) (int, error) { return a.pair.PostSend([]verbs.SendRequest{a.send(i, 0, 8)}) })
	require.EqualValues(t, 4, n)
	a.poll(a.sends, 4)
	b.poll(b.recvs, 4)
}

// testReuse checks that requests and their elements may be reused after a post.
func testReuse(t *testing.T, r rig, tr verbs.Transport) {
	a, b := openBoth(t, r, reliable(tr))
	element, into := make([]verbs.Element, 1), make([]verbs.Element, 1)
	sends, receives := make([]verbs.SendRequest, 1), make([]verbs.ReceiveRequest, 1)
	for i := range 10 {
		into[0] = b.element(i*64, 64)
		receives[0] = verbs.ReceiveRequest{ID: uint64(i), Elements: into}
		b.postReceive(receives...)
		into[0], receives[0] = verbs.Element{}, verbs.ReceiveRequest{}
	}
	for i := range 10 {
		copy(a.memory[i*64:], fmt.Sprintf("number %d", i))
		element[0] = a.element(i*64, 8)
		sends[0] = verbs.SendRequest{
			ID: uint64(i), Operation: verbs.Send, Elements: element, Signaled: true,
		}
		a.post(sends...)
		element[0], sends[0] = verbs.Element{}, verbs.SendRequest{}
	}
	for i, c := range a.poll(a.sends, 10) {
		a.requireSuccess(c, uint64(i), verbs.Sent)
	}
	for i, c := range b.poll(b.recvs, 10) {
		b.requireSuccess(c, uint64(i), verbs.Received)
		require.Equal(t, fmt.Sprintf("number %d", i), string(b.memory[i*64:i*64+8]))
	}
}

// testOneQueue checks that sends and receives of pairs of both transports may complete in one
// queue. Completions name their pair, and those of one queue of a pair are in order.
func testOneQueue(t *testing.T, r rig, tr verbs.Transport) {
	s := options{config: verbs.PairConfig{Transport: tr}, retries: 7, rnr: 7, oneQueue: true}
	a, b := openBoth(t, r, s)
	other := s
	other.config.Transport = verbs.RC + verbs.UC - tr
	a2, b2 := *a, *b
	a2.pair, b2.pair = a.create(other.config), b.create(other.config)
	a2.tr, b2.tr = other.config.Transport, other.config.Transport
	a2.connect(&b2, other, 0)
	b2.connect(&a2, other, 1)
	for i := range uint64(10) {
		for k, e := range []*end{b, &b2} {
			e.postReceive(e.receive(i, 0, 64))
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
		e.requireEmpty(e.sends)
	}
}
