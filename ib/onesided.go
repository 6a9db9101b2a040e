package ib

import (
	"github.com/p2pdc/p2pdc/ib/internal/verbs"
	"github.com/p2pdc/p2pdc/microproto"
)

// oneSided reports whether a frame is to be written into the other end's window.
func (q *pair) oneSided(f *microproto.Frame) bool {
	r := &q.peer.remote
	return f.Value != 0 && r.state == verified && q.transport == verbs.UC && r.slotFor(f.Value) >= 0
}

// buildWrite builds request i from the oldest frame: a write of the frame, preceded by its
// stamp, into the slot of its value. With credit it carries a notice of the slot. Without
// credit the notice follows later.
func (l *Link) buildWrite(q *pair, i int) bool {
	f := q.queue.front()
	e, from, ok := l.locate(f)
	if !ok {
		return false
	}
	r, m := &q.peer.remote, l.memory
	slot := r.slotFor(f.Value)
	r.writes++
	r.uses[slot].last = r.misses
	at, size := m.stampCell(q, q.head), stampBytes(m.blockBytes)
	used := stamp(m.bytes[at:at+size], r.writes, f.Data)
	e.holdFrame(q.queue.pop())
	w := q.newRequest(i, e)
	w.Elements = append(w.Elements, m.element(at+size-len(used), len(used)), from)
	w.RemoteAddr, w.RemoteKey = r.addressOf(slot, m.blockBytes)-uint64(len(used)), r.key
	if q.hasCredit() {
		q.sent++
		w.Operation, w.Immediate = verbs.WriteImmediate, q.noticeOf(slot)
	} else {
		w.Operation = verbs.Write
		if !r.isUnannounced[slot] {
			r.isUnannounced[slot] = true
			r.unannounced.Push(slot)
		}
		l.count.Unannounced.Add(1)
	}
	l.count.Written.Add(1)
	return true
}

// buildNotice builds request i as the notice of a slot that was written without one.
func (q *pair) buildNotice(i int) {
	r := &q.peer.remote
	slot := r.unannounced.Pop()
	r.isUnannounced[slot] = false
	q.sent++
	w := q.newRequest(i, sendEntry{block: -1})
	w.Operation, w.Immediate = verbs.WriteImmediate, q.noticeOf(slot)
	w.RemoteAddr, w.RemoteKey = r.addressOf(slot, q.link.memory.blockBytes), r.key
}

// noticeOf returns the immediate data of a notice: the number of the frame and the slot.
func (q *pair) noticeOf(slot int32) uint32 { return uint32(uint16(q.sent))<<16 | uint32(slot) }

// stampCell returns the offset of the cell for the stamp of a request.
func (m *memory) stampCell(q *pair, number uint32) int {
	return m.stampOffset + (q.share*len(q.ring)+int(number)&(len(q.ring)-1))*stampBytes(m.blockBytes)
}

// verifyWindow writes a pattern into head and tail of the other end's window through the
// reliable pair. A wrong address or key then takes the connection down with a reason, where an
// unreliable pair would lose every write silently. Until it completes, frames are sent.
func (p *peer) verifyWindow() {
	q, r, m := p.rc, &p.remote, p.link.memory
	if int(q.outstanding())+2 > p.link.config.sendDepth() {
		return // the next frame tries again
	}
	r.state = verifying
	last := r.address + windowHead + uint64(r.slots)*uint64(slotBytes(m.blockBytes))
	for i, to := range [2]uint64{r.address, last} {
		w := q.newRequest(i, sendEntry{block: -1})
		w.Operation = verbs.Write
		w.RemoteAddr, w.RemoteKey = to, r.key
		w.Elements = append(w.Elements, m.element(m.pattern, min(patternBytes, windowTail)))
	}
	q.ring[(q.head-1)&uint32(len(q.ring)-1)].purpose = forWindowCheck
	q.requests[1].Signaled, q.unsignaled = true, 0
	p.link.postAll(q, 2)
}

// completed handles the successful completion of a request.
func (p *peer) completed(what purpose) {
	switch what {
	case forWindowCheck:
		p.remote.state = verified
	case forKeepalive:
		p.keepalive = false
		if p.wasUp && p.state == peerUp {
			p.wasUp = false
			p.link.count.Reconnects.Add(1)
			p.link.events.notify(microproto.LinkEvent{Peer: p.addr, Up: true})
			p.link.log("the connection with %s is up again", p.name)
		}
	}
}

// queueNotice queues the notice of a slot unless one is queued. Link.rx is held.
func (l *Link) queueNotice(q *pair, slot int) {
	w := q.peer.window
	switch {
	case w == nil || slot >= w.slots:
		l.count.Malformed.Add(1)
	case w.noticeQueued[slot]:
		l.count.Stale.Add(1)
	default:
		w.noticeQueued[slot] = true
		l.queueArrival(arrival{q, q.key.Load(), -1, 0, int32(slot)})
	}
}

// readSlot takes the notice of a slot and returns the newest frame in it. Link.rx is held.
func (l *Link) readSlot(q *pair, slot int) (microproto.Frame, bool) {
	w := q.peer.window
	b := l.buffers.Get(w.blockBytes, true)
	if b == nil { // try again when a frame is released
		l.queueArrival(arrival{q, q.key.Load(), -1, 0, int32(slot)})
		return microproto.Frame{}, false
	}
	w.noticeQueued[slot] = false
	f := b.Frame(q.peer.addr, 0, w.blockBytes)
	n, got := w.read(slot, f.Data)
	switch got {
	case readWhole:
		return f.Slice(0, n), true
	case readStale:
		l.count.Stale.Add(1)
	case readTorn:
		l.count.Torn.Add(1)
	}
	f.Release()
	return microproto.Frame{}, false
}
