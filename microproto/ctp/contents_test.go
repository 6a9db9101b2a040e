package ctp

import (
	"bytes"
	"encoding/binary"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/p2pdc/p2pdc/microproto"
	"github.com/p2pdc/p2pdc/microproto/mptest"
)

// countedRig is a rig of trains whose frames are counted.
func countedRig(tb require.TestingT, seed uint64, f mptest.Faults, limits microproto.Limits) (*rig, *mptest.Frames) {
	return countedRigOf(tb, syncEther, seed, f, limits)
}

func countedRigOf(
	tb require.TestingT, names []string, seed uint64, f mptest.Faults, limits microproto.Limits,
) (*rig, *mptest.Frames) {
	r, frames := &rig{tb: tb}, &mptest.Frames{}
	for i := range r.ends {
		c, err := microproto.NewComposite(microproto.Config{Name: string(rune('a' + i)), Seed: seed, MTU: 1000,
			Train: trainBytes, Frames: frames, Limits: limits}, build(tb, names, nil)...)
		require.NoError(tb, err)
		r.ends[i] = c
	}
	r.Pair = mptest.NewPair(r.ends[0], r.ends[1], seed, f)
	return r.open(), frames
}

func (r *rig) view(end int, tag uint32, v *microproto.View) (a microproto.Arrival, err error) {
	r.do(end, func(x *microproto.Exec) { a, err = r.ends[end].Endpoint().View(x, tag, v) })
	return a, err
}

// Unread messages, read by Receive or View at any time, are those that were sent. A view holds the newest two of them
// until it is released. In the end every frame is released, also those of messages that were not read.
func TestContents(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := mptest.Faults{Delay: 20 * time.Microsecond, Loss: rapid.SampledFrom([]float64{0, 0.02}).Draw(t, "loss")}
		scarce := rapid.Bool().Draw(t, "scarce")
		limits := microproto.Limits{Messages: rapid.SampledFrom([]int{0, 64}).Draw(t, "limit")}
		r, frames := countedRig(t, rapid.Uint64().Draw(t, "seed"), f, limits)
		frames.Scarce = scarce
		var unread, held [2][][]byte
		var views [2]microproto.View
		label := uint64(0)
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			tag := uint32(rapid.IntRange(0, 1).Draw(t, "tag"))
			switch rapid.IntRange(0, 4).Draw(t, "what") {
			case 0, 1:
				label++
				data := pattern(rapid.SampledFrom([]int{0, 8, 700, 2100, 9000, 30_000}).Draw(t, "length"), label)
				if _, err := r.send(0, tag, label, data); err == nil {
					unread[tag] = append(unread[tag], data)
				}
			case 2:
				r.run(time.Duration(rapid.IntRange(0, 2000).Draw(t, "µs")) * time.Microsecond)
			case 3:
				dst := make([]byte, 30_000)
				if scarce { // everything is copied at once
					for i := range r.ends[1].Endpoint().(*Synchronous).queues {
						q := &r.ends[1].Endpoint().(*Synchronous).queues[i].messages
						require.True(t, q.Len() == 0 || q.Front().parts == nil)
					}
				}
				if a, err := r.receive(1, tag, dst, nil); err == nil {
					require.Equal(t, unread[tag][0], dst[:a.Length])
					unread[tag] = unread[tag][1:]
				}
			default:
				if a, err := r.view(1, tag, &views[tag]); err == nil {
					require.Equal(t, len(unread[tag][0]), a.Length)
					held[tag], unread[tag] = append(held[tag], bytes.Join(views[tag].Pieces, nil)), unread[tag][1:]
				}
			}
			for tag := range views {
				if n := len(held[tag]); n > 0 {
					require.True(t, bytes.Equal(held[tag][n-1], bytes.Join(views[tag].Pieces, nil)))
				}
			}
		}
		for range 200 { // everything arrives
			r.rest(100 * time.Millisecond)
		}
		for tag := range unread {
			for _, data := range unread[tag] {
				_, err := r.view(1, uint32(tag), &views[tag])
				require.NoError(t, err)
				require.True(t, bytes.Equal(data, bytes.Join(views[tag].Pieces, nil)))
			}
		}
		require.Zero(t, r.ends[1].Endpoint().(*Synchronous).buffers.kept)
		require.Zero(t, r.ends[1].Counters().Live, "what was read has ended")
		_, _ = r.send(0, 0, label+1, pattern(9000, 1)) // it stays unread
		r.rest(time.Second)
		require.NoError(t, r.Pair.Close())
		for i := range views {
			views[i].Release()
			require.Empty(t, views[i].Pieces)
		}
		require.Equal(t, frames.Acquired, frames.Released)
	})
}

