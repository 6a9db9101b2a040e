package shm

import (
	"bytes"
	"encoding/binary"
	"math/bits"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/p2pdc/p2pdc/microproto"
)

// twoLanes returns the writer of one end, and the reader of the other with its loans, over heap memory.
func twoLanes(s sizes) (*laneWriter, *laneReader, *loans) {
	l := newLayout(s)
	a, b := alignedBytes(l.total), alignedBytes(l.total)
	lent := &loans{out: b, returned: func() {}, inSlot: make([]uint64, s.Values)}
	return &laneWriter{layout: l, out: a, in: b}, &laneReader{layout: l, out: b, in: a}, lent
}

// Frames of any length come whole and in order through a lane of any size, which is never overfull. A frame that is
// lent stays as it is until it is released, in any order, however much passes meanwhile. A writer that does not fit is
// woken when the reader has read enough, whatever is lent. A body in a reserved block is not copied, once, and stays as it
// is while it is reserved, also when the reader has given the block back.
func TestLane(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		frame := rapid.OneOf(rapid.IntRange(1, 900), rapid.IntRange(lendBytes, 6000)).Draw(t, "frame")
		lane := powerOfTwo(max(4*frame, 8*lineBytes*6) << rapid.IntRange(0, 2).Draw(t, "lane"))
		w, r, loans := twoLanes(sizes{FrameBytes: uint32(frame), ValueBytes: 8, Values: 4, LaneBytes: uint32(lane)})
		sent, got := [][]byte{}, [][]byte{}
		type loaned struct {
			frame microproto.Frame
			index int
		}
		var lent []loaned
		type reservation struct{ memory, want []byte }
		var reserved []reservation
		stopped := false
		unreserve := func() {
			i := rapid.IntRange(0, len(reserved)-1).Draw(t, "unreserve")
			require.Equal(t, reserved[i].want, reserved[i].memory)
			w.unreserve(offsetIn(w.out, reserved[i].memory))
			reserved = slices.Delete(reserved, i, i+1)
		}
		release := func() {
			i := rapid.IntRange(0, len(lent)-1).Draw(t, "release")
			require.Equal(t, sent[lent[i].index], lent[i].frame.Data)
			lent[i].frame.Release()
			lent = slices.Delete(lent, i, i+1)
		}
		for i := range rapid.IntRange(1, 400).Draw(t, "steps") {
			if rapid.Bool().Draw(t, "write") {
				b := make([]byte, rapid.IntRange(1, frame).Draw(t, "bytes"))
				for k := range b {
					b[k] = byte(i + k)
				}
				cut := rapid.IntRange(0, len(b)).Draw(t, "header")
				head, body, inPlace := b[:cut], b[cut:], false
				for len(reserved) > 0 && rapid.IntRange(0, 3).Draw(t, "done") == 0 {
					unreserve()
				}
				if block := w.freeBlock(len(b)); block >= 0 && len(body) > 0 && rapid.Bool().Draw(t, "reserve") {
					w.reserved |= 1 << block
					at := w.blockAt(block) + cut
					body = w.out[at : at+copy(w.out[at:], body)]
					reserved, inPlace = append(reserved, reservation{body, b[cut:]}), true
				}
				ok, err := w.mayPush(w.need(head, body))
				require.NoError(t, err)
				if stopped = !ok; ok {
					require.Equal(t, inPlace, w.push(head, body))
					sent = append(sent, b)
				}
				if again, err := w.mayPush(w.need(head, body)); err == nil && ok && again && inPlace {
					require.False(t, w.push(head, body), "the other end has it: another frame is a copy")
					sent = append(sent, b)
				}
				continue
			}
			for range rapid.IntRange(1, 40).Draw(t, "reads") {
				for len(lent) > 0 && rapid.IntRange(0, 7).Draw(t, "give back") == 0 {
					release()
				}
				k, err := r.peek()
				require.NoError(t, err)
				if k.kind == nothing {
					require.Len(t, got, len(sent))
					break
				}
				if k.kind != skipRecord {
					got = append(got, bytes.Clone(r.frame(k)))
				}
				if k.kind == blockRecord {
					b, err := loans.lendBlock(r.frame(k), k.block)
					require.NoError(t, err)
					lent = append(lent, loaned{b.Frame(1, 0, k.value), len(got) - 1})
				}
				if r.advance(k.lines) {
					stopped = false
				}
			}
			require.False(t, stopped && len(got) == len(sent), "nobody wakes the writer")
		}
		require.Equal(t, sent[:len(got)], got)
	})
}

// A commit word decodes to the encoded kind and length at the line for which it was made, and nowhere else.
func TestCommitWord(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := newLayout(sizes{FrameBytes: 1000, ValueBytes: 2000, Values: 5, LaneBytes: 1 << 14})
		line := rapid.Uint64Range(0, 1<<40).Draw(t, "line")
		n := rapid.IntRange(1, 2000).Draw(t, "bytes")
		w := commitWord(line, frameRecord, n)
		require.NotZero(t, w)
		r, err := l.decode(line, w)
		if line&(l.lines-1)+linesOf(n) > l.lines {
			require.ErrorIs(t, err, errRecord)
			return
		}
		require.NoError(t, err)
		require.Equal(t, record{kind: frameRecord, value: n, lines: linesOf(n)}, r)
		_, err = l.decode(line+1, w)
		require.ErrorIs(t, err, errRecord)
	})
}

