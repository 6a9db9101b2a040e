package shm

import (
	"fmt"
	"math/bits"
)

// laneWriter appends records to the lane of this end's outbox.
type laneWriter struct {
	*layout
	out, in []byte // outboxes of this end and of the other; in is nil until the ends have met
	head    uint64 // lines written, those skipped included
	tail    uint64 // lines that the other end has read, when last looked
	wanted  uint64 // generation of wantedAt
	used    uint64 // bit i changes when block i is written

	// Bit i: block i is reserved, and was sent since.
	reserved, sent uint64
}

// fits reports whether n lines are free.
func (w *laneWriter) fits(n uint64) (bool, error) {
	if w.head+n-w.tail <= w.lines {
		return true, nil
	}
	if w.in == nil {
		return false, nil
	}
	tail := word(w.in, tailAt).Load()
	if tail-w.tail > w.head-w.tail {
		return false, fmt.Errorf("%w: it has read %d lines of %d", errRecord, tail, w.head)
	}
	w.tail = tail
	return w.head+n-w.tail <= w.lines, nil
}

// lendBytes is the length from which a frame goes into a block, whose memory the receiver lends to its user: a shorter
// one is copied faster than it is lent.
const lendBytes = 2 << 10

// freeBlock returns a block for a frame of n bytes: that with the lowest number, which is likely to be in the caches;
// −1: there is none, or the frame belongs in the lane.
func (w *laneWriter) freeBlock(n int) int {
	if n < lendBytes || n > int(w.FrameBytes) {
		return -1
	}
	returned := uint64(0)
	if w.in != nil {
		returned = word(w.in, returnedAt).Load()
	}
	free := ^(w.used ^ returned) & (1<<w.blockCount - 1) &^ w.reserved
	if free == 0 {
		return -1
	}
	return bits.TrailingZeros64(free)
}

// blockFor returns the block in which a frame is to lie, and whether its body is there already; −1: none.
func (w *laneWriter) blockFor(head, body []byte) (block int, inPlace bool) {
	if block = w.reservedBlock(head, body); block >= 0 {
		return block, true
	}
	return w.freeBlock(len(head) + len(body)), false
}

// need returns the free lines that a frame needs, without those for notices.
func (w *laneWriter) need(head, body []byte) uint64 {
	if block, _ := w.blockFor(head, body); block >= 0 {
		return 1
	}
	n := len(head) + len(body)
	lines := linesOf(n)
	if rest := w.lines - w.head&(w.lines-1); lines > rest {
		lines += rest
	}
	return lines
}

// mayPush reports whether a record of some lines fits. If not, the other end wakes this one when it has read.
func (w *laneWriter) mayPush(lines uint64) (bool, error) {
	need := lines + w.forNotices()
	ok, err := w.fits(need)
	if !ok && err == nil {
		w.wanted++
		word(w.out, wantedAt).Store(w.wanted)
		ok, err = w.fits(need) // the other end may have read before it could see the wish
	}
	return ok, err
}

// push appends a frame, whose bytes are head and body, and reports whether the body lay in its place already. mayPush has
// returned true for the lines that it needs.
func (w *laneWriter) push(head, body []byte) (inPlace bool) {
	n := len(head) + len(body)
	block, inPlace := w.blockFor(head, body)
	if block >= 0 {
		b := w.out[w.blockAt(block):]
		k := copy(b, head)
		if inPlace {
			w.sent |= 1 << block
		} else {
			copy(b[k:], body)
		}
		w.used ^= 1 << block
		w.commit(blockRecord, n*maxBlocks+block, 1)
		return inPlace
	}
	lines := linesOf(n)
	if rest := w.lines - w.head&(w.lines-1); lines > rest {
		w.commit(skipRecord, int(rest), rest)
	}
	at := w.lineAt(w.head) + commitLen
	copy(w.out[at+copy(w.out[at:], head):], body)
	w.commit(frameRecord, n, lines)
	return false
}

// pushNotice appends the notice of a slot.
func (w *laneWriter) pushNotice(slot int) error {
	ok, err := w.fits(2)
	if err == nil && !ok {
		err = fmt.Errorf("%w: it took notices that it has not read", errRecord)
	}
	if err == nil {
		w.commit(noticeRecord, slot, 1)
	}
	return err
}

// commit makes a record of some lines readable. The commit word of the next record is cleared before:
// older bytes in its place could look like one.
func (w *laneWriter) commit(k kind, value int, lines uint64) {
	word(w.out, w.lineAt(w.head+lines)).Store(0)
	word(w.out, w.lineAt(w.head)).Store(commitWord(w.head, k, value))
	w.head += lines
}

// laneReader takes records from the lane of the other end's outbox.
type laneReader struct {
	*layout
	out, in []byte
	next    uint64 // lines read
	told    uint64 // of those the other end was told
	granted uint64 // generation of the other end's wish for room that was answered
}

// peek returns the next record; of kind nothing if there is none.
func (r *laneReader) peek() (record, error) {
	return r.decode(r.next, word(r.in, r.lineAt(r.next)).Load())
}

// frame returns the bytes of a frame whose record is the next.
func (r *laneReader) frame(k record) []byte {
	at := r.lineAt(r.next) + commitLen
	if k.kind == blockRecord {
		at = r.blockAt(k.block)
	}
	return r.in[at : at+k.value : at+k.value]
}

// advance goes on to the record behind the next one. Once that is an eighth of the lane more, it stores how far this
// end has read, for the other end to see. It reports whether the other end waits for the room.
func (r *laneReader) advance(lines uint64) (wake bool) {
	r.next += lines
	if r.next-r.told < r.lines/8 {
		return false
	}
	r.told = r.next
	word(r.out, tailAt).Store(r.told)
	wanted := word(r.in, wantedAt).Load()
	if wanted == r.granted {
		return false
	}
	r.granted = wanted
	return true
}
