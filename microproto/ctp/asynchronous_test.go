package ctp

import (
	"bytes"
	"encoding/binary"
	"testing"
	"time"

	"github.com/p2pdc/p2pdc/microproto"
	"github.com/p2pdc/p2pdc/microproto/mptest"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// value returns the content of a slot, in which every 8 bytes contain the label.
func value(n int, label uint64) []byte {
	b := make([]byte, n)
	for i := 0; i < n; i += 8 {
		binary.LittleEndian.PutUint64(b[i:], label)
	}
	return b
}

func asyncRig(tb require.TestingT, mtu int, seed uint64, f mptest.Faults, length int) *rig {
	r := newTrainRig(tb, asyncEther, nil, mtu, int(seed%2)*trainBytes, seed, f) // with trains, or without
	for _, c := range r.ends {
		require.NoError(tb, c.Endpoint().Slot(tag, length))
	}
	return r.open()
}

// Whatever the faults, no part of a slot becomes older, every 8 bytes are of the label reported
// for them, and the newest value arrives completely when it is repeated after the faults.
func TestAsynchronousNewestWins(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		length := 8 * rapid.IntRange(1, 300).Draw(rt, "words")
		f := mptest.Faults{
			Delay:  time.Duration(rapid.IntRange(0, 2000).Draw(rt, "delay µs")) * time.Microsecond,
			Jitter: time.Millisecond,
			Loss:   rapid.Float64Range(0, 0.6).Draw(rt, "loss"), Duplicate: 0.1,
			Reorder: rapid.Float64Range(0, 0.5).Draw(rt, "reorder"),
		}
		r := asyncRig(rt, rapid.IntRange(80, 600).Draw(rt, "mtu"), rapid.Uint64().Draw(rt, "seed"), f, length)
		dst := make([]byte, length)
		labels := make([]microproto.SegmentLabel, 0, 400)
		held := make([]uint64, length/8)
		look := func(a microproto.Arrival) {
			oldest, newest := ^uint64(0), uint64(0)
			covered := 0
			for _, l := range labels {
				covered += l.Length
				oldest, newest = min(oldest, l.Label), max(newest, l.Label)
				for at := l.Offset; at < l.Offset+l.Length; at += 8 {
					v := binary.LittleEndian.Uint64(dst[at:])
					require.Equal(rt, l.Label, v)
					require.GreaterOrEqual(rt, v, held[at/8], "a part went back")
					held[at/8] = v
				}
			}
			require.Equal(rt, covered == length, a.Complete)
			if len(labels) > 0 {
				require.Equal(rt, oldest, a.Label, "the age of a slot is that of its oldest part")
				require.Equal(rt, newest, a.Newest)
			}
		}
		const last = 60
		for k := uint64(1); k <= last; k++ {
			_, err := r.send(0, tag, k, value(length, k))
			require.NoError(rt, err)
			r.run(time.Duration(rapid.IntRange(0, 3000).Draw(rt, "pause µs")) * time.Microsecond)
			a, err := r.receive(1, tag, dst, &labels)
			require.NoError(rt, err)
			look(a)
		}
		r.Link.SetFaults(mptest.Faults{Delay: time.Millisecond})
		_, err := r.send(0, tag, last, value(length, last))
		require.NoError(rt, err)
		r.run(time.Second)
		a, err := r.receive(1, tag, dst, &labels)
		require.NoError(rt, err)
		look(a)
		require.True(rt, a.Complete)
		require.EqualValues(rt, last, a.Label)
		ep := r.ends[1].Endpoint().(*Asynchronous)
		require.Less(rt, *ep.overwritten, ep.Arrivals())
		a, err = r.receive(1, tag, dst, &labels)
		require.NoError(rt, err)
		require.False(rt, a.Fresh, "nothing new")
		require.NoError(rt, r.Pair.Close())
	})
}

// A lost segment affects only that segment of the value.
func TestLostSegmentCostsThatSegment(t *testing.T) {
	const length = 4000
	r := asyncRig(t, 600, 2, calm, length) // no trains: frames are counted
	seg := *r.ends[0].Endpoint().(*Asynchronous).segment
	send := func(label uint64, lose int) {
		n := 0
		r.OnFrame = func(int, microproto.Frame) bool { n++; return n-1 != lose }
		_, err := r.send(0, tag, label, value(length, label))
		require.NoError(t, err)
		r.run(time.Second)
		require.Greater(t, n, 5)
	}
	dst, labels := make([]byte, length), make([]microproto.SegmentLabel, 0, 32)
	send(1, 3)
	a, err := r.receive(1, tag, dst, &labels)
	require.NoError(t, err)
	require.False(t, a.Complete)
	require.True(t, a.Fresh)
	require.Zero(t, *r.ends[1].Endpoint().(*Asynchronous).overwritten)
	send(2, 1)
	a, err = r.receive(1, tag, dst, &labels)
	require.NoError(t, err)
	require.True(t, a.Complete)
	require.EqualValues(t, 1, a.Label)
	require.EqualValues(t, 2, a.Newest)
	for i, l := range labels {
		want := uint64(2)
		if i == 1 {
			want = 1
		}
		require.Equal(t, microproto.SegmentLabel{Offset: i * seg, Length: min(seg, length-i*seg), Label: want}, l)
	}
	send(2, -1) // a repetition brings the missing part only
	require.EqualValues(t, len(labels)-1, r.drops(1, "not newer"))
	a, err = r.receive(1, tag, dst, nil)
	require.NoError(t, err)
	require.EqualValues(t, 2, a.Label)
	require.True(t, bytes.Equal(value(length, 2), dst))
}

