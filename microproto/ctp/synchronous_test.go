package ctp

import (
	"bytes"
	"fmt"
	"testing"
	"time"

	"github.com/p2pdc/p2pdc/microproto"
	"github.com/p2pdc/p2pdc/microproto/mptest"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

const tag = 7

var calm = mptest.Faults{Delay: 50 * time.Microsecond}

// drain receives every message of the tag at one end.
func (r *rig) drain(end int, most int) (got [][]byte, labels []uint64) {
	for {
		dst := make([]byte, most)
		a, err := r.receive(end, tag, dst, nil)
		if err != nil {
			require.ErrorIs(r.tb, err, microproto.ErrNothing)
			return got, labels
		}
		got, labels = append(got, dst[:a.Length]), append(labels, a.Label)
	}
}

// Whatever the faults, every message arrives once, in order and complete.
func TestSynchronousExactlyOnceInOrder(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		names := syncEther
		f := mptest.Faults{
			Delay:     time.Duration(rapid.IntRange(0, 3000).Draw(rt, "delay µs")) * time.Microsecond,
			Jitter:    time.Duration(rapid.IntRange(0, 1000).Draw(rt, "jitter µs")) * time.Microsecond,
			Loss:      rapid.SampledFrom([]float64{0, 0.01, 0.1, 0.4}).Draw(rt, "loss"),
			Duplicate: rapid.SampledFrom([]float64{0, 0.1}).Draw(rt, "duplicate"),
			Reorder:   rapid.SampledFrom([]float64{0, 0.2}).Draw(rt, "reorder"),
		}
		o := microproto.Options{
			// Numbers wrap in the middle of some runs.
			OptionFirst:       int64(rapid.SampledFrom([]uint32{0, 1, 1<<32 - 20, 1<<31 - 5}).Draw(rt, "first")),
			OptionReceive:     rapid.Int64Range(4000, 50_000).Draw(rt, "queue"),
			OptionInFlight:    rapid.Int64Range(100, 20_000).Draw(rt, "window"),
			OptionPeerReceive: 0, OptionRTOMax: int64(time.Second), // that of sessions inside a cluster
		}
		o[OptionPeerReceive] = o[OptionReceive]
		train := rapid.SampledFrom([]int{0, 1000, 65507}).Draw(rt, "train")
		r := newTrainRig(rt, names, o, rapid.IntRange(120, 1500).Draw(rt, "mtu"), train,
			rapid.Uint64().Draw(rt, "seed"), f).open()
		sizes := rapid.SliceOfN(rapid.IntRange(0, 3000), 1, 30).Draw(rt, "sizes")
		gathers := rapid.Bool().Draw(rt, "gathers")
		var next, got [2]int
		pause := time.Millisecond
		for got[0] < len(sizes) || got[1] < len(sizes) {
			require.Less(rt, time.Duration(r.Clock.Now()), noProgress, "no progress: sent %v, received %v of %d", next,
				got, len(sizes))
			was := [2][2]int{next, got}
			for end := range 2 {
				for room := true; room && next[end] < len(sizes); {
					_, err := r.sendMore(end, tag, uint64(next[end]), pattern(sizes[next[end]], uint64(next[end])),
						gathers)
					if room = gathers && err == nil; err == nil {
						next[end]++
					} else {
						require.ErrorIs(rt, err, microproto.ErrBusy)
					}
				}
				if gathers && !r.flush(end) {
					pause = time.Millisecond
				}
				data, labels := r.drain(end, 3000)
				for i := range data {
					k := got[end]
					require.EqualValues(rt, k, labels[i])
					require.True(rt, bytes.Equal(pattern(sizes[k], uint64(k)), data[i]), "message %d", k)
					got[end]++
				}
			}
			// With heavy loss most of the time is back-off.
			if pause = min(2*pause, 100*time.Millisecond); was != [2][2]int{next, got} {
				pause = time.Millisecond
			}
			r.rest(pause)
		}
		r.run(30 * time.Second)
		for end := range 2 {
			require.EqualValues(rt, len(sizes), r.accepted(end), "every transfer is accepted in the end")
		}
		require.NoError(rt, r.Pair.Close())
	})
}

