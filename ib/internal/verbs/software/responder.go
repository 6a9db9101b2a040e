package software

import (
	"sync/atomic"

	"github.com/p2pdc/p2pdc/ib/internal/verbs"
)

// responder is the receiving half of a pair.
type responder struct {
	pair   *pair
	attr   verbs.Attributes // of the pair, guarded by responderMu
	ring   []recvSlot
	posted uint64
	done   uint64
	freed  atomic.Uint64 // receive requests whose room is free, counted by Poll

	expected  uint32 // PSN
	nakSent   bool   // RC: a sequence NAK was sent for the expected packet
	dropping  bool   // UC: drop packets until the first one of a message
	inMessage bool   // a message has begun
	received  int    // bytes of the message
}

func (r *responder) init(q *pair) {
	r.pair = q
	r.ring = make([]recvSlot, max(q.cfg.ReceiveRequests, 1))
	elements := make([]verbs.Element, len(r.ring)*q.cfg.ReceiveElements)
	for i := range r.ring {
		r.ring[i].elements, elements = elements[:0:q.cfg.ReceiveElements], elements[q.cfg.ReceiveElements:]
	}
}

func (r *responder) reset() {
	r.posted, r.done = 0, 0
	r.freed.Store(0)
	r.begin(0)
}

func (r *responder) begin(psn uint32) {
	r.expected = psn
	r.nakSent, r.dropping = false, false
	r.inMessage, r.received = false, 0
}

func (r *responder) at(k uint64) *recvSlot { return &r.ring[k%uint64(len(r.ring))] }

// receive handles a packet.
func (q *pair) receive(p *packet) ack {
	q.responderMu.Lock()
	defer q.responderMu.Unlock()
	r := &q.responder
	if s := q.currentState(); s != verbs.ReadyToReceive && s != verbs.ReadyToSend {
		q.fabric.lost.Add(1)
		return ack{}
	}
	if p.Transport != q.transport || p.From != r.attr.Remote || q.route(r.attr.Path) != p.source {
		q.fabric.lost.Add(1) // not from the connected pair
		return ack{}
	}
	if q.transport == verbs.UC {
		r.unreliable(p)
		return ack{}
	}
	switch d := psnDistance(p.PSN, r.expected); {
	case d < 0: // a duplicate: the acknowledgement was lost
		return ack{kind: positiveAck, psn: (r.expected - 1) & psnMask}
	case d > 0 && r.nakSent:
		return ack{}
	case d > 0:
		r.nakSent = true
		return ack{kind: sequenceNAK, psn: r.expected}
	}
	r.nakSent = false
	switch o := r.execute(p); o {
	case executed:
	case noReceive:
		return ack{kind: notReadyNAK, psn: p.PSN, timer: r.attr.RNRTimer}
	default:
		return ack{kind: errorNAK, psn: p.PSN, status: r.fail(o)}
	}
	r.expected = (r.expected + 1) & psnMask
	if !p.Last {
		return ack{}
	}
	return ack{kind: positiveAck, psn: p.PSN}
}

// unreliable handles a packet of UC. A packet out of order loses its message; the first packet
// of a message is accepted whatever its number (IBTA 9.8.2).
func (r *responder) unreliable(p *packet) {
	if p.PSN != r.expected || r.dropping {
		r.inMessage = false
		if r.dropping = !p.First; r.dropping {
			r.pair.fabric.lost.Add(1)
			return
		}
	}
	r.expected = (p.PSN + 1) & psnMask
	switch o := r.execute(p); o {
	case executed:
	case badLength, badReceive:
		r.fail(o)
	default: // drop the rest of the message
		r.inMessage, r.dropping = false, true
		r.pair.fabric.lost.Add(1)
	}
}

// outcome is the result of a packet that was in order.
type outcome uint8

const (
	executed   outcome = iota
	noReceive          // no receive request is posted
	badLength          // longer than the receive request
	badReceive         // the receive request's memory may not be written
	badAccess          // key, bounds or rights of a remote write
	badPacket          // size or order that no correct requester sends
)

