package ctp

import (
	"encoding/binary"

	"github.com/p2pdc/p2pdc/microproto"
)

// PositiveAck acknowledges segments and grants credit: a cumulative number, a bitmap of the 64
// numbers after the first missing one, and the bytes granted in all. Every segment carries
// them. Without segments in that direction they are sent alone: at once if a segment is out of
// order, in the next Advance if a message has ended, otherwise after OptionAckEvery segments or
// OptionAckDelay. Credit is cumulative, so the next grant repairs a lost one.
//
// An acknowledgement alone has the numbers behind the bitmap in its payload, as far as segments have
// arrived. A segment of a message that leaves them out says so, and does not replace an
// acknowledgement alone.
type PositiveAck struct {
	named
	initialGrant uint64
	limit        uint64
	longest      uint64 // message that both ends take
	every        int
	ackSchedule

	flags  microproto.Attr[uint8]
	next   microproto.Attr[uint32]
	seen   microproto.Attr[uint64]
	credit microproto.Attr[uint64]

	total          microproto.Attr[uint32]
	each           *bool
	grant, granted *uint64
	sent, expected *uint32
	seenCell       *arrivals

	advertised uint64 // credit of the last acknowledgement
	arrived    int    // segments of the last train that are not yet counted

	most   int                             // bytes of the bitmap in a payload
	beyond [beyondHeader + mostBeyond]byte // the payload of the next
}

// Flags of a segment.
const (
	flagData = 1 // it is part of a message
	flagMore = 2 // more segments have arrived than it reports
	// maskCopy << copyShift is the number of the copy that arrived last, see copyNumber.
	copyShift = 2
)

// The payload of an acknowledgement alone: a number, and a bitmap. Bit i of byte k says that 8·k + i numbers
// after it has arrived.
const (
	beyondHeader = 4
	mostBeyond   = fifoWindow / 8
	seenNumbers  = 64 // numbers that the bitmap in the header reports
)

var (
	ackTimer = microproto.NewEvent[*ackSchedule]("ctp.ack.timer")
	ackFlush = microproto.NewEvent[*ackSchedule]("ctp.ack.flush")
)

func newPositiveAck(s *settings) microproto.MicroProtocol {
	p := &PositiveAck{named: s.named, initialGrant: s.queue(OptionPeerReceive), limit: s.queue(OptionReceive),
		every: option(s, OptionAckEvery, 2, 1, 1<<20), ackSchedule: ackSchedule{delay: s.ackDelay()}}
	p.longest = min(longestMessage(s), p.limit-messageCost, p.initialGrant-messageCost)
	return p
}

// Attach implements microproto.MicroProtocol.
func (p *PositiveAck) Attach(b *microproto.Binder) error {
	b.TakesTrains()
	b.Version(2)
	lookupCell(b, cellSentNext, &p.sent)
	lookupCell(b, cellExpected, &p.expected)
	lookupCell(b, cellGrant, &p.grant)
	lookupCell(b, cellCredit, &p.granted)
	lookupCell(b, cellArrived, &p.seenCell)
	lookupAttr(b, attrTotal, &p.total)
	declareCell(b, cellAckEach, &p.each, false)
	wireAttr(b, attrFlags, &p.flags)
	wireAttr(b, "ack.next", &p.next)
	wireAttr(b, "ack.seen", &p.seen)
	wireAttr(b, "ack.credit", &p.credit)
	b.Common(microproto.CommonCase{
		Send: func(_ *microproto.Exec, m *microproto.Message) bool {
			p.flags.Set(m, flagData)
			p.writeHeader(m)
			return true
		},
		Sent:   p.wrote,
		Expect: func(_ *microproto.Exec, m *microproto.Message) bool { return p.refusal(m) == "" },
		Ends:   p.isAlone, Take: p.take, Priority: microproto.Early,
	})
	bind(b, microproto.OpenSession, func(x *microproto.Exec, _ struct{}) {
		*p.grant, p.advertised = p.initialGrant, p.limit
		p.most = min(mostBeyond, int(min(p.longest, uint64(x.MaxPayload()&^7)))-beyondHeader)
	})
	bind(b, microproto.SegmentFromUser, func(_ *microproto.Exec, m *microproto.Message) {
		p.flags.Set(m, flagData)
	})
	bind(b, microproto.SegmentToNet, p.fillHeader)
	microproto.Bind(b, microproto.SegmentFromNet, microproto.Early, p.receive)
	bind(b, AckRequested, p.request)
	microproto.Bind(b, Consumed, microproto.Late, p.consumed)
	bind(b, ackDue, func(x *microproto.Exec, _ struct{}) {
		if *p.each && p.due {
			p.flush(x)
		}
	})
	p.bind(b, ackTimer, ackFlush)
	return nil
}