func TestMessageSizes(t *testing.T) {
	for _, n := range []int{0, 1, 7, 8, 1367, 1368, 1369, 64 << 10, 4 << 20} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			o := microproto.Options{OptionReceive: 8 << 20, OptionPeerReceive: 8 << 20}
			f := calm
			f.Loss = 0.01
			r := newRig(t, syncEther, o, 1400, 3, f).open()
			tr, err := r.send(0, tag, 5, pattern(n, 9))
			require.NoError(t, err)
			ok, err := r.RunUntil(time.Minute, func() bool { return r.accepted(0) == tr })
			require.NoError(t, err)
			require.True(t, ok)
			got, labels := r.drain(1, n)
			require.Equal(t, []uint64{5}, labels)
			require.True(t, bytes.Equal(pattern(n, 9), got[0]))
		})
	}
}

func TestBothEndsSendHalfAMegabyte(t *testing.T) {
	r := newRig(t, syncEther, nil, 1500, 1, calm).open()
	for end := range 2 {
		_, err := r.send(end, tag, 1, pattern(512<<10, uint64(end)))
		require.NoError(t, err)
	}
	_, err := r.RunUntil(time.Second, func() bool { return r.accepted(0) == 1 && r.accepted(1) == 1 })
	require.NoError(t, err)
	for end := range 2 {
		got, _ := r.drain(end, 512<<10)
		require.Len(t, got, 1)
		require.True(t, bytes.Equal(pattern(512<<10, uint64(1-end)), got[0]))
	}
	require.Zero(t, *r.ends[0].Protocol("Retransmit").(*Retransmit).resent,
		"nothing was lost, so nothing is sent twice")
}

// A receiver that does not receive stops the sender when its queue is full. Each byte that becomes
// free admits another one.
func TestSlowReceiver(t *testing.T) {
	const queue, n = 10_000, 1000
	o := microproto.Options{OptionReceive: queue, OptionPeerReceive: queue}
	r := newRig(t, syncEther, o, 400, 1, calm).open()
	sent := 0
	for range 50 {
		if _, err := r.send(0, tag, uint64(sent), pattern(n, uint64(sent))); err == nil {
			sent++
		}
		r.run(100 * time.Millisecond)
	}
	require.Equal(t, queue/(n+messageCost), sent)
	fifo := r.ends[1].Protocol("ReliableFIFO").(*ReliableFIFO)
	require.LessOrEqual(t, fifo.stored-*fifo.consumed, uint64(queue))
	dst := make([]byte, n)
	_, err := r.receive(1, tag, dst, nil)
	require.NoError(t, err)
	r.run(3 * time.Second) // the sender probes with back-off, or gets a grant
	_, err = r.send(0, tag, uint64(sent), pattern(n, 0))
	require.NoError(t, err)
	_, err = r.send(0, tag, uint64(sent), pattern(n, 0))
	require.ErrorIs(t, err, microproto.ErrBusy)
}

// A frame with new credit is lost; a probe of the sender repairs it.
func TestLostCreditIsProbedFor(t *testing.T) {
	o := microproto.Options{OptionReceive: 2000, OptionPeerReceive: 2000}
	r := newRig(t, syncEther, o, 400, 1, calm).open()
	_, err := r.send(0, tag, 1, pattern(1900, 1))
	require.NoError(t, err)
	r.run(time.Second)
	_, err = r.send(0, tag, 2, pattern(1900, 2))
	require.ErrorIs(t, err, microproto.ErrBusy)
	r.Link.Partition(1, true)
	got, _ := r.drain(1, 1900)
	require.Len(t, got, 1)
	r.run(time.Second)
	r.Link.Partition(1, false)
	r.run(3 * time.Second)
	_, err = r.send(0, tag, 2, pattern(1900, 2))
	require.NoError(t, err)
}

// The first and the last frames are lost, in each direction.
func TestFirstAndLastLost(t *testing.T) {
	for _, end := range []int{0, 1} {
		r := newRig(t, syncEther, nil, 1500, 1, calm)
		first := true
		r.OnFrame = func(from int, _ microproto.Frame) bool {
			lose := from == end && first
			first = first && !lose
			return !lose
		}
		r.open()
		_, err := r.send(0, tag, 1, pattern(3000, 1))
		require.NoError(t, err)
		r.run(time.Second)
		require.EqualValues(t, 1, r.accepted(0))
		first = true
		_, err = r.send(0, tag, 2, pattern(30, 1))
		require.NoError(t, err)
		r.run(time.Second)
		require.EqualValues(t, 2, r.accepted(0))
		got, _ := r.drain(1, 3000)
		require.Len(t, got, 2)
	}
}