func (r *responder) execute(p *packet) outcome {
	mtu := r.attr.PathMTU
	if p.First == r.inMessage || p.Bytes > mtu || !p.Last && p.Bytes != mtu {
		return badPacket
	}
	var o outcome
	if p.Operation == verbs.Send || p.Operation == verbs.SendImmediate {
		o = r.scatter(p)
	} else {
		o = r.write(p)
	}
	if o != executed {
		return o
	}
	r.inMessage = !p.Last
	return executed
}

// scatter copies a packet of a send to the elements of the oldest receive request.
func (r *responder) scatter(p *packet) outcome {
	if p.First {
		r.received = 0
	}
	if r.done == r.posted {
		return noReceive
	}
	s := r.at(r.done)
	if uint64(r.received+p.Bytes) > s.length {
		return badLength
	}
	skip, from := r.received, 0
	for _, e := range s.elements {
		if from == p.Bytes {
			break
		}
		if skip >= int(e.Length) {
			skip -= int(e.Length)
			continue
		}
		n := min(int(e.Length)-skip, p.Bytes-from)
		b, g := r.pair.domain.acquire(e.Key, e.Addr+uint64(skip), n, verbs.LocalWrite)
		if g == nil {
			return badReceive
		}
		p.read(b, from, false)
		g.release()
		skip, from = 0, from+n
	}
	r.received += p.Bytes
	if p.Last {
		r.finish(verbs.StatusOK, verbs.Received, p.Operation == verbs.SendImmediate, p.immediate)
	}
	return executed
}

// write copies a packet of a remote write. The first packet checks the whole message, and each
// packet its own range, since the region may be closed meanwhile.
func (r *responder) write(p *packet) outcome {
	if p.First {
		r.received = 0
		if p.total > 0 {
			if r.attr.Access&verbs.RemoteWrite == 0 {
				return badAccess
			}
			_, g := r.pair.domain.acquire(p.remoteKey, p.remoteAddr, p.total, verbs.RemoteWrite)
			if g == nil {
				return badAccess
			}
			g.release()
		}
	}
	takes := p.Last && p.Operation == verbs.WriteImmediate
	if takes && r.done == r.posted {
		return noReceive
	}
	if p.Bytes > 0 {
		b, g := r.pair.domain.acquire(p.remoteKey, p.remoteAddr+uint64(p.offset), p.Bytes, verbs.RemoteWrite)
		if g == nil {
			return badAccess
		}
		p.read(b, 0, true)
		g.release()
	}
	r.received += p.Bytes
	if takes {
		r.finish(verbs.StatusOK, verbs.ReceivedImmediate, true, p.immediate)
	}
	return executed
}

// finish completes the oldest receive request.
func (r *responder) finish(status verbs.Status, kind verbs.CompletionKind, immediate bool, value uint32) {
	q := r.pair
	s := r.at(r.done)
	r.done++
	c := completion{pair: q, freed: r.done, received: true}
	c.Completion = verbs.Completion{ID: s.id, Status: status, Kind: kind, Pair: q.number}
	if status == verbs.StatusOK {
		c.Bytes, c.HasImmediate = uint32(r.received), immediate
		if immediate {
			c.Immediate = value
		}
	}
	q.recvQueue.push(c)
}

// fail ends the pair because of a packet, and returns the status for the requester.
func (r *responder) fail(o outcome) verbs.Status {
	status := verbs.StatusRemoteInvalid
	switch o {
	case badLength:
		r.finish(verbs.StatusLocalLength, verbs.Received, false, 0)
	case badReceive:
		r.finish(verbs.StatusLocalProtection, verbs.Received, false, 0)
		status = verbs.StatusRemoteOperation
	case badAccess:
		status = verbs.StatusRemoteAccess
	}
	q := r.pair
	q.state.Store(uint32(verbs.Error))
	r.flush()
	q.fabric.queueFailure(q, q.epoch.Load()) // flushes the send queue once mu is free
	return status
}

// flush completes all receive requests. The pair is in Error.
func (r *responder) flush() {
	for r.done < r.posted {
		r.finish(verbs.StatusFlushed, verbs.Received, false, 0)
	}
	r.inMessage = false
}
