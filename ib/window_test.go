package ib

import (
	"encoding/binary"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/p2pdc/p2pdc/ib/internal/verbs"
	"github.com/p2pdc/p2pdc/ib/internal/verbs/software"
	"github.com/p2pdc/p2pdc/microproto"
)

// localWindow returns a window in ordinary memory.
func localWindow(slots, block int) *window {
	c := Config{WindowSlots: slots, BlockBytes: block}
	return &window{
		bytes: make([]byte, c.windowRegion()), slots: slots, blockBytes: block,
		delivered: make([]uint64, slots), noticeQueued: make([]bool, slots), sums: make([]byte, stampBytes(block)),
	}
}

// writeImage returns the bytes of a write into a slot, stamp and frame, and their offset.
func writeImage(w *window, slot int, version uint64, frame []byte) (at int, run []byte) {
	cell := make([]byte, stampBytes(w.blockBytes))
	used := stamp(cell, version, frame)
	at = windowHead + slot*slotBytes(w.blockBytes) + stampBytes(w.blockBytes) - len(used)
	return at, append(append([]byte(nil), used...), frame...)
}

// Writes land in pieces of any size and order, or not at all, and one begins before another has
// landed. The reader returns whole frames or nothing. It returns a write that has landed whole
// and undisturbed.
func TestTornWritesAreNotRead(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		block := rapid.IntRange(512, 6000).Draw(rt, "block")
		w := localWindow(2, block)
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(rt, "seed"), 1))
		frames := map[uint64][]byte{}
		type piece struct {
			at  int
			run []byte
		}
		var pending []piece
		dst := make([]byte, block)
		read := func() bool {
			n, got := w.read(1, dst)
			if got != readWhole {
				return false
			}
			require.Equal(rt, frames[w.delivered[1]], dst[:n], "version %d", w.delivered[1])
			return true
		}
		version := uint64(0)
		for range rapid.IntRange(1, 30).Draw(rt, "writes") {
			version++
			frame := make([]byte, 1+rng.IntN(block))
			for i := range frame {
				frame[i] = byte(rng.Uint32())
			}
			if old := frames[version-1]; old != nil && rng.IntN(2) == 0 {
				frame = slices.Clone(old) // similar, as faces near convergence
				frame[rng.IntN(len(frame))]++
			}
			frames[version] = frame
			at, run := writeImage(w, 1, version, frame)
			packet := 1 << (3 + rng.IntN(10))
			for from := 0; from < len(run); from += packet {
				pending = append(pending, piece{at + from, run[from:min(from+packet, len(run))]})
			}
			for len(pending) > 0 && rng.IntN(50) != 0 { // parts land before the next write
				k := rng.IntN(len(pending))
				if rng.IntN(20) != 0 {
					copy(w.bytes[pending[k].at:], pending[k].run)
				}
				pending[k] = pending[len(pending)-1]
				pending = pending[:len(pending)-1]
				read()
			}
		}
		version++
		frames[version] = []byte("the last, whole and undisturbed")
		at, run := writeImage(w, 1, version, frames[version])
		copy(w.bytes[at:], run)
		require.True(rt, read())
		n, got := w.read(1, dst)
		require.Equal(rt, readStale, got, "once")
		require.Zero(rt, n)
		_, got = w.read(0, dst)
		require.Equal(rt, readStale, got, "the other slot was not touched")
	})
}

// Whatever a peer writes into its window, reading it neither panics nor exceeds its bounds.
func FuzzWindow(f *testing.F) {
	w := localWindow(1, 2000)
	at, run := writeImage(w, 0, 5, make([]byte, 1500))
	copy(w.bytes[at:], run)
	f.Add(w.bytes)
	f.Add([]byte{1})
	f.Fuzz(func(t *testing.T, b []byte) {
		w := localWindow(1, 2000)
		copy(w.bytes, b)
		dst := make([]byte, 2000)
		if n, got := w.read(0, dst); got == readWhole && (n <= 0 || n > 2000) {
			t.Fatal(n)
		}
	})
}

// A write that loses packets in the middle is not returned; the next one is.
func TestLostPacketsOfWrites(t *testing.T) {
	r := newRig(t, software.Config{MTU: 1024})
	a, b, toB, toA := r.pair(Config{WindowSlots: 4})
	pass(t, a, b, toB, toA)
	rng := rand.New(rand.NewPCG(3, 3))
	var mu sync.Mutex
	r.fabric.software.SetRule(func(p software.Packet) software.Fault {
		mu.Lock()
		defer mu.Unlock()
		middle := p.Transport == verbs.UC && p.Operation != verbs.SendImmediate && !p.First && !p.Last
		return software.Fault{Drop: middle && rng.IntN(6) == 0}
	})
	g := &checker{tb: t, async: map[uint64]uint32{}}
	batch := make([]microproto.Frame, 8)
	const writes = 3000
	for k := range uint32(writes) {
		_, err := a.Send([]microproto.Frame{message(a, toB, microproto.ModeAsynchronous, uint64(k%4+1), k+1, 8000, false)})
		require.NoError(t, err)
		if k%3 != 0 {
			continue
		}
		n, err := b.TryRecv(batch)
		require.NoError(t, err)
		for _, f := range batch[:n] {
			g.take(f)
			f.Release()
		}
	}
	s := b.Stats()
	require.Positive(t, g.asyncs)
	require.Positive(t, s.Torn, "found with the notice of another write")
	require.Greater(t, a.Stats().Written, uint64(writes-100))
	r.fabric.software.SetRule(nil)
	for v := range uint64(4) {
		_, err := a.Send([]microproto.Frame{message(a, toB, microproto.ModeAsynchronous, v+1, writes+1, 8000, false)})
		require.NoError(t, err)
	}
	pollUntil(t, "the last of each", []*Link{b}, g.take, func() bool {
		return g.async[1]+g.async[2]+g.async[3]+g.async[4] == 4*(writes+1)
	})
}

