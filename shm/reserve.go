package shm

import (
	"math/bits"

	"github.com/p2pdc/p2pdc/microproto"
)

// Reserve implements microproto.Reserver. The memory is that of a block or, for a value, of the buffer of its slot
// that will be written next.
func (l *Link) Reserve(to microproto.LinkAddr, m microproto.Mode, value uint64, header, n int) []byte {
	l.tx.Lock()
	defer l.tx.Unlock()
	p := l.peer(to)
	if l.closed.Load() || p == nil || p.state == peerDown || header+n < lendBytes {
		return nil // a shorter frame is copied faster
	}
	w := &p.lane
	at := -1
	switch {
	case m != microproto.ModeAsynchronous:
		if block := w.freeBlock(header + n); block >= 0 {
			w.reserved |= 1 << block
			at = w.blockAt(block)
		}
	case value != 0 && header+n <= int(w.ValueBytes):
		if slot := p.slots.slotFor(value, l.config.Values); slot >= 0 {
			at = p.slots.reserve(w, slot)
		}
	}
	if at < 0 {
		return nil
	}
	at += header
	return w.out[at : at+n : at+n]
}

// Unreserve implements microproto.Reserver.
func (l *Link) Unreserve(b []byte) {
	l.tx.Lock()
	defer l.tx.Unlock()
	for _, p := range l.peers {
		if p == nil {
			continue
		}
		switch at := offsetIn(p.out.bytes, b); {
		case at < 0: // it lies elsewhere
		case at >= l.layout.blocks:
			p.lane.unreserve(at)
			return
		default:
			p.slots.unreserve(&p.lane, at)
			return
		}
	}
	for i := range l.retired {
		r := &l.retired[i]
		if offsetIn(r.memory.bytes, b) < 0 {
			continue
		}
		if r.reserved--; r.reserved == 0 {
			r.memory.free()
			l.retired = append(l.retired[:i], l.retired[i+1:]...)
		}
		return
	}
}

// retiredOutbox is the outbox of a connection that has ended while memory in it was reserved.
type retiredOutbox struct {
	memory   outbox
	reserved int // pieces
}

// retire frees the outbox of a connection that has ended, once nothing in it is reserved. The locks are held.
func (l *Link) retire(p *peer) {
	n := bits.OnesCount64(p.lane.reserved)
	for i := range p.slots.slots {
		if p.slots.slots[i].reserved {
			n++
		}
	}
	if n == 0 {
		p.out.free()
		return
	}
	l.retired = append(l.retired, retiredOutbox{p.out, n})
}

// reservedBlock returns the reserved block in which a frame of a header and a body lies but for its header; −1: it lies
// elsewhere, or the block was sent already.
func (w *laneWriter) reservedBlock(header, body []byte) int {
	if w.reserved&^w.sent == 0 {
		return -1
	}
	at := offsetIn(w.out, body) - len(header) - w.blocks
	if at < 0 || at%w.block != 0 || (w.reserved&^w.sent)>>(at/w.block)&1 == 0 {
		return -1
	}
	return at / w.block
}

// unreserve ends the reservation of the block at an offset.
func (w *laneWriter) unreserve(at int) {
	bit := uint64(1) << ((at - w.blocks) / w.block)
	w.reserved &^= bit
	w.sent &^= bit
}

// reserve reserves a buffer of a slot and returns its offset; −1 if one is reserved already.
func (s *slotWriter) reserve(w *laneWriter, slot int) int {
	o := &s.slots[slot]
	if o.reserved {
		return -1
	}
	o.next, o.reserved = s.unused(w, slot), true
	o.written = false
	return w.buffer(slot, o.next)
}

// unreserve ends the reservation of the buffer at an offset.
func (s *slotWriter) unreserve(w *laneWriter, at int) {
	s.slots[(at-w.slots)/w.stride/buffersPerSlot].reserved = false
}

// isReserved reports whether a frame lies in the reserved buffer of a slot but for its header, and was not sent yet.
func (s *slotWriter) isReserved(w *laneWriter, slot int, header, body []byte) bool {
	o := &s.slots[slot]
	return o.reserved && !o.written && offsetIn(w.out, body)-len(header) == w.buffer(slot, o.next)
}
