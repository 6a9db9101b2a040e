package software

import (
	"time"

	"github.com/p2pdc/p2pdc/ib/internal/verbs"
)

// requester is the sending half of a pair. Its counts of requests start when the pair is reset,
// with done ≤ sent ≤ numbered ≤ posted. The room of a request is free once its completion, or
// that of a later request, was polled.
type requester struct {
	pair           *pair
	ring           []sendSlot
	posted         uint64
	numbered       uint64 // with packet sequence numbers
	sent           uint64 // completely
	packets        int    // sent, of the request after those
	done           uint64
	psn            uint32 // of the next request to be numbered
	unacknowledged uint32 // oldest PSN without an acknowledgement
	highest        uint32 // PSN after the last one ever sent
	repositioned   bool   // an acknowledgement has changed what to send next

	waitingFor timerPurpose
	due        time.Time
	timer      *time.Timer
	retries    uint8
	rnr        uint8

	out   packet
	spans []span
}

// timerPurpose is what a pair's timer waits for.
type timerPurpose uint8

const (
	waitNothing timerPurpose = iota
	waitAck
	waitReady // the other end has posted no receive
)

func (r *requester) init(q *pair) {
	r.pair = q
	r.ring = make([]sendSlot, max(q.cfg.SendRequests, 1))
	elements := make([]verbs.Element, len(r.ring)*q.cfg.SendElements)
	for i := range r.ring {
		r.ring[i].Elements, elements = elements[:0:q.cfg.SendElements], elements[q.cfg.SendElements:]
	}
	r.spans = make([]span, 0, max(q.cfg.SendElements, 1))
}

func (r *requester) reset() {
	r.stopTimer()
	r.posted, r.done = 0, 0
	r.numbered, r.sent = 0, 0
	r.retries, r.rnr = 0, 0
	r.packets, r.repositioned = 0, false
	r.pair.freed.Store(0)
}

// begin sets the first PSN when the pair becomes ready to send.
func (r *requester) begin(psn uint32) {
	r.psn = psn
	r.unacknowledged, r.highest = psn, psn
}

// stopTimer stops the timer.
func (r *requester) stopTimer() {
	if r.waitingFor != waitNothing {
		r.waitingFor = waitNothing
		r.timer.Stop()
	}
}

func (r *requester) setTimer(w timerPurpose, d time.Duration) {
	r.waitingFor, r.due = w, time.Now().Add(d)
	if r.timer == nil {
		r.timer = time.AfterFunc(d, r.pair.timerFired)
		return
	}
	r.timer.Reset(d)
}

func (r *requester) at(k uint64) *sendSlot { return &r.ring[k%uint64(len(r.ring))] }

// maxUnacknowledged bounds the unacknowledged packets, so that the sign of a difference of packet
// sequence numbers is unambiguous.
const maxUnacknowledged = 1 << 21

// transmitPending sends what may be sent. mu is held.
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
		if status == verbs.StatusOK {
			q.transmit(s)
		}
		r.release()
		if status != verbs.StatusOK {
			if r.done == r.sent { // otherwise earlier requests have to complete first
				q.failWith(status)
			}
			break
		}
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

// gather acquires the memory of a request's payload.
func (r *requester) gather(s *sendSlot) verbs.Status {
	if s.length > maxMessageBytes {
		return verbs.StatusLocalLength
	}
	for _, e := range s.Elements {
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

// transmit sends the packets of a request from the current one, until an acknowledgement
// repositions the requester.
func (q *pair) transmit(s *sendSlot) {
	r := &q.requests
	mtu, reliable := q.attr.PathMTU, q.transport == verbs.RC
	p := &r.out
	p.From, p.To = q.number, q.attr.Remote
	p.Transport, p.Operation = q.transport, s.Operation
	p.source = &q.adapter.port
	p.total, p.immediate = int(s.length), s.Immediate
	p.remoteAddr, p.remoteKey = s.RemoteAddr, s.RemoteKey
	p.payload, p.ownPayload = r.spans, false
	for i := r.packets; i < s.packets; i++ {
		p.PSN = (s.first + uint32(i)) & psnMask
		p.First, p.Last = i == 0, i == s.packets-1
		p.offset = i * mtu
		p.Bytes = min(mtu, int(s.length)-p.offset)
		r.packets++
		if p.Last {
			r.sent, r.packets = r.sent+1, 0
		}
		if next := (p.PSN + 1) & psnMask; psnDistance(next, r.highest) > 0 {
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
	if status == verbs.StatusOK && !s.Signaled {
		return
	}
	q := r.pair
	c := completion{pair: q, freed: r.done}
	c.Completion = verbs.Completion{ID: s.ID, Status: status, Kind: verbs.Sent, Pair: q.number}
	if s.Operation == verbs.Write || s.Operation == verbs.WriteImmediate {
		c.Kind = verbs.Written
	}
	q.sendQueue.push(c)
}

// flush completes all requests. The pair is in Error.
func (r *requester) flush() {
	r.stopTimer()
	for r.done < r.posted {
		r.finish(verbs.StatusFlushed)
	}
	r.sent, r.numbered = r.posted, r.posted
	r.packets, r.repositioned = 0, true
}

// failWith completes the oldest request with a status, and fails the pair.
func (q *pair) failWith(status verbs.Status) {
	if q.requests.done < q.requests.posted {
		q.requests.finish(status)
	}
	q.fail()
}

// transmitPacket transmits a packet, subject to the rule, and returns the immediate
// acknowledgement.
func (q *pair) transmitPacket(p *packet) ack {
	f, to := q.fabric, q.route(q.attr.Path)
	if to == nil || !to.reachable() || !p.source.reachable() {
		f.lost.Add(1)
		return ack{}
	}
	ruled := f.hasRule.Load()
	if ruled {
		fault := f.faultOf(p.Packet)
		for range fault.Copies {
			p.delay(f, to, fault)
		}
		switch {
		case fault.Drop:
			f.lost.Add(1)
			return ack{}
		case fault.Delay > 0:
			p.delay(f, to, fault)
			return ack{}
		}
	}
	b := to.adapter.pairs.find(p.To)
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

// route returns the port at the other end of a path, or nil.
func (q *pair) route(path verbs.Path) *port {
	if to := q.destination.Load(); to != nil {
		return to
	}
	f := q.fabric
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, a := range f.adapters {
		p := &a.port
		if f.cfg.Layer == verbs.LayerInfiniBand && p.lid == path.LID ||
			f.cfg.Layer != verbs.LayerInfiniBand && p.gid.Addr == path.Destination {
			q.destination.Store(p)
			return p
		}
	}
	return nil
}