// After an outage of two seconds the transfer resumes within the maximum of the back-off.
func TestBlackHole(t *testing.T) {
	r := newRig(t, syncEther, nil, 1500, 1, calm).open()
	_, err := r.send(0, tag, 1, pattern(3000, 1))
	require.NoError(t, err)
	r.run(10 * time.Millisecond)
	r.Link.Partition(0, true)
	r.Link.Partition(1, true)
	_, err = r.send(0, tag, 2, pattern(200_000, 2))
	require.NoError(t, err)
	before := r.Link.Stats(0).Sent
	r.run(2 * time.Second)
	require.Less(t, r.Link.Stats(0).Sent-before, uint64(200), "a black hole is not flooded")
	r.Link.Partition(0, false)
	r.Link.Partition(1, false)
	ok, err := r.RunUntil(1200*time.Millisecond, func() bool { return r.accepted(0) == 2 })
	require.NoError(t, err)
	require.True(t, ok, "resumed within the cap of the back-off")
}

func TestSendErrors(t *testing.T) {
	o := microproto.Options{OptionReceive: 1000, OptionPeerReceive: 500}
	r := newRig(t, syncEther, o, 400, 1, calm).open()
	require.NoError(t, r.ends[0].Endpoint().Slot(tag, 100))
	_, err := r.send(0, tag, 1, make([]byte, 101))
	require.ErrorIs(t, err, ErrMessageSize)
	_, err = r.send(0, tag+1, 1, make([]byte, 500))
	require.ErrorIs(t, err, ErrMessageSize, "the other end's queue is what counts")
	require.ErrorIs(t, r.ends[0].Endpoint().Slot(1, 2000), ErrMessageSize)
	_, err = r.receive(0, tag, nil, nil)
	require.ErrorIs(t, err, microproto.ErrNothing)
	_, err = r.send(0, tag, 1, make([]byte, 100))
	require.NoError(t, err)
	r.run(time.Second)
	a, err := r.receive(1, tag, make([]byte, 99), nil)
	require.ErrorIs(t, err, microproto.ErrShort)
	require.Equal(t, 100, a.Length)
	_, err = r.receive(1, tag, make([]byte, 100), nil)
	require.NoError(t, err, "a message is not lost by a short destination")
}

// Unread messages of one tag do not delay those of another.
func TestTagsHaveSeparateQueues(t *testing.T) {
	r := newRig(t, syncEther, nil, 1500, 1, calm).open()
	for k := range uint64(3) {
		for tg := range uint32(2) {
			_, err := r.send(0, tg, k, []byte{byte(tg), byte(k)})
			require.NoError(t, err)
		}
	}
	r.run(time.Second)
	dst := make([]byte, 2)
	for tg := range uint32(2) {
		for k := range uint64(3) {
			a, err := r.receive(1, tg, dst, nil)
			require.NoError(t, err)
			require.Equal(t, k, a.Label)
			require.Equal(t, []byte{byte(tg), byte(k)}, dst)
		}
	}
}

// A busy channel allocates nothing at either end.
func TestSynchronousAllocatesNothing(t *testing.T) {
	o := microproto.Options{OptionReceive: 1 << 20, OptionPeerReceive: 1 << 20}
	a, b := plainEnd(t, syncEther, o), plainEnd(t, syncEther, o)
	data, dst := pattern(20_000, 1), make([]byte, 20_000)
	label, now := uint64(0), microproto.Instant(1)
	var outs [2][]microproto.Output
	sendFn := func(x *microproto.Exec) { _, _ = a.Endpoint().Send(x, tag, label, data) }
	recvFn := func(x *microproto.Exec) { _, _ = b.Endpoint().Receive(x, tag, dst, nil) }
	turn := func() {
		now += 1000
		label++
		_ = a.Do(now, sendFn)
		for range 4 {
			for i, c := range []*microproto.Composite{a, b} {
				outs[i] = c.Drain(outs[i][:0])
				for _, o := range outs[i] {
					_ = []*microproto.Composite{b, a}[i].Input(now, o.Frame)
				}
				_ = c.Advance(now)
			}
		}
		_ = b.Do(now, recvFn)
	}
	for range 100 {
		turn()
	}
	require.EqualValues(t, 100, a.Endpoint().Accepted())
	require.Zero(t, testing.AllocsPerRun(200, turn))
	require.Equal(t, data, dst)
}