// A long message is not copied between its frames and the view.
func TestNotCopied(t *testing.T) {
	viewed, data := 0, pattern(20_000, 1)
	for seed := range uint64(50) { // the link divides trains at random
		r, _ := countedRig(t, seed, calm, microproto.Limits{})
		_, err := r.send(0, tag, 1, data)
		require.NoError(t, err)
		r.run(time.Second)
		var first []byte
		if m := r.ends[1].Endpoint().(*Synchronous).find(tag).messages.Front(); m.data == nil {
			first = m.parts[0].Piece(0)
		}
		var v microproto.View
		a, err := r.view(1, tag, &v)
		require.NoError(t, err)
		require.Equal(t, len(data), a.Length)
		require.Equal(t, data, bytes.Join(v.Pieces, nil))
		for _, p := range v.Pieces[:len(v.Pieces)-1] {
			require.Zero(t, len(p)%8)
		}
		if first != nil {
			viewed++
			require.Same(t, &first[0], &v.Pieces[0][0])
		}
		v.Release()
		require.NoError(t, r.Pair.Close())
	}
	require.Greater(t, viewed, 5)
}

// A message is copied if its parts occupy more than four times its memory together.
func TestLargeFramesAreCopied(t *testing.T) {
	copied := 0
	for seed := range uint64(40) { // the link divides trains at random
		r, frames := countedRig(t, seed, calm, microproto.Limits{})
		frames.Headroom = 10_000
		_, err := r.send(0, tag, 1, pattern(5000, 1))
		require.NoError(t, err)
		r.run(time.Second)
		if m := r.ends[1].Endpoint().(*Synchronous).find(tag).messages.Front(); m.data != nil {
			copied++
		} else {
			require.LessOrEqual(t, m.kept, maxKept*m.length)
			require.Len(t, m.parts, m.kept/15_000)
		}
		require.NoError(t, r.Pair.Close())
	}
	require.True(t, 0 < copied && copied < 40, copied)
}

// Where a link loses frames although it has promised not to, messages that are incomplete when the next one begins are
// given up, with the trains that were kept of them.
func TestAbandonedMessages(t *testing.T) {
	r, _ := countedRigOf(t, syncReady, 3, mptest.Faults{Delay: 20 * time.Microsecond, Loss: 0.1}, microproto.Limits{})
	kept := func() int { return r.ends[1].Endpoint().(*Synchronous).buffers.kept }
	read, most, dst := 0, 0, make([]byte, 30_000)
	for label := range uint64(300) {
		data := pattern(30_000, label)
		if _, err := r.send(0, tag, label, data); err != nil {
			break // lost segments used up the grant
		}
		r.run(time.Millisecond)
		for {
			a, err := r.receive(1, tag, dst, nil)
			if err != nil {
				break
			}
			read++
			require.Equal(t, pattern(30_000, a.Label), dst)
		}
		require.LessOrEqual(t, kept(), maxParts, "of one message that is incomplete")
		most = max(most, kept())
	}
	require.Greater(t, read, 5)
	require.Positive(t, most)
}

// A view of a slot has the newest value of each part, whatever the faults, and keeps the value before.
func TestViewsOfASlot(t *testing.T) {
	whole := 0
	rapid.Check(t, func(t *rapid.T) {
		length := 8 * rapid.IntRange(1, 300).Draw(t, "words")
		f := mptest.Faults{Delay: time.Millisecond, Jitter: time.Millisecond,
			Loss: rapid.SampledFrom([]float64{0, 0.05, 0.4}).Draw(t, "loss")}
		r := asyncRig(t, rapid.IntRange(80, 600).Draw(t, "mtu"), rapid.Uint64().Draw(t, "seed"), f, length)
		s := r.ends[1].Endpoint().(*Asynchronous).find(tag)
		var v microproto.View
		var before [][]byte
		var was []byte
		held := make([]uint64, length/8)
		for k := uint64(1); k <= 60; k++ {
			_, err := r.send(0, tag, k, value(length, k))
			require.NoError(t, err)
			r.run(time.Duration(rapid.IntRange(0, 6000).Draw(t, "pause µs")) * time.Microsecond)
			fresh, swaps := s.fresh, s.fresh == len(s.parts)
			a, err := r.view(1, tag, &v)
			require.NoError(t, err)
			require.Equal(t, fresh > 0, a.Fresh)
			if !a.Fresh || !a.Complete {
				continue
			}
			if swaps {
				whole++
				require.True(t, bytes.Equal(was, bytes.Join(before, nil)), "the value before")
			}
			require.Len(t, v.Pieces, 1)
			oldest, newest := ^uint64(0), uint64(0)
			for i := range held {
				word := binary.LittleEndian.Uint64(v.Pieces[0][8*i:])
				require.GreaterOrEqual(t, word, held[i], "a part went back")
				held[i], oldest, newest = word, min(oldest, word), max(newest, word)
			}
			require.Equal(t, [2]uint64{a.Label, a.Newest}, [2]uint64{oldest, newest})
			before, was = v.Pieces, bytes.Clone(v.Pieces[0])
		}
		require.NoError(t, r.Pair.Close())
	})
	require.Positive(t, whole)
}

