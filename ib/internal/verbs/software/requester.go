package software

import (
	"time"

	"github.com/p2pdc/p2pdc/ib/internal/verbs"
)

// requester is the sending half of a pair. Requests are counted from the pair's reset:
// done ≤ sent ≤ numbered ≤ posted; the room of a request is free again when a
// completion of it, or of a later one, was polled.
type requester struct {
	pair           *pair
	ring           []sendSlot
	posted         uint64
	numbered       uint64 // have packet sequence numbers
	sent           uint64 // are on their way as a whole
	packets        int    // of request number sent that are on their way
	done           uint64
	psn            uint32 // of the next request to be numbered
	unacknowledged uint32 // the oldest PSN without an answer
	highest        uint32 // the PSN after the last one ever sent
	repositioned   bool   // an answer has moved the place to go on from

	waitingFor timerPurpose
	due        time.Duration
	timer      event
	retries    uint8
	rnr        uint8

	out   packet
	spans []span
}

// wait is what a pair's timer is set for.
type timerPurpose uint8

const (
	waitNothing timerPurpose = iota
	waitAck
	waitReady // the other end has posted no receive
)

func (r *requester) init(q *pair) {
	r.pair, r.timer.pair = q, q
	r.ring = make([]sendSlot, max(q.cfg.SendRequests, 1))
	elements := make([]verbs.Element, len(r.ring)*q.cfg.SendElements)
	for i := range r.ring {
		r.ring[i].elements, elements = elements[:0:q.cfg.SendElements], elements[q.cfg.SendElements:]
		if q.cfg.InlineBytes > 0 {
			r.ring[i].copied = make([]byte, 0, q.cfg.InlineBytes)
		}
	}
	r.spans = make([]span, 0, max(q.cfg.SendElements, 1))
}

func (r *requester) reset() {
	r.stopTimer()
	r.posted, r.numbered, r.sent, r.packets, r.done = 0, 0, 0, 0, 0
	r.retries, r.rnr, r.repositioned = 0, 0, false
	r.pair.freed.Store(0)
}

// begin is called when the pair becomes ready to send.
func (r *requester) begin(psn uint32) {
	r.psn, r.unacknowledged, r.highest = psn, psn, psn
}

// calm unsets the timer.
func (r *requester) stopTimer() {
	if r.waitingFor != waitNothing {
		r.waitingFor = waitNothing
		r.pair.fabric.clock.cancel(&r.timer)
	}
}

func (r *requester) setTimer(w timerPurpose, d time.Duration) {
	r.waitingFor = w
	r.due = r.pair.fabric.clock.schedule(&r.timer, d)
}

func (r *requester) at(k uint64) *sendSlot { return &r.ring[k%uint64(len(r.ring))] }

// mostAhead bounds the packets without an answer, so that the sign of a difference of
// packet sequence numbers means something.
const maxUnacknowledged = 1 << 21

// drive sends what may be sent; mu is held.
func (q *pair) transmitPending() {
	r := &q.requests
	for q.currentState() == verbs.ReadyToSend && r.waitingFor != waitReady && r.sent < r.posted {
		s := r.at(r.sent)
		if r.sent == r.numbered {
			if q.transport == verbs.RC && psnDistance(r.psn, r.unacknowledged) > maxUnacknowledged {
				break
			}
			r.number(s)
		}
		status := r.gather(s)
		if status != verbs.StatusOK && r.done < r.sent {
			r.release()
			break // those before it have to end first
		}
		if status != verbs.StatusOK {
			r.release()
			q.failWith(status)
			break
		}
		q.transmit(s)
		r.release()
	}
	r.updateTimer()
}

func (r *requester) number(s *sendSlot) {
	mtu := r.pair.attr.PathMTU
	s.first = r.psn
	s.packets = max(1, (int(min(s.length, maxMessageBytes))+mtu-1)/mtu)
	r.psn = (r.psn + uint32(s.packets)) & psnMask
	r.numbered++
}

// gather claims the memory that a request's payload comes from.
func (r *requester) gather(s *sendSlot) verbs.Status {
	if s.length > maxMessageBytes {
		return verbs.StatusLocalLength
	}
	if s.inline {
		r.spans = append(r.spans, span{bytes: s.copied})
		return verbs.StatusOK
	}
	for _, e := range s.elements {
		if e.Length == 0 {
			continue
		}
		b, g := r.pair.domain.acquire(e.Key, e.Addr, int(e.Length), 0)
		if g == nil {
			return verbs.StatusLocalProtection
		}
		r.spans = append(r.spans, span{b, g})
	}
	return verbs.StatusOK
}

