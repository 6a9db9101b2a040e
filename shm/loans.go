package shm

import (
	"fmt"
	"math/bits"
	"sync"

	"github.com/p2pdc/p2pdc/microproto"
)

// loans are the frames of one connection that alias the other end's outbox and are not released yet. The mapping lasts
// as long as they do.
type loans struct {
	out      []byte // this end's outbox, in which it gives blocks back
	returned func() // called, from any goroutine, when a value is returned that the receiver waits for

	mu      sync.Mutex
	inBlock uint64   // bit i: the frame of block i is lent
	inSlot  []uint64 // by slot: bit i is set while the frame of buffer i is lent
	free    []*loan
	lent    int
	wanted  bool    // the receiver sleeps until the frame of a slot is returned
	over    bool    // the connection has ended
	memory  *outbox // freed when it is over and nothing is lent
}

type loan struct {
	buffer *microproto.Buffer
	block  int // −1: none
	slot   int // −1: none
	index  int // of the slot's buffer
}

// lendBlock returns a buffer over b, the frame of a block.
func (l *loans) lendBlock(b []byte, block int) (*microproto.Buffer, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.inBlock>>block&1 != 0 {
		return nil, fmt.Errorf("%w: a frame in block %d, which was not given back", errRecord, block)
	}
	l.inBlock |= 1 << block
	return l.lend(b, block, -1, 0), nil
}

// lendSlot returns a buffer over b, the frame of a slot's buffer.
func (l *loans) lendSlot(b []byte, slot, index int) *microproto.Buffer {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.inSlot[slot] |= 1 << index
	return l.lend(b, -1, slot, index)
}

// held returns the buffers of a slot whose frames are lent, a bit each.
func (l *loans) held(slot int) uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.inSlot[slot]
}

// lend returns a buffer over b, the frame of a block, or of a slot's buffer. mu is held.
func (l *loans) lend(b []byte, block, slot, index int) *microproto.Buffer {
	var o *loan
	if k := len(l.free); k > 0 {
		o = l.free[k-1]
		l.free = l.free[:k-1]
	} else {
		o = &loan{}
		o.buffer = microproto.NewBuffer(nil, func(*microproto.Buffer) { l.giveBack(o) })
	}
	o.buffer.Bytes, o.block, o.slot, o.index = b, block, slot, index
	l.lent++
	return o.buffer
}

func (l *loans) giveBack(o *loan) {
	l.mu.Lock()
	o.buffer.Bytes = nil
	l.lent--
	if o.slot >= 0 {
		l.inSlot[o.slot] &^= 1 << o.index // the next frame of the slot that is read tells the other end
	} else if l.inBlock &^= 1 << o.block; !l.over {
		w := word(l.out, returnedAt)
		w.Store(w.Load() ^ 1<<o.block)
	}
	l.free = append(l.free, o)
	l.freeIfOver()
	wanted := l.wanted && o.slot >= 0
	l.wanted = l.wanted && !wanted
	l.mu.Unlock()
	if wanted {
		l.returned()
	}
}

// mayLend reports whether another frame of a slot may be lent. If not, the next return of a slot's frame is reported.
func (l *loans) mayLend(slot int) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	may := bits.OnesCount64(l.inSlot[slot]) < heldPerSlot
	l.wanted = l.wanted || !may
	return may
}

// end makes the outbox of this end unused. It frees memory, that of the other end, once nothing of it is lent.
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
