package verbs_test

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/p2pdc/p2pdc/ib/internal/verbs"
	"github.com/stretchr/testify/require"
)

// messageSizes returns sizes around the bounds of packets.
func (e *end) messageSizes() []int {
	m := e.rig.mtu(e.port)
	return []int{0, 1, 63, 64, 65, m - 1, m, m + 1, 2 * m, 3*m + 5, 8128, 65536}
}

func testSend(t *testing.T, r rig, tr verbs.Transport) {
	a, b := openBoth(t, r, reliable(tr))
	for i, n := range a.messageSizes() {
		fill(a.memory[:n], i)
		clear(b.memory)
		b.postReceive(b.receive(uint64(100+i), 64, 65536))
		w := a.send(uint64(i), 0, n)
		if i%2 == 1 {
			w.Operation, w.Immediate = verbs.SendImmediate, uint32(0xa0000000+i)
		}
		a.post(w)
		a.requireSuccess(a.poll(a.sends, 1)[0], uint64(i), verbs.Sent)
		c := b.poll(b.recvs, 1)[0]
		b.requireSuccess(c, uint64(100+i), verbs.Received)
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

// testGather checks elements of any size at both ends.
func testGather(t *testing.T, r rig, tr verbs.Transport) {
	a, b := openBoth(t, r, reliable(tr))
	m := r.mtu(a.port)
	for i, n := range [][6]int{
		{1, 2, 3, 3, 2, 1}, {0, 100, 0, 0, 50, 50}, {m, m, m, 3 * m, 0, 0}, {m - 3, 7, 2*m + 1, 5, 3 * m, 0},
	} {
		fill(a.memory[:65536], i)
		clear(b.memory)
		into := []verbs.Element{b.element(0, n[3]), b.element(30000, n[4]), b.element(60000, n[5])}
		b.postReceive(verbs.ReceiveRequest{ID: 7, Elements: into})
		w := a.send(8, 0, 0)
		w.Elements = []verbs.Element{a.element(50000, n[0]), a.element(20000, n[1]), a.element(0, n[2])}
		a.post(w)
		a.requireSuccess(a.poll(a.sends, 1)[0], 8, verbs.Sent)
		c := b.poll(b.recvs, 1)[0]
		b.requireSuccess(c, 7, verbs.Received)
		total := n[0] + n[1] + n[2]
		require.EqualValues(t, total, c.Bytes)
		sent := append(append(bytes.Clone(a.memory[50000:50000+n[0]]), a.memory[20000:20000+n[1]]...), a.memory[:n[2]]...)
		got := append(append(bytes.Clone(b.memory[:n[3]]), b.memory[30000:30000+n[4]]...), b.memory[60000:60000+n[5]]...)
		require.True(t, bytes.Equal(sent, got[:total]), "%v", n)
	}
}

func testWrite(t *testing.T, r rig, tr verbs.Transport) {
	a, b := openBoth(t, r, reliable(tr))
	for i, n := range a.messageSizes() {
		fill(a.memory[:n], i)
		clear(b.memory)
		const there = 1000 // not a multiple of a cache line
		b.postReceive(verbs.ReceiveRequest{ID: uint64(i)})
		w := a.write(1, 0, n, b, there)
		w.Signaled = false
		notice := a.write(2, 0, 0, b, there)
		notice.Operation, notice.Immediate = verbs.WriteImmediate, uint32(i)
		if i%2 == 1 { // the notice carries the data, or follows it
			w.Operation, w.Immediate = verbs.WriteImmediate, uint32(i)
			w.Signaled = true
			a.post(w)
		} else {
			a.post(w, notice)
		}
		a.requireSuccess(a.poll(a.sends, 1)[0], uint64(2-i%2), verbs.Written)
		c := b.poll(b.recvs, 1)[0]
		b.requireSuccess(c, uint64(i), verbs.ReceivedImmediate)
		require.True(t, c.HasImmediate)
		require.EqualValues(t, i, c.Immediate)
		require.True(t, bytes.Equal(a.memory[:n], b.memory[there:there+n]), "%d bytes", n)
		require.Zero(t, b.memory[there-1])
		require.Zero(t, b.memory[there+n])
		a.requireEmpty(a.sends)
	}
	// A plain write completes nothing at the other end and takes no receive request.
	b.postReceive(b.receive(99, 0, 8))
	a.post(a.write(3, 0, 8, b, 0))
	a.requireSuccess(a.poll(a.sends, 1)[0], 3, verbs.Written)
	b.requireEmpty(b.recvs)
}

// testDuplex sends in both directions at once, each from its own goroutine.
func testDuplex(t *testing.T, r rig, tr verbs.Transport) {
	const messages, slots, size = 300, 16, 3000
	a, b := openBoth(t, r, reliable(tr))
	for _, e := range []*end{a, b} {
		for i := range uint64(slots) {
			e.postReceive(e.receive(i, int(i)*size, size))
		}
	}
	done := make(chan string, 2)
	go func() { done <- a.exchange(messages, slots, size) }()
	go func() { done <- b.exchange(messages, slots, size) }()
	require.Empty(t, <-done)
	require.Empty(t, <-done)
}

// exchange sends and receives messages in turn, the same at both ends. It runs outside the
// test's goroutine and returns a failure as text.
func (e *end) exchange(messages, slots, size int) string {
	from := slots * size
	want := make([]byte, size)
	var c [1]verbs.Completion
	poll := func(q verbs.CompletionQueue) (err error) {
		e.await("a message", func() bool {
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
		if err := poll(e.sends); err != nil {
			return fmt.Sprintf("send %d: %v", i, err)
		}
		if err := poll(e.recvs); err != nil {
			return fmt.Sprintf("receive %d: %v", i, err)
		}
		at := int(c[0].ID) * size
		fill(want[:n], i)
		if int(c[0].Bytes) != n || !bytes.Equal(want[:n], e.memory[at:at+n]) {
			return fmt.Sprintf("message %d, %d bytes, is not what was sent", i, c[0].Bytes)
		}
		if _, err := e.pair.PostReceive([]verbs.ReceiveRequest{e.receive(c[0].ID, at, size)}); err != nil {
			return err.Error()
		}
	}
	return ""
}