// After a change to segments of another size, a slot whose data a view has taken starts empty.
func TestViewedSlotIsRepartitioned(t *testing.T) {
	for _, viewed := range []bool{false, true} {
		s := &slot{data: make([]byte, 80), parts: []part{{5, true, true}, {5, true, true}}, fresh: 2}
		if viewed {
			var v microproto.View
			require.EqualValues(t, 5, s.exchange(&v).Label)
		}
		s.importedSegment = 40
		s.repartition(16)
		require.Len(t, s.parts, 5)
		require.Equal(t, map[bool]int{false: 0, true: 5}[viewed], s.absent)
		require.False(t, s.stale)
	}
}

// A long value of one segment stays in the memory of the link until it is read or a newer value arrives. Where that
// memory is scarce, the value is copied. Receive, View and a change of composition find the newest value. In the end
// every frame is released.
func TestValuesOfOneSegment(t *testing.T) {
	const length = 4096
	kept := 0
	rapid.Check(t, func(t *rapid.T) {
		seed := rapid.Uint64().Draw(t, "seed")
		frames, r := &mptest.Frames{}, &rig{tb: t}
		end := func(name string, mtu int) *microproto.Composite {
			c, err := microproto.NewComposite(microproto.Config{Name: name, Seed: seed, MTU: mtu, Frames: frames},
				build(t, asyncEther, nil)...)
			require.NoError(t, err)
			require.NoError(t, c.Endpoint().Slot(tag, length))
			return c
		}
		r.ends[0], r.ends[1] = end("a", 5000), end("b", 5000)
		f := mptest.Faults{Delay: 20 * time.Microsecond, Jitter: 50 * time.Microsecond, Duplicate: 0.1}
		r.Pair = mptest.NewPair(r.ends[0], r.ends[1], seed, f)
		r.open()
		var v microproto.View
		var shown []byte
		dst, got, read := make([]byte, length), uint64(0), false
		take := func(a microproto.Arrival, err error, data []byte) {
			require.NoError(t, err)
			if a.Fresh {
				require.Greater(t, a.Label, got)
				require.Equal(t, value(length, a.Label), data)
				got, read = a.Label, true
			}
		}
		for k := range uint64(rapid.IntRange(1, 60).Draw(t, "steps")) {
			s := r.ends[1].Endpoint().(*Asynchronous).find(tag)
			switch rapid.IntRange(0, 3).Draw(t, "what") {
			case 0, 1:
				frames.Scarce = rapid.IntRange(0, 3).Draw(t, "scarce") == 0
				_, err := r.send(0, tag, k+1, value(length, k+1))
				require.NoError(t, err)
				r.run(time.Duration(rapid.IntRange(0, 200).Draw(t, "µs")) * time.Microsecond)
			case 2:
				a, err := r.receive(1, tag, dst, nil)
				take(a, err, dst)
			default:
				inPlace := s.whole
				a, err := r.view(1, tag, &v)
				if take(a, err, bytes.Join(v.Pieces, nil)); a.Fresh {
					shown = value(length, a.Label)
				}
				if inPlace != nil {
					kept++
				}
			}
			require.True(t, bytes.Equal(shown, bytes.Join(v.Pieces, nil)), "the value that was viewed last")
		}
		r.rest(time.Second)
		e := r.ends[1].Endpoint().(*Asynchronous)
		newest, whole := e.find(tag).parts[0], 0
		if e.find(tag).whole != nil {
			whole = 1
		}
		require.Equal(t, whole, e.buffers.kept, "no other message is kept")
		next := end("c", rapid.SampledFrom([]int{5000, 1000}).Draw(t, "next"))
		var h microproto.HandoverState
		r.ends[1].Endpoint().(*Asynchronous).Export(&h)
		require.NoError(t, next.Endpoint().(*Asynchronous).Import(&h))
		require.NoError(t, next.Open(0))
		require.NoError(t, next.Do(0, func(x *microproto.Exec) {
			a, err := next.Endpoint().Receive(x, tag, dst, nil)
			require.Equal(t, newest.fresh, a.Fresh)
			take(a, err, dst)
		}))
		require.Equal(t, read, newest.have)
		require.NoError(t, r.Pair.Close())
		require.NoError(t, next.Close(0))
		v.Release()
		require.Equal(t, frames.Acquired, frames.Released)
	})
	require.Positive(t, kept)
}