func (p *PositiveAck) fillHeader(x *microproto.Exec, m *microproto.Message) {
	if p.writeHeader(m); p.isAlone(m) {
		p.writeBeyond(x, m)
	}
	p.wrote(x, m)
}

func (p *PositiveAck) writeHeader(m *microproto.Message) {
	next := *p.expected
	p.next.Set(m, next)
	p.seen.Set(m, p.seenCell.from(next+1))
	p.credit.Set(m, *p.granted)
	flags := p.flags.Get(m)&flagData | p.seenCell.copy<<copyShift
	if p.seenCell.behind(next+1) > seenNumbers {
		flags |= flagMore
	}
	p.flags.Set(m, flags)
}

// writeBeyond gives an acknowledgement alone its payload, if segments behind the bitmap have arrived.
func (p *PositiveAck) writeBeyond(x *microproto.Exec, m *microproto.Message) {
	first := *p.expected + 1 + seenNumbers
	n := p.seenCell.behind(first)
	if n == 0 || p.most <= 0 {
		return
	}
	told := n <= 8*p.most
	n = min(n, 8*p.most)
	binary.BigEndian.PutUint32(p.beyond[:], first)
	bitmap := p.beyond[beyondHeader:]
	for i := 0; i < n; i += 64 {
		binary.LittleEndian.PutUint64(bitmap[i/8:], p.seenCell.from(first+uint32(i)))
	}
	m.Payload = p.beyond[:beyondHeader+(n+7)/8]
	if x.Own(m) != nil { // there is no frame now
		m.Payload = nil
		return
	}
	p.total.Set(m, uint32(len(m.Payload))) // a complete message for Resize
	if told {
		p.flags.Set(m, p.flags.Get(m)&^flagMore)
	}
}

// wrote notes that a segment carries the acknowledgement.
func (p *PositiveAck) wrote(x *microproto.Exec, m *microproto.Message) {
	p.advertised = *p.granted
	if p.flags.Get(m)&(flagData|flagMore) != flagData|flagMore {
		p.carried(x)
	}
}

func (p *PositiveAck) receive(x *microproto.Exec, m *microproto.Message) {
	if why := p.refusal(m); why != "" {
		x.Drop(m, why)
		return
	}
	p.take(x, m)
	if p.isAlone(m) {
		x.Done(m)
	}
}

// refusal returns why a segment is dropped, "" if it is not.
func (p *PositiveAck) refusal(m *microproto.Message) string {
	switch n, flags := len(m.Payload), p.flags.Get(m); {
	case flags > flagData|flagMore|maskCopy<<copyShift ||
		flags&flagData == 0 && n != 0 && (n <= beyondHeader || n > beyondHeader+mostBeyond):
		return "malformed acknowledgement"
	case before(*p.sent, p.next.Get(m)):
		return "acknowledgement of a segment not sent"
	}
	return ""
}

// isAlone reports whether a segment is an acknowledgement alone.
func (p *PositiveAck) isAlone(m *microproto.Message) bool { return p.flags.Get(m)&flagData == 0 }

func (p *PositiveAck) take(x *microproto.Exec, m *microproto.Message) {
	*p.grant = max(*p.grant, p.credit.Get(m))
	p.arrived = 1
	if *p.each {
		p.arrived = m.Segments()
	}
	a := Ack{Next: p.next.Get(m), Seen: p.seen.Get(m), Credit: *p.grant, Alone: p.isAlone(m),
		More: p.flags.Get(m)&flagMore != 0, Copy: p.flags.Get(m) >> copyShift}
	if a.Alone && len(m.Payload) > beyondHeader {
		a.First, a.Beyond = binary.BigEndian.Uint32(m.Payload), m.Payload[beyondHeader:]
	}
	microproto.Raise(x, AckArrived, a)
}

func (p *PositiveAck) request(x *microproto.Exec, u Urgency) {
	p.pending += max(p.arrived, 1)
	p.arrived = 1
	if u != NextAdvance || p.due {
		p.schedule(x, u == Now || p.pending >= p.every)
	} else if !p.nextAdvance {
		cancel(x, &p.timer)
		p.nextAdvance = true
		p.timer = microproto.RaiseAfter(x, ackTimer, 0, &p.ackSchedule)
	}
}

// consumed requests an acknowledgement when a quarter of the queue has become free.
func (p *PositiveAck) consumed(x *microproto.Exec, _ struct{}) {
	if *p.granted-p.advertised >= p.limit/4 {
		p.request(x, Now)
	}
}