// What an arbitrary commit word tells to read lies within the lane.
func FuzzDecode(f *testing.F) {
	l := newLayout(sizes{FrameBytes: 1000, ValueBytes: 2000, Values: 5, LaneBytes: 1 << 14})
	f.Add(uint64(0), commitWord(0, frameRecord, 1000))
	f.Add(uint64(255), commitWord(255, skipRecord, 1))
	f.Add(uint64(7), commitWord(7, noticeRecord, 4))
	f.Add(uint64(8), commitWord(8, blockRecord, 1000*maxBlocks+maxBlocks-1))
	f.Fuzz(func(t *testing.T, line, commit uint64) {
		r, err := l.decode(line, commit)
		if err != nil || r.kind == nothing {
			return
		}
		require.NotZero(t, r.lines)
		require.LessOrEqual(t, line&(l.lines-1)+r.lines, l.lines)
		if r.kind == frameRecord {
			require.LessOrEqual(t, l.lineAt(line)+commitLen+r.value, l.slots)
		}
		if r.kind == blockRecord {
			require.LessOrEqual(t, l.blockAt(r.block)+r.value, l.total)
		}
		if r.kind == noticeRecord {
			require.Less(t, r.value, int(l.Values))
		}
	})
}

// The same for the word of a slot.
func FuzzLatest(f *testing.F) {
	l := newLayout(sizes{FrameBytes: 1000, ValueBytes: 2000, Values: 5, LaneBytes: 1 << 14})
	f.Add(latestWord(3, 2000, 2), 4)
	f.Fuzz(func(t *testing.T, w uint64, slot int) {
		length, index, err := l.decodeLatest(w)
		if err == nil {
			end := l.buffer(slot&3, index) + length
			require.LessOrEqual(t, end, l.total)
		}
	})
}

// A slot gives the newest frame, whatever the order of writes and reads, and one notice for all unread ones. Frames that
// are held stay as they are.
func TestSlot(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w, r, _ := twoLanes(sizes{FrameBytes: 512, ValueBytes: 64, Values: 2, LaneBytes: 1 << 13})
		out := slotWriter{slotOf: map[uint64]int32{}}
		in := slotReader{taken: make([]uint64, 2), delivered: make([]uint64, 2)}
		var written, notices, got [2]uint64
		type hold struct {
			frame       []byte
			slot, index int
			want        uint64
		}
		var held []hold
		marks := [2]uint64{}
		for range rapid.IntRange(1, 300).Draw(t, "steps") {
			slot := rapid.IntRange(0, 1).Draw(t, "slot")
			if rapid.Bool().Draw(t, "write") {
				written[slot]++
				n := out.slotFor(uint64(slot+1), 2)
				at, inPlace := -1, rapid.Bool().Draw(t, "reserve")
				if rapid.IntRange(0, 3).Draw(t, "used") > 0 && out.slots[n].reserved {
					out.unreserve(w, w.buffer(n, out.slots[n].next)+3)
				}
				body := binary.BigEndian.AppendUint64(nil, written[slot])
				if inPlace {
					if at = out.reserve(w, n); at >= 0 {
						body = w.out[at+1 : at+1+copy(w.out[at+1:], body)]
					}
				}
				notify, placed := out.write(w, n, []byte{7}, body)
				require.Equal(t, at >= 0, placed)
				if notify {
					require.Zero(t, notices[n])
					notices[n]++
				}
				continue
			}
			if notices[slot] == 0 {
				continue
			}
			if bits.OnesCount64(marks[slot]) == heldPerSlot {
				i := slices.IndexFunc(held, func(h hold) bool { return h.slot == slot })
				h := held[i]
				held = slices.Delete(held, i, i+1)
				require.Equal(t, h.want, binary.BigEndian.Uint64(h.frame[1:]))
				marks[slot] &^= 1 << h.index
				word(r.out, r.reads+8*slot).Store(marks[slot])
			}
			notices[slot]--
			in.take(r, slot)
			frame, index, ok, err := in.newest(r, slot, marks[slot])
			require.NoError(t, err)
			require.True(t, ok)
			require.Len(t, frame, 9)
			got[slot] = binary.BigEndian.Uint64(frame[1:])
			if rapid.Bool().Draw(t, "hold") {
				marks[slot] |= 1 << index
				held = append(held, hold{frame, slot, index, got[slot]})
			}
		}
		for slot, id := range []uint64{1, 2} {
			n, used := out.slotOf[id]
			if used && notices[n] == 0 {
				require.Equal(t, written[slot], got[n], "nothing newer than what was delivered is unannounced")
			}
		}
	})
}

// Values that are sent no more give their slots up; those that are sent keep theirs.
func TestSlotsAreReassigned(t *testing.T) {
	s := slotWriter{slotOf: map[uint64]int32{}}
	require.Equal(t, 0, s.slotFor(1, 2))
	require.Equal(t, 1, s.slotFor(2, 2))
	for i := range 100 {
		require.Equal(t, 0, s.slotFor(1, 2))
		if slot := s.slotFor(3, 2); slot >= 0 {
			require.Equal(t, 1, slot)
			require.Greater(t, i, idleFrames/2)
		}
	}
	require.Equal(t, 1, s.slotFor(3, 2))
	require.Equal(t, -1, s.slotFor(2, 2))
	require.Equal(t, -1, s.slotFor(9, 0), "a link without slots")
}
