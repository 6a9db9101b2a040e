package ib

import (
	"github.com/p2pdc/p2pdc/ib/internal/verbs"
	"github.com/p2pdc/p2pdc/microproto"
)

// oneSided tells that a frame goes into a slot of the other end's window.
func (q *pair) oneSided(f *microproto.Frame) bool {
	r := &q.peer.remote
	return f.Value != 0 && r.state == verified && q.transport == verbs.UC && r.slotFor(f.Value) >= 0
}

// write makes request i of the oldest frame: its bytes into the slot of its value, its
// stamp before them. With credit the other end is told which slot; without, when there
// is some again.
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
		w.Operation, w.Immediate = verbs.WriteImmediate, uint32(uint16(q.sent))<<16|uint32(slot)
	} else {
		w.Operation = verbs.Write
		if !r.isUnannounced[slot] {
			r.isUnannounced[slot] = true
			r.unannounced.push(slot)
		}
		l.count.unannounced.Add(1)
	}
	l.count.written.Add(1)
	return true
}

// notify makes request i tell about a slot that was written without notice.
func (q *pair) buildNotice(i int) {
	r := &q.peer.remote
	slot := r.unannounced.pop()
	r.isUnannounced[slot] = false
	q.sent++
	w := q.newRequest(i, sendEntry{block: -1})
	w.Operation, w.Immediate = verbs.WriteImmediate, uint32(uint16(q.sent))<<16|uint32(slot)
	w.RemoteAddr, w.RemoteKey = r.addressOf(slot, q.link.memory.blockBytes), r.key
}

// cell is the offset of the memory that stamps the request of that number.
func (m *memory) stampCell(q *pair, number uint32) int {
	return m.stampOffset + (q.share*len(q.ring)+int(number)&(len(q.ring)-1))*stampBytes(m.blockBytes)
}

// proveWindow writes into head and tail of the other end's window by the reliable pair:
// a wrong address or key takes the connection down with its reason, where an unreliable
// pair would lose every write without a word. Until it is done frames go as others do.
func (p *peer) verifyWindow() {
	r, m := &p.remote, p.link.memory
	r.state = verifying
	last := r.address + windowHead + uint64(r.slots)*uint64(slotBytes(m.blockBytes))
	q := p.rc
	if int(q.outstanding())+2 > p.link.config.sendDepth() {
		r.state = unverified
		return
	}
	for i, to := range [2]uint64{r.address, last} {
		w := q.newRequest(i, sendEntry{block: -1})
		w.Operation, w.RemoteAddr, w.RemoteKey = verbs.Write, to, r.key
		w.Elements = append(w.Elements, m.element(m.pattern, min(patternBytes, windowTail)))
	}
	q.ring[(q.head-1)&uint32(len(q.ring)-1)].purpose = forWindowCheck
	q.requests[1].Signaled, q.unsignaled = true, 0
	p.link.postAll(q, 2)
}

// completed acts on a request that has succeeded.
func (p *peer) completed(what purpose) {
	switch what {
	case forWindowCheck:
		p.remote.state = verified
	case forKeepalive:
		p.keepalive = false
		if p.wasUp && p.state == peerUp {
			p.wasUp = false
			p.link.count.reconnects.Add(1)
			p.link.notify(microproto.LinkEvent{Peer: p.addr, Up: true})
			p.link.log("the connection with %s is up again", p.name)
		}
	}
}

// noticed queues the notice of a slot, unless one waits already. Link.rx is held.
func (l *Link) queueNotice(q *pair, slot int) {
	w := q.peer.window
	switch {
	case w == nil || slot >= w.slots:
		l.count.malformed.Add(1)
	case w.noticeQueued[slot]:
		l.count.stale.Add(1)
	default:
		w.noticeQueued[slot] = true
		l.queueArrival(arrival{q, q.key.Load(), -1, 0, int32(slot)})
	}
}

// arrived takes the notice of a slot and returns the newest frame in it. Link.rx is
// held.
func (l *Link) readSlot(q *pair, slot int) (microproto.Frame, bool) {
	w := q.peer.window
	b := l.buffers.get()
	if b == nil { // until a frame is released
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
		l.count.stale.Add(1)
	case readTorn:
		l.count.torn.Add(1)
	}
	f.Release()
	return microproto.Frame{}, false
}