func (r *requester) release() {
	for i := range r.spans {
		if g := r.spans[i].region; g != nil {
			g.release()
		}
		r.spans[i] = span{}
	}
	r.spans = r.spans[:0]
}

// transmit sends the packets of a request, from where it stands, until an answer moves
// it elsewhere.
func (q *pair) transmit(s *sendSlot) {
	r := &q.requests
	mtu, reliable := q.attr.PathMTU, q.transport == verbs.RC
	p := &r.out
	p.from, p.to, p.transport, p.operation = q.number, q.attr.Remote, q.transport, s.operation
	p.source = &q.adapter.ports[q.attr.Port-1]
	p.total, p.remoteAddr, p.remoteKey, p.immediate = int(s.length), s.remoteAddr, s.remoteKey, s.immediate
	p.payload, p.ownPayload = r.spans, false
	for i := r.packets; i < s.packets; i++ {
		p.psn = (s.first + uint32(i)) & psnMask
		p.first, p.last = i == 0, i == s.packets-1
		p.offset = i * mtu
		p.bytes = min(mtu, int(s.length)-p.offset)
		r.packets++
		if p.last {
			r.sent, r.packets = r.sent+1, 0
		}
		if next := (p.psn + 1) & psnMask; psnDistance(next, r.highest) > 0 {
			r.highest = next
		}
		r.repositioned = false
		if a := q.transmitPacket(p); a.kind != noAck && reliable {
			q.handleAck(a)
		}
		if r.repositioned || q.currentState() != verbs.ReadyToSend {
			break
		}
	}
	p.payload = nil
	if !reliable {
		r.unacknowledged = r.highest
		for r.done < r.sent {
			r.finish(verbs.StatusOK)
		}
	}
}

// finish completes the oldest request.
func (r *requester) finish(status verbs.Status) {
	s := r.at(r.done)
	r.done++
	if status == verbs.StatusOK && !s.signaled {
		return
	}
	q := r.pair
	c := completion{pair: q, freed: r.done}
	c.ID, c.Status, c.Kind, c.Pair = s.id, status, verbs.Sent, q.number
	if s.operation == verbs.Write || s.operation == verbs.WriteImmediate {
		c.Kind = verbs.Written
	}
	q.sendQueue.push(c)
}

// flush ends all requests; the pair is in Error.
func (r *requester) flush() {
	r.stopTimer()
	for r.done < r.posted {
		r.finish(verbs.StatusFlushed)
	}
	r.sent, r.numbered, r.packets, r.repositioned = r.posted, r.posted, 0, true
}

// failWith ends the oldest request with a status, and the pair.
func (q *pair) failWith(status verbs.Status) {
	if q.requests.done < q.requests.posted {
		q.requests.finish(status)
	}
	q.fail()
}

// carry takes a packet to its destination, at once, late or not at all, and tells what
// the other end answers at once.
func (q *pair) transmitPacket(p *packet) ack {
	f, to := q.fabric, q.route(q.attr.Path)
	if to == nil || !to.reachable() || !p.source.reachable() {
		f.lost.Add(1)
		return ack{}
	}
	ruled := f.hasRule.Load()
	if ruled {
		fate := f.faultOf(Packet{
			From: p.from, To: p.to, Transport: p.transport, Operation: p.operation, PSN: p.psn,
			First: p.first, Last: p.last, Bytes: p.bytes,
		})
		for range fate.Copies {
			p.delay(f, to, fate)
		}
		switch {
		case fate.Drop:
			f.lost.Add(1)
			return ack{}
		case fate.Delay > 0:
			p.delay(f, to, fate)
			return ack{}
		}
	}
	b := to.adapter.pairs.find(p.to)
	if b == nil {
		f.lost.Add(1)
		return ack{}
	}
	a := b.receive(p)
	if ruled {
		return f.returnAck(p, to, a)
	}
	return a
}

// way finds the port at the other end of a path; nil when nothing is there.
func (q *pair) route(path verbs.Path) *port {
	if to := q.destination.Load(); to != nil {
		return to
	}
	var to *port
	if q.fabric.cfg.Layer == verbs.LayerInfiniBand {
		to = q.fabric.byLID(path.LID)
	} else {
		to = q.fabric.byGID(path.Destination)
	}
	if to != nil {
		q.destination.Store(to)
	}
	return to
}