func TestSlotErrors(t *testing.T) {
	r := asyncRig(t, 600, 1, calm, 80)
	ep := r.ends[0].Endpoint()
	require.ErrorIs(t, ep.Slot(tag, 80), ErrSlot)
	require.ErrorIs(t, ep.Slot(9, 12), ErrSlot)
	require.ErrorIs(t, ep.Slot(9, 0), ErrSlot)
	_, err := r.send(0, 9, 1, make([]byte, 80))
	require.ErrorIs(t, err, ErrSlot)
	_, err = r.send(0, tag, 1, make([]byte, 72))
	require.ErrorIs(t, err, ErrSlot)
	_, err = r.send(0, tag, 2, make([]byte, 80))
	require.NoError(t, err)
	_, err = r.send(0, tag, 1, make([]byte, 80))
	require.ErrorContains(t, err, "must not decrease")
	_, err = r.receive(0, tag, make([]byte, 79), nil)
	require.ErrorIs(t, err, microproto.ErrShort)
	_, err = r.receive(0, 9, make([]byte, 80), nil)
	require.ErrorIs(t, err, ErrSlot)
}

func TestAsynchronousAllocatesNothing(t *testing.T) {
	a, b := plainEnd(t, asyncEther, nil), plainEnd(t, asyncEther, nil)
	data, dst := value(16_000, 1), make([]byte, 16_000)
	labels := make([]microproto.SegmentLabel, 0, 64)
	for _, c := range []*microproto.Composite{a, b} {
		require.NoError(t, c.Endpoint().Slot(tag, len(data)))
	}
	var label uint64
	var arrival microproto.Arrival
	var outs []microproto.Output
	send := func(x *microproto.Exec) { _, _ = a.Endpoint().Send(x, tag, label, data) }
	receive := func(x *microproto.Exec) { arrival, _ = b.Endpoint().Receive(x, tag, dst, &labels) }
	turn := func() {
		label++
		_ = a.Do(1, send)
		outs = a.Drain(outs[:0])
		for _, o := range outs {
			_ = b.Input(1, o.Frame)
		}
		_ = b.Do(1, receive)
	}
	require.Zero(t, testing.AllocsPerRun(200, turn))
	require.True(t, arrival.Complete)
	require.Equal(t, label, arrival.Label)
}

// Slots survive a change of composition.
func TestAsynchronousHandsItsSlotsOver(t *testing.T) {
	r := asyncRig(t, 600, 1, calm, 800)
	_, err := r.send(0, tag, 1, value(800, 1))
	require.NoError(t, err)
	r.run(time.Second)
	next, err := microproto.NewComposite(microproto.Config{Name: "next", MTU: 500}, build(t, asyncEther, nil)...)
	require.NoError(t, err)
	require.NoError(t, next.Endpoint().Slot(tag, 800))
	var h microproto.HandoverState
	r.ends[1].Endpoint().(*Asynchronous).Export(&h)
	require.NoError(t, next.Endpoint().(*Asynchronous).Import(&h))
	require.NoError(t, next.Open(0))
	dst := make([]byte, 800)
	var a microproto.Arrival
	require.NoError(t, next.Do(0, func(x *microproto.Exec) { a, err = next.Endpoint().Receive(x, tag, dst, nil) }))
	require.NoError(t, err)
	require.True(t, a.Complete && a.Fresh)
	require.Equal(t, value(800, 1), dst)
}

// Segments that are overwritten before they are received are counted.
func TestOverwritten(t *testing.T) {
	r := asyncRig(t, 600, 1, calm, 4000)
	ep := r.ends[1].Endpoint().(*Asynchronous)
	for label := uint64(1); label <= 3; label++ {
		_, err := r.send(0, tag, label, value(4000, label))
		require.NoError(t, err)
		r.run(time.Second)
	}
	require.EqualValues(t, len(ep.slots[0].parts)*2, *ep.overwritten)
}