// Without credit values are written as well. The newest is found through a notice in flight, or
// one that follows when there is credit.
func TestWritesWithoutCredit(t *testing.T) {
	r := newRig(t, software.Config{})
	a, b, toB, toA := r.pair(Config{WindowSlots: 40, Peers: 1, ReceiveBlocks: 2 * minReceives})
	pass(t, a, b, toB, toA)
	requests := r.fabric.software.Made()
	const values, rounds = 30, 20
	for k := range uint32(rounds) {
		for v := range uint64(values) {
			_, err := a.Send([]microproto.Frame{message(a, toB, microproto.ModeAsynchronous, v+1, k+1, 700, false)})
			require.NoError(t, err)
		}
	}
	s := a.Stats()
	require.GreaterOrEqual(t, s.Written, uint64(values*rounds-minReceives), "none waited, once the window was proved")
	require.Greater(t, s.Unannounced, uint64(values*(rounds-1)))
	g := &checker{tb: t, async: map[uint64]uint32{}}
	pollUntil(t, "the newest of all values", []*Link{b}, g.take, func() bool {
		for v := range uint64(values) {
			if g.async[v+1] != rounds {
				return false
			}
		}
		return true
	})
	require.Less(t, g.asyncs, 3*values, "what was overwritten did not come")
	require.Equal(t, requests, r.fabric.software.Made())
}

// With more values than slots, the slots of unused values are reassigned. Frames of values without
// a slot are sent.
func TestMoreValuesThanSlots(t *testing.T) {
	r := newRig(t, software.Config{})
	a, b, toB, toA := r.pair(Config{WindowSlots: 4})
	pass(t, a, b, toB, toA)
	g := &checker{tb: t, async: map[uint64]uint32{}}
	send := func(value uint64, number uint32) {
		_, err := a.Send([]microproto.Frame{message(a, toB, microproto.ModeAsynchronous, value, number, 700, false)})
		require.NoError(t, err)
		pollUntil(t, "it", []*Link{b}, g.take, func() bool { return g.async[value] == number })
	}
	for k := range uint32(50) {
		for v := range uint64(8) {
			send(v+1, k+1)
		}
	}
	before := a.Stats().Written
	require.Less(t, before, uint64(8*50))
	require.Greater(t, before, uint64(100))
	for k := range uint32(100) {
		for v := range uint64(4) {
			send(v+101, k+1)
		}
	}
	require.Greater(t, a.Stats().Written-before, uint64(300), "new values took the place of those that rest")
}

// If only one end has a window, its peer sends frames instead of writing.
func TestWindowAtOneEnd(t *testing.T) {
	r := newRig(t, software.Config{})
	a, b := r.open("a", Config{WindowSlots: 4}), r.open("b", Config{})
	toB, toA := r.join(a, b)
	pass(t, a, b, toB, toA)
	pass(t, a, b, toB, toA)
	require.Zero(t, a.Stats().Written)
	require.Zero(t, b.Stats().Written)
}

// Close and Forget end the other end's right to write.
func TestWindowIsRevoked(t *testing.T) {
	r := newRig(t, software.Config{})
	a, b, toB, toA := r.pair(Config{WindowSlots: 4, Timeout: shortTimeout})
	pass(t, a, b, toB, toA)
	before := r.fabric.software.Live()[software.Regions]
	b.Forget(toA)
	require.Equal(t, before-1, r.fabric.software.Live()[software.Regions])
	seen := watch(a)
	_, err := a.Send([]microproto.Frame{message(a, toB, microproto.ModeSynchronous, 0, 1, 10, false)})
	require.NoError(t, err)
	drain(a)
	require.ErrorContains(t, seen.next(t).Err, "retry counter exceeded")
}

// The format of a stamp is fixed.
func TestStampGolden(t *testing.T) {
	frame := make([]byte, 2049)
	for i := range frame {
		frame[i] = byte(i)
	}
	used := stamp(make([]byte, stampBytes(4096)), 0x0102030405060708, frame)
	require.Len(t, used, stampFixed+3*4)
	require.Equal(t, uint64(0x0102030405060708), binary.BigEndian.Uint64(used[12:]))
	require.EqualValues(t, 2049, binary.BigEndian.Uint32(used[20:]))
	require.EqualValues(t, 0x527d5351, binary.BigEndian.Uint32(used), "CRC-32C of the byte 0, the last row, comes first")
}
