package shm

import (
	"sync"

	"github.com/p2pdc/p2pdc/microproto"
)

// lendBytes is the length from which a received frame aliases the other end's outbox: a shorter one is copied faster
// than it is lent.
const lendBytes = 2 << 10

// loans are the frames of one connection that alias the other end's outbox and are not released yet. They hold up
// the lane, and the mapping lasts as long as they do.
type loans struct {
	returned func() // called, from any goroutine, when a loan is returned that the receiver waits for

	mu     sync.Mutex
	lane   []*loan // of records in the lane, oldest first
	inSlot []bool  // by slot: its frame is lent
	free   []*loan
	lent   int
	wanted bool    // the receiver sleeps until a loan is returned
	over   bool    // the connection has ended
	memory *outbox // freed when it is over and nothing is lent
}

type loan struct {
	buffer *microproto.Buffer
	begin  uint64 // line of the record
	slot   int    // −1: a record in the lane
	done   bool
}

// lend returns a buffer over b, which belongs to the record at a line, or to a slot that is not −1.
func (l *loans) lend(b []byte, begin uint64, slot int) *microproto.Buffer {
	l.mu.Lock()
	defer l.mu.Unlock()
	var o *loan
	if k := len(l.free); k > 0 {
		o = l.free[k-1]
		l.free = l.free[:k-1]
	} else {
		o = &loan{}
		o.buffer = microproto.NewBuffer(nil, func(*microproto.Buffer) { l.giveBack(o) })
	}
	o.buffer.Bytes, o.begin, o.slot, o.done = b, begin, slot, false
	if l.lent++; slot >= 0 {
		l.inSlot[slot] = true
	} else {
		l.lane = append(l.lane, o)
	}
	return o.buffer
}

func (l *loans) giveBack(o *loan) {
	l.mu.Lock()
	o.buffer.Bytes, o.done = nil, true
	l.lent--
	if o.slot >= 0 {
		l.inSlot[o.slot] = false
		l.free = append(l.free, o)
	}
	l.freeIfOver()
	wanted := l.wanted
	l.wanted = false
	l.mu.Unlock()
	if wanted {
		l.returned()
	}
}

// isLent reports whether the frame of a slot is lent. wanted: if so, the next return of a loan is reported.
func (l *loans) isLent(slot int, wanted bool) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.wanted = l.wanted || wanted && l.inSlot[slot]
	return l.inSlot[slot]
}

// read returns the line up to which the lane may be written again, of a reader that is at line next. wanted: if that
// is not all, the next return of a loan is reported.
func (l *loans) read(next uint64, wanted bool) uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	done := 0
	for done < len(l.lane) && l.lane[done].done {
		done++
	}
	l.free = append(l.free, l.lane[:done]...)
	l.lane = l.lane[:copy(l.lane, l.lane[done:])]
	if len(l.lane) == 0 {
		return next
	}
	l.wanted = l.wanted || wanted
	return l.lane[0].begin
}

// end frees memory once nothing of it is lent.
func (l *loans) end(memory outbox) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.over, l.memory = true, &memory
	l.freeIfOver()
}

func (l *loans) freeIfOver() {
	if l.over && l.lent == 0 && l.memory != nil {
		l.memory.free()
		l.memory = nil
	}
}
