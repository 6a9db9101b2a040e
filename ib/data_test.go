package ib

import (
	"encoding/binary"
	"math/rand/v2"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/p2pdc/p2pdc/ib/internal/verbs"
	"github.com/p2pdc/p2pdc/ib/internal/verbs/software"
	"github.com/p2pdc/p2pdc/microproto"
)

// message returns a frame with mode, value and number in its first bytes, filled with bytes of the
// number. A plain frame uses memory of the caller.
func message(
	l *Link, to microproto.LinkAddr, m microproto.Mode, value uint64, number uint32, n int, plain bool,
) microproto.Frame {
	n = max(n, 16)
	f := l.Acquire(n)
	if plain {
		f.Release()
		f = microproto.NewBuffer(make([]byte, n+7), nil).Frame(0, 7, n)
	}
	f.Peer, f.Mode, f.Value = to, m, value
	binary.BigEndian.PutUint32(f.Data, number)
	binary.BigEndian.PutUint32(f.Data[4:], uint32(m))
	binary.BigEndian.PutUint64(f.Data[8:], value)
	for i := 16; i < n; i++ {
		f.Data[i] = byte(number) + byte(i*7)
	}
	return f
}

// checker checks the frames that one end receives from another.
type checker struct {
	tb     tester
	sync   uint32            // number of synchronous frames received
	async  map[uint64]uint32 // number of the last frame, by value
	asyncs int
}

func (g *checker) take(f microproto.Frame) {
	number, mode := binary.BigEndian.Uint32(f.Data), microproto.Mode(binary.BigEndian.Uint32(f.Data[4:]))
	value := binary.BigEndian.Uint64(f.Data[8:])
	for i := 16; i < len(f.Data); i++ {
		if want := byte(number) + byte(i*7); f.Data[i] != want {
			require.Equal(g.tb, want, f.Data[i], "byte %d of %d of frame %d", i, len(f.Data), number)
		}
	}
	if mode == microproto.ModeSynchronous {
		g.sync++
		require.Equal(g.tb, g.sync, number, "synchronous frames come all, once, in order")
		return
	}
	require.Greater(g.tb, number, g.async[value], "frames of a value come in order")
	g.async[value] = number
	g.asyncs++
}

// Random programs of both modes, in all transfer modes, with few blocks and frames that the
// receiver keeps: every synchronous frame and the last frame of every value arrives.
func TestDelivery(t *testing.T) {
	for mode, c := range transferModes() {
		t.Run(mode, func(t *testing.T) {
			rapid.Check(t, func(rt *rapid.T) {
				c := c
				c.Peers = 1
				c.SendBlocks = rapid.IntRange(16, 40).Draw(rt, "send blocks")
				c.ReceiveBlocks = rapid.IntRange(32, 64).Draw(rt, "receive blocks")
				c.BufferBytes = rapid.SampledFrom([]int{1, 1 << 20}).Draw(rt, "buffers")
				r := newRig(t, software.Config{})
				a, b, toB, _ := r.pair(c)
				program(rt, a, b, toB)
			})
		})
	}
}

func program(rt *rapid.T, a, b *Link, toB microproto.LinkAddr) {
	g := &checker{tb: rt, async: map[uint64]uint32{}}
	mtu := a.Caps(microproto.ModeSynchronous).MTU
	steps := rapid.SliceOfN(rapid.Uint64(), 1, 300).Draw(rt, "program")
	sent, last := uint32(0), map[uint64]uint32{}
	var kept []microproto.Frame
	batch := make([]microproto.Frame, 8)
	receive := func() {
		n, err := b.TryRecv(batch)
		require.NoError(rt, err)
		for _, f := range batch[:n] {
			g.take(f)
			kept = append(kept, f)
		}
	}
	for i, s := range steps {
		size, plain, number := int(s>>16)%mtu+1, s&64 != 0, uint32(i+1)
		switch s % 8 {
		case 0, 1, 2:
			f := message(a, toB, microproto.ModeSynchronous, 0, sent+1, size, plain)
			n, err := a.Send([]microproto.Frame{f})
			require.NoError(rt, err)
			require.Equal(rt, 1, n, "there is room for thousands")
			sent++
		case 3, 4, 5:
			value := s>>8%12*3%10 + 1
			f := message(a, toB, microproto.ModeAsynchronous, value, number, size, plain)
			_, err := a.Send([]microproto.Frame{f})
			require.NoError(rt, err)
			last[value] = number
		case 6:
			receive()
		case 7:
			for _, f := range kept {
				f.Release()
			}
			kept = kept[:0]
		}
	}
	for _, f := range kept {
		f.Release()
	}
	pollUntil(rt, "all frames", []*Link{a, b}, g.take, func() bool {
		for v, n := range last {
			if g.async[v] != n {
				return false
			}
		}
		return g.sync == sent
	})
}

