package software

import (
	"unsafe"

	"github.com/p2pdc/p2pdc/ib/internal/verbs"
)

// psnMask holds packet sequence numbers to their 24 bits.
const psnMask = 1<<24 - 1

// ahead tells how far PSN a is before b, between −2²³ and 2²³.
func psnDistance(a, b uint32) int { return int(int32((a-b)<<8) >> 8) }

// packet is one packet of a message; its payload lies where the request's elements
// do, or in a copy when it comes late.
type packet struct {
	from, to    uint32
	source      *port
	transport   verbs.Transport
	operation   verbs.Operation
	psn         uint32
	first, last bool
	bytes       int // of payload
	offset      int // of it in the message
	total       int // bytes of a write, which its first packet announces
	remoteAddr  uint64
	remoteKey   uint32
	immediate   uint32
	payload     []span // of the whole message, or of this packet alone (loose)
	ownPayload  bool
}

// span is a piece of memory that a message comes from.
type span struct {
	bytes  []byte
	region *region // claimed; nil: the queue's own
}

// read copies the packet's payload, from its byte at on, to dst. In order: lines of
// 64 bytes become visible one after the other, from the lowest address up.
func (p *packet) read(dst []byte, at int, inOrder bool) {
	if !p.ownPayload {
		at += p.offset
	}
	for _, s := range p.payload {
		if len(dst) == 0 {
			return
		}
		if at >= len(s.bytes) {
			at -= len(s.bytes)
			continue
		}
		n := min(len(dst), len(s.bytes)-at)
		if inOrder {
			copyAscending(dst[:n], s.bytes[at:at+n])
		} else {
			copy(dst[:n], s.bytes[at:])
		}
		dst, at = dst[n:], 0
	}
}

// line is a cache line, in pieces that one instruction copies.
type line [4][16]byte

const lineBytes = len(line{}) * len(line{}[0])

// ascend copies from the lowest address up, as an adapter does behind PCI Express.
func copyAscending(dst, src []byte) {
	if len(dst) == 0 {
		return
	}
	if off := int(uintptr(unsafe.Pointer(&dst[0])) % uintptr(lineBytes)); off != 0 {
		n := min(lineBytes-off, len(dst))
		copy(dst[:n], src[:n])
		dst, src = dst[n:], src[n:]
	}
	i := 0
	for n := min(len(dst), len(src)); i+lineBytes <= n; i += lineBytes {
		d, s := (*line)(unsafe.Pointer(&dst[i])), (*line)(unsafe.Pointer(&src[i]))
		d[0] = s[0]
		d[1] = s[1]
		d[2] = s[2]
		d[3] = s[3]
	}
	copy(dst[i:], src[i:])
}

// answerKind is what a responder says to a packet.
type ackKind uint8

const (
	noAck ackKind = iota
	positiveAck
	sequenceNAK // NAK: PSN sequence error
	notReadyNAK // RNR NAK
	errorNAK    // NAK with a status for the requester
)

// answer is an acknowledgement. psn is the last one accepted, or the one refused.
type ack struct {
	kind   ackKind
	psn    uint32
	timer  uint8 // of notReady
	status verbs.Status
}

// late is a packet, or an answer, that comes later than what was sent after it.
type delayedPacket struct {
	event  event
	fabric *Fabric
	to     *port
	packet packet
	answer ack
}

// postpone makes a copy of the packet arrive after a delay.
func (p *packet) delay(f *Fabric, to *port, fate Fault) {
	b := make([]byte, p.bytes)
	p.read(b, 0, false)
	l := &delayedPacket{fabric: f, to: to, packet: *p}
	l.packet.payload, l.packet.ownPayload = []span{{bytes: b}}, true
	l.event.delayed = l
	f.clock.schedule(&l.event, fate.Delay)
}

// arrive delivers what was late, on the clock's goroutine.
func (l *delayedPacket) deliver() {
	f, p := l.fabric, &l.packet
	if !l.to.reachable() || !p.source.reachable() {
		f.lost.Add(1)
		return
	}
	a := l.answer
	if a.kind == noAck {
		b := l.to.adapter.pairs.find(p.to)
		if b == nil {
			f.lost.Add(1)
			return
		}
		a = f.returnAck(p, l.to, b.receive(p))
	}
	if a.kind != noAck {
		if r := p.source.adapter.pairs.find(p.from); r != nil {
			r.receiveAck(a)
		}
	}
	f.processFailures()
}

// back lets the rule judge an answer; silence when it is lost or late.
func (f *Fabric) returnAck(p *packet, to *port, a ack) ack {
	if a.kind == noAck || !f.hasRule.Load() {
		return a
	}
	fate := f.faultOf(Packet{From: p.to, To: p.from, Transport: p.transport, Operation: p.operation, PSN: a.psn, Ack: true})
	if fate.Drop {
		f.lost.Add(1)
		return ack{}
	}
	if fate.Delay == 0 {
		return a
	}
	l := &delayedPacket{fabric: f, to: to, answer: a}
	l.packet.from, l.packet.to, l.packet.source = p.from, p.to, p.source
	l.event.delayed = l
	f.clock.schedule(&l.event, fate.Delay)
	return ack{}
}

func (p *port) reachable() bool { return p.up.Load() && !p.adapter.removed.Load() }
