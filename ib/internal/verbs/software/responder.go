package software

import (
	"sync/atomic"

	"github.com/p2pdc/p2pdc/ib/internal/verbs"
)

// responder is the receiving half of a pair.
type responder struct {
	pair   *pair
	attr   verbs.Attributes // of the pair, under answers' lock
	ring   []recvSlot
	posted uint64
	done   uint64
	freed  atomic.Uint64 // receive requests whose room is free, set by Poll

	expected  uint32 // PSN
	nakSent   bool   // RC: a sequence error was answered; silence until it is mended
	dropping  bool   // UC: until the first packet of a message
	inMessage bool   // a message has begun
	received  int    // bytes of it
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
	r.nakSent, r.dropping, r.inMessage, r.received = false, false, false, 0
}

func (r *responder) at(k uint64) *recvSlot { return &r.ring[k%uint64(len(r.ring))] }

// receive takes a packet in.
func (q *pair) receive(p *packet) ack {
	q.responderMu.Lock()
	defer q.responderMu.Unlock()
	r := &q.responder
	if s := q.currentState(); s != verbs.ReadyToReceive && s != verbs.ReadyToSend && s != verbs.SendQueueDrained {
		q.fabric.lost.Add(1)
		return ack{}
	}
	if p.transport != q.transport || p.from != r.attr.Remote || q.route(r.attr.Path) != p.source {
		q.fabric.lost.Add(1) // not of this connection
		return ack{}
	}
	if q.transport == verbs.UC {
		r.unreliable(p)
		return ack{}
	}
	switch d := psnDistance(p.psn, r.expected); {
	case d < 0: // had it: the answer was lost
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
		return ack{kind: notReadyNAK, psn: p.psn, timer: r.attr.RNRTimer}
	default:
		return ack{kind: errorNAK, psn: p.psn, status: r.fail(o)}
	}
	r.expected = (r.expected + 1) & psnMask
	if !p.last {
		return ack{}
	}
	return ack{kind: positiveAck, psn: p.psn}
}

// unreliable takes a packet of UC: out of order, the message it belongs to is lost, and
// the first packet of another is taken whatever its number (IBTA 9.8.2).
func (r *responder) unreliable(p *packet) {
	if p.psn != r.expected || r.dropping {
		r.inMessage = false
		if r.dropping = !p.first; r.dropping {
			r.pair.fabric.lost.Add(1)
			return
		}
	}
	r.expected = (p.psn + 1) & psnMask
	switch o := r.execute(p); o {
	case executed:
	case badLength, badReceive:
		r.fail(o)
	default: // silence, until the next message
		r.inMessage, r.dropping = false, true
		r.pair.fabric.lost.Add(1)
	}
}

// outcome is what became of a packet that was in order.
type outcome uint8

const (
	executed   outcome = iota
	noReceive          // no request is posted
	badLength          // longer than the receive request
	badReceive         // the receive request's own memory may not be written
	badAccess          // key, bounds or rights of a remote write
	badPacket          // sizes or order that no requester with the same MTU sends
)

func (r *responder) execute(p *packet) outcome {
	mtu := r.attr.PathMTU
	if p.first == r.inMessage || p.bytes > mtu || !p.last && p.bytes != mtu {
		return badPacket
	}
	var o outcome
	if p.operation == verbs.Send || p.operation == verbs.SendImmediate {
		o = r.scatter(p)
	} else {
		o = r.write(p)
	}
	if o != executed {
		return o
	}
	r.inMessage = !p.last
	return executed
}

// scatter copies a packet of a send to where the oldest receive request says.
func (r *responder) scatter(p *packet) outcome {
	if p.first {
		r.received = 0
	}
	if r.done == r.posted {
		return noReceive
	}
	s := r.at(r.done)
	if uint64(r.received+p.bytes) > s.length {
		return badLength
	}
	skip, from := r.received, 0
	for _, e := range s.elements {
		if from == p.bytes {
			break
		}
		if skip >= int(e.Length) {
			skip -= int(e.Length)
			continue
		}
		n := min(int(e.Length)-skip, p.bytes-from)
		b, g := r.pair.domain.acquire(e.Key, e.Addr+uint64(skip), n, verbs.LocalWrite)
		if g == nil {
			return badReceive
		}
		p.read(b, from, false)
		g.release()
		skip, from = 0, from+n
	}
	r.received += p.bytes
	if p.last {
		r.finish(verbs.StatusOK, verbs.Received, p.operation == verbs.SendImmediate, p.immediate)
	}
	return executed
}

// write copies a packet of a remote write to its place. The whole message is judged
// before its first byte lands, and each packet again: the region may have gone.
func (r *responder) write(p *packet) outcome {
	if p.first {
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
	takes := p.last && p.operation == verbs.WriteImmediate
	if takes && r.done == r.posted {
		return noReceive
	}
	if p.bytes > 0 {
		b, g := r.pair.domain.acquire(p.remoteKey, p.remoteAddr+uint64(p.offset), p.bytes, verbs.RemoteWrite)
		if g == nil {
			return badAccess
		}
		p.read(b, 0, true)
		g.release()
	}
	r.received += p.bytes
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
	c.ID, c.Status, c.Kind, c.Pair = s.id, status, kind, q.number
	if status == verbs.StatusOK {
		c.Bytes, c.HasImmediate = uint32(r.received), immediate
		if immediate {
			c.Immediate = value
		}
	}
	q.recvQueue.push(c)
}

// breakDown ends the pair for what a packet has done to it, and returns the status
// that the requester gets.
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
	q.fabric.queueFailure(q, q.epoch.Load()) // flushes the requests, when that lock is free
	return status
}

// flush ends all receive requests; the pair is in Error.
func (r *responder) flush() {
	for r.done < r.posted {
		r.finish(verbs.StatusFlushed, verbs.Received, false, 0)
	}
	r.inMessage = false
}