// The reliable pair carries synchronous frames and the unreliable one asynchronous frames. A
// change of mode creates and registers nothing.
func TestChangeOfModeCreatesNothing(t *testing.T) {
	for mode, c := range transferModes() {
		r := newRig(t, software.Config{})
		var seen [4]int // by transport
		a, b, toB, _ := r.pair(c)
		r.fabric.software.SetRule(func(p software.Packet) software.Fault {
			if !p.Ack && p.Bytes > 0 {
				seen[p.Transport]++
			}
			return software.Fault{}
		})
		made := r.fabric.software.Made()
		for k := range 40 {
			mode, by, other := microproto.ModeSynchronous, verbs.RC, verbs.UC
			if k%2 == 1 {
				mode, by, other = microproto.ModeAsynchronous, verbs.UC, verbs.RC
			}
			seen = [4]int{}
			f := message(a, toB, mode, uint64(k%2), uint32(k+1), 500, false)
			_, err := a.Send([]microproto.Frame{f})
			require.NoError(t, err)
			received := 0
			pollUntil(t, "the frame", []*Link{a, b}, func(microproto.Frame) { received++ }, func() bool { return received == 1 })
			require.Positive(t, seen[by], "%s: by %v", mode, by)
			if k > 1 { // by then the window was verified, through the reliable pair
				require.Zero(t, seen[other], "%s: not by %v", mode, other)
			}
		}
		require.Equal(t, made, r.fabric.software.Made(), mode)
	}
}

// Without a receiver frames wait at the sender: none is lost because no receive is posted.
func TestCreditProtectsTheUnreliablePair(t *testing.T) {
	r := newRig(t, software.Config{})
	a, b, toB, _ := r.pair(Config{Peers: 1, ReceiveBlocks: 2 * minReceives})
	const frames = 500
	for k := range uint32(frames) {
		// Without a value no frame replaces another.
		n, err := a.Send([]microproto.Frame{message(a, toB, microproto.ModeAsynchronous, 0, k+1, 100, k%3 == 0)})
		require.NoError(t, err)
		require.Equal(t, 1, n)
	}
	g := &checker{tb: t, async: map[uint64]uint32{}}
	pollUntil(t, "all frames", []*Link{b}, g.take, func() bool { return g.asyncs == frames })
	require.Zero(t, b.Stats().Lost)
	// While b does not poll, a probes for credit, and probes beyond the receives reserved for them are dropped.
	require.LessOrEqual(t, r.fabric.software.Lost(), int64(a.Stats().Probes), "packets that are no probes")
}

// Lost credit is sent again, also when everything in flight is lost.
func TestLostCreditIsRepaired(t *testing.T) {
	for mode, c := range transferModes() {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, software.Config{})
			c.Peers, c.ReceiveBlocks = 1, 2*minReceives
			a, b, toB, toA := r.pair(c)
			random := rand.New(rand.NewPCG(7, 0xfa7e))
			var all atomic.Bool
			r.fabric.software.SetRule(func(p software.Packet) software.Fault {
				if p.Transport != verbs.UC {
					return software.Fault{}
				}
				if all.Load() {
					return software.Fault{Drop: true}
				}
				return software.Fault{Drop: random.Float64() < 0.3}
			})
			g, h := &checker{tb: t, async: map[uint64]uint32{}}, &checker{tb: t, async: map[uint64]uint32{}}
			batch := make([]microproto.Frame, 8)
			for k := range uint32(3000) {
				all.Store(k%1000 > 900)
				for _, x := range []struct {
					from, to *Link
					addr     microproto.LinkAddr
					g        *checker
				}{{a, b, toB, g}, {b, a, toA, h}} {
					f := message(x.from, x.addr, microproto.ModeAsynchronous, uint64(k%5+1), k+1, 3000, false)
					_, err := x.from.Send([]microproto.Frame{f})
					require.NoError(t, err)
					n, err := x.to.TryRecv(batch)
					require.NoError(t, err)
					for _, f := range batch[:n] {
						x.g.take(f)
						f.Release()
					}
				}
			}
			r.fabric.software.SetRule(nil)
			before := g.asyncs
			require.Positive(t, before)
			k := uint32(10_000)
			pollUntil(t, "frames after all that loss", []*Link{b}, g.take, func() bool {
				k++
				_, err := a.Send([]microproto.Frame{message(a, toB, microproto.ModeAsynchronous, 1, k, 3000, false)})
				require.NoError(t, err)
				return g.asyncs > before+200
			})
		})
	}
}

