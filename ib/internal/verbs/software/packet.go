package software

import (
	"time"
	"unsafe"

	"github.com/p2pdc/p2pdc/ib/internal/verbs"
)

// psnMask reduces packet sequence numbers to 24 bits.
const psnMask = 1<<24 - 1

// psnDistance returns how far PSN a is ahead of b, between −2²³ and 2²³.
func psnDistance(a, b uint32) int { return int(int32((a-b)<<8) >> 8) }

// packet is one packet of a message. Its payload is in the elements of the request, or copied if
// the packet is delayed.
type packet struct {
	Packet
	source     *port
	offset     int // of the payload in the message
	total      int // bytes of a write, announced by its first packet
	remoteAddr uint64
	remoteKey  uint32
	immediate  uint32
	payload    []span // of the whole message, or of this packet if ownPayload
	ownPayload bool
}

// span is a piece of the memory of a message.
type span struct {
	bytes  []byte
	region *region // acquired; nil: the queue's own memory
}

// read copies the packet's payload, from byte at on, to dst. inOrder makes lines of 64 bytes
// visible one after the other, from the lowest address up.
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

// line is a cache line, in pieces that one instruction each copies.
type line [4][16]byte

const lineBytes = len(line{}) * len(line{}[0])

// copyAscending copies from the lowest address up, as an adapter does behind PCI Express.
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

// ackKind is the kind of a responder's acknowledgement.
type ackKind uint8

const (
	noAck ackKind = iota
	positiveAck
	sequenceNAK // NAK: PSN sequence error
	notReadyNAK // RNR NAK
	errorNAK    // NAK with a status for the requester
)

// ack is an acknowledgement. psn is the last packet accepted, or the one refused.
type ack struct {
	kind   ackKind
	psn    uint32
	timer  uint8 // of notReadyNAK
	status verbs.Status
}

// delayedPacket is a packet or an acknowledgement that a rule delays.
type delayedPacket struct {
	fabric *Fabric
	to     *port
	packet packet
	answer ack
}

// delay makes a copy of the packet arrive later.
func (p *packet) delay(f *Fabric, to *port, fault Fault) {
	b := make([]byte, p.Bytes)
	p.read(b, 0, false)
	l := &delayedPacket{fabric: f, to: to, packet: *p}
	l.packet.payload, l.packet.ownPayload = []span{{bytes: b}}, true
	time.AfterFunc(fault.Delay, l.deliver)
}

// deliver delivers the packet.
func (l *delayedPacket) deliver() {
	f, p := l.fabric, &l.packet
	if !l.to.reachable() || !p.source.reachable() {
		f.lost.Add(1)
		return
	}
	a := l.answer
	if a.kind == noAck {
		b := l.to.adapter.pairs.find(p.To)
		if b == nil {
			f.lost.Add(1)
			return
		}
		a = f.returnAck(p, l.to, b.receive(p))
	}
	if a.kind != noAck {
		if r := p.source.adapter.pairs.find(p.From); r != nil {
			r.receiveAck(a)
		}
	}
	f.processFailures()
}

// returnAck applies the rule to an acknowledgement. It returns noAck if that is lost or delayed.
func (f *Fabric) returnAck(p *packet, to *port, a ack) ack {
	if a.kind == noAck || !f.hasRule.Load() {
		return a
	}
	fault := f.faultOf(Packet{
		From: p.To, To: p.From, Transport: p.Transport, Operation: p.Operation, PSN: a.psn, Ack: true,
	})
	if fault.Drop {
		f.lost.Add(1)
		return ack{}
	}
	if fault.Delay == 0 {
		return a
	}
	l := &delayedPacket{fabric: f, to: to, answer: a}
	l.packet.From, l.packet.source = p.From, p.source
	time.AfterFunc(fault.Delay, l.deliver)
	return ack{}
}

func (p *port) reachable() bool { return p.up.Load() && !p.adapter.removed.Load() }
