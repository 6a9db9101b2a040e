package ib

import (
	"encoding/binary"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/p2pdc/p2pdc/ib/internal/verbs"
	"github.com/p2pdc/p2pdc/ib/internal/verbs/software"
	"github.com/p2pdc/p2pdc/internal/await"
	"github.com/p2pdc/p2pdc/microproto"
)

// exchange sends a batch of frames and receives it.
type exchange struct {
	a, b   *Link
	toB    microproto.LinkAddr
	mode   microproto.Mode
	size   int
	number uint32
	out    []microproto.Frame
	in     []microproto.Frame
}

func (t *exchange) run(tb testing.TB) {
	for i := range t.out {
		f := t.a.Acquire(t.size)
		f.Peer, f.Mode = t.toB, t.mode
		if t.mode == microproto.ModeAsynchronous {
			f.Value = uint64(i + 1)
		}
		t.number++
		binary.BigEndian.PutUint32(f.Data, t.number)
		t.out[i] = f
	}
	if n, err := t.a.Send(t.out); n != len(t.out) || err != nil {
		tb.Fatal(n, err)
	}
	for got := 0; got < len(t.out); {
		n, err := t.b.TryRecv(t.in)
		if err != nil {
			tb.Fatal(err)
		}
		for i := range t.in[:n] {
			t.in[i].Release()
		}
		if got += n; n == 0 {
			if _, err := t.a.TryRecv(t.in); err != nil { // credit
				tb.Fatal(err)
			}
		}
	}
	if _, err := t.a.TryRecv(t.in); err != nil {
		tb.Fatal(err)
	}
}

func newExchange(r *rig, c Config, m microproto.Mode, size, batch int) *exchange {
	a, b, toB, toA := r.pair(c)
	pass(r, a, b, toB, toA)
	out, in := make([]microproto.Frame, batch), make([]microproto.Frame, 64)
	return &exchange{a: a, b: b, toB: toB, mode: m, size: size, out: out, in: in}
}

func TestNoAllocationPerFrame(t *testing.T) {
	for mode, c := range transferModes() {
		for _, m := range []microproto.Mode{microproto.ModeSynchronous, microproto.ModeAsynchronous} {
			for _, size := range []int{100, 8000} {
				r := newRig(t, software.Config{})
				x := newExchange(r, c, m, size, 8)
				for range 100 {
					x.run(t)
				}
				n := testing.AllocsPerRun(200, func() { x.run(t) })
				require.Zero(t, n, "%s, %v, frames of %d bytes", mode, m, size)
				require.NoError(t, x.a.Close())
				require.NoError(t, x.b.Close())
			}
		}
	}
}

// An idle link causes no wake-up, and a waiting receiver is woken by an arrival.
func TestIdleLinkCausesNoWakeUp(t *testing.T) {
	for _, wait := range []Completion{CompletionSpin, CompletionChannel} {
		r := newRig(t, software.Config{})
		a, b, toB, toA := r.pair(Config{Completion: wait, WindowSlots: 4})
		pass(t, a, b, toB, toA)
		got := make(chan int, 100)
		go func() {
			batch := make([]microproto.Frame, 8)
			for {
				n, err := b.Recv(batch)
				if err != nil {
					close(got)
					return
				}
				for i := range batch[:n] {
					batch[i].Release()
				}
				got <- n
			}
		}()
		// No timer runs, and the receiver waits.
		waits := uint64(0)
		idle := func() bool { return b.Stats().Waits > waits && !a.progressArmed.Load() && !b.progressArmed.Load() }
		await.Until(t, idle, "no timer at either end, and a receiver that waits: %v", wait)
		waits = b.Stats().Waits
		for _, m := range []microproto.Mode{microproto.ModeSynchronous, microproto.ModeAsynchronous} {
			_, err := a.Send([]microproto.Frame{message(a, toB, m, uint64(m)-1, 1, 100, false)})
			require.NoError(t, err)
			require.Equal(t, 1, <-got)
		}
		await.Until(t, idle, "no timer at either end again, and a receiver that waits: %v", wait)
		b.Wake()
		require.Zero(t, <-got, "Wake returns without a frame")
		require.NoError(t, b.Close())
		_, open := <-got
		require.False(t, open)
	}
}

// racingQueue lets a completion come just before the queue is armed.
type racingQueue struct {
	verbs.CompletionQueue
	before func()
}

func (q *racingQueue) Arm() error {
	if f := q.before; f != nil {
		q.before = nil
		f()
	}
	return q.CompletionQueue.Arm()
}

// A completion between the last poll and the arming raises no event, but is handled.
func TestCompletionBeforeArming(t *testing.T) {
	r := newRig(t, software.Config{})
	a, b, toB, toA := r.pair(Config{Completion: CompletionChannel})
	pass(t, a, b, toB, toA)
	var sent error
	b.receives = &racingQueue{b.receives, func() {
		_, sent = a.Send([]microproto.Frame{message(a, toB, microproto.ModeSynchronous, 0, 1, 100, false)})
	}}
	done := make(chan int, 1)
	go func() {
		batch := make([]microproto.Frame, 1)
		n, _ := b.Recv(batch)
		for i := range batch[:n] {
			batch[i].Release()
		}
		done <- n
	}()
	require.Equal(t, 1, <-done)
	require.NoError(t, sent)
}

// Few send requests are signaled, but no block stays in use for long.
func TestBlocksAreFreed(t *testing.T) {
	r := newRig(t, software.Config{})
	x := newExchange(r, Config{}, microproto.ModeSynchronous, 1000, 1)
	for range 200 {
		x.run(t)
		x.a.mu.Lock()
		x.a.reap()
		x.a.mu.Unlock()
		require.GreaterOrEqual(t, x.a.Stats().FreeBlocks, x.a.config.SendBlocks-2*x.a.signalEvery)
	}
}

func BenchmarkLink(b *testing.B) {
	for _, m := range []microproto.Mode{microproto.ModeSynchronous, microproto.ModeAsynchronous} {
		for mode, c := range transferModes() {
			for _, size := range []int{64, 8000, 60000} {
				if size > 8128 && c.MessageBytes == 0 {
					continue
				}
				b.Run(fmt.Sprintf("%v/%s/%d", m, mode, size), func(b *testing.B) {
					r := newRig(b, software.Config{})
					x := newExchange(r, c, m, size, 8)
					b.SetBytes(int64(8 * size))
					b.ReportAllocs()
					for b.Loop() {
						x.run(b)
					}
				})
			}
		}
	}
}