// Credit carried by frames that were all lost is sent again in answer to a probe.
func TestProbeIsAnsweredWithCredit(t *testing.T) {
	r := newRig(t, software.Config{})
	a, b, toB, toA := r.pair(Config{Peers: 1, ReceiveBlocks: 2 * minReceives})
	window := a.config.frameCredit()
	fromB := false
	r.fabric.software.SetRule(func(p software.Packet) software.Fault {
		return software.Fault{Drop: fromB && p.Transport == verbs.UC}
	})
	send := func(from *Link, to microproto.LinkAddr, number uint32) {
		_, err := from.Send([]microproto.Frame{message(from, to, microproto.ModeAsynchronous, 0, number, 100, false)})
		require.NoError(t, err)
	}
	g := &checker{tb: t, async: map[uint64]uint32{}}
	batch := make([]microproto.Frame, 1)
	for k := range window {
		send(a, toB, uint32(k+1))
		n, err := b.TryRecv(batch)
		require.NoError(t, err)
		require.Equal(t, 1, n)
		g.take(batch[0])
		batch[0].Release()
		fromB = true
		send(b, toA, 1) // carries credit, and is lost
		fromB = false
	}
	require.Zero(t, b.Stats().CreditsAlone)
	send(a, toB, uint32(window+1))
	require.Equal(t, window, g.asyncs)
	pollUntil(t, "the frame that waits for credit", []*Link{b}, g.take, func() bool { return g.asyncs == window+1 })
	require.Positive(t, a.Stats().Probes)
}

// The newest frame of an asynchronous value replaces a queued one. Other peers are not delayed.
func TestNewestReplacesQueued(t *testing.T) {
	r := newRig(t, software.Config{})
	c := Config{Peers: 2, ReceiveBlocks: 4 * minReceives}
	a, slow, fast := r.open("a", c), r.open("slow", c), r.open("fast", c)
	toSlow, _ := r.join(a, slow)
	toFast, _ := r.join(a, fast)
	const rounds, values = 400, 3
	for k := range uint32(rounds) {
		var batch []microproto.Frame
		for v := range uint64(values) {
			batch = append(batch, message(a, toSlow, microproto.ModeAsynchronous, v+1, k+1, 900, false))
		}
		batch = append(batch, message(a, toSlow, microproto.ModeSynchronous, 0, k+1, 900, false))
		batch = append(batch, message(a, toFast, microproto.ModeSynchronous, 0, k+1, 900, false))
		n, err := a.Send(batch)
		require.NoError(t, err)
		require.Equal(t, len(batch), n)
		got := 0
		pollUntil(t, "what the fast one is sent", []*Link{a, fast}, func(f microproto.Frame) {
			require.Equal(t, k+1, binary.BigEndian.Uint32(f.Data))
			got++
		}, func() bool { return got == 1 })
	}
	sent := uint64(rounds * values)
	replaced := a.Stats().Replaced
	require.Greater(t, replaced, sent/2)
	g := &checker{tb: t, async: map[uint64]uint32{}}
	pollUntil(t, "the newest, and all synchronous ones", []*Link{a, slow}, g.take, func() bool {
		return g.sync == rounds && g.async[1] == rounds && g.async[2] == rounds && g.async[3] == rounds
	})
	require.EqualValues(t, sent-replaced, g.asyncs, "every frame arrived or was counted")
}
