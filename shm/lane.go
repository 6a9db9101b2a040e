package shm

import "fmt"

// laneWriter appends records to the lane of this end's outbox.
type laneWriter struct {
	*layout
	out, in []byte // outboxes of this end and of the other; in is nil until the ends have met
	head    uint64 // lines written, those skipped included
	tail    uint64 // lines that the other end has read, when last looked
	wanted  uint64 // generation of wantedAt
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

// need returns the free lines that a frame of n bytes needs, without those for notices.
func (w *laneWriter) need(n int) uint64 {
	lines := linesOf(n)
	if rest := w.lines - w.head&(w.lines-1); lines > rest {
		lines += rest
	}
	return lines
}

// mayPush reports whether a frame of n bytes fits. If not, the other end wakes this one when it has read.
func (w *laneWriter) mayPush(n int) (bool, error) {
	need := w.need(n) + w.reserve()
	ok, err := w.fits(need)
	if !ok && err == nil {
		w.wanted++
		word(w.out, wantedAt).Store(w.wanted)
		ok, err = w.fits(need) // the other end may have read before it could see the wish
	}
	return ok, err
}

// push appends a frame, whose bytes are head and body. mayPush has returned true.
func (w *laneWriter) push(head, body []byte) {
	n := len(head) + len(body)
	lines := linesOf(n)
	if rest := w.lines - w.head&(w.lines-1); lines > rest {
		w.commit(skipRecord, int(rest), rest)
	}
	at := w.lineAt(w.head) + commitLen
	copy(w.out[at+copy(w.out[at:], head):], body)
	w.commit(frameRecord, n, lines)
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
	loans   *loans
	next    uint64 // lines read
	told    uint64 // of those the other end was told
	granted uint64 // generation of the other end's wish for room that was answered
}

// peek returns the next record; of kind nothing if there is none.
func (r *laneReader) peek() (record, error) {
	return r.decode(r.next, word(r.in, r.lineAt(r.next)).Load())
}

// frame returns the bytes of a record of a frame, which is the next.
func (r *laneReader) frame(k record) []byte {
	at := r.lineAt(r.next) + commitLen
	return r.in[at : at+k.value : at+k.value]
}

// lends reports whether the frame of the next record is lent: it is long, and the loans leave half of the lane to
// the writer.
func (r *laneReader) lends(k record) bool {
	return k.kind == frameRecord && k.value >= lendBytes && r.next+k.lines-r.told <= r.lines/2
}

// advance goes on to the record behind the next one. It reports whether the other end waits for the room.
func (r *laneReader) advance(lines uint64) (wake bool) {
	r.next += lines
	return r.tell(false)
}

// tell stores how far this end has read, for the other end to see, once that is an eighth of the lane more. It reports
// whether the other end waits for the room. With sleeps, the return of a loan that holds up the lane wakes the receiver.
func (r *laneReader) tell(sleeps bool) (wake bool) {
	if r.next-r.told < r.lines/8 {
		return false
	}
	read := r.loans.read(r.next, sleeps)
	if read == r.told {
		return false
	}
	r.told = read
	word(r.out, tailAt).Store(read)
	wanted := word(r.in, wantedAt).Load()
	if wanted == r.granted {
		return false
	}
	r.granted = wanted
	return true
}
