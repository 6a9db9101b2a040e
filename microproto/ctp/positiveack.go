package ctp

import "github.com/p2pdc/p2pdc/microproto"

// PositiveAck acknowledges segments and grants credit: a cumulative number, a bitmap of the 64
// numbers after the first missing one, and the bytes granted in all. Every segment carries
// them. Without segments in that direction they are sent alone: at once if a segment is out of
// order, in the next Advance if a message has ended, otherwise after OptionAckEvery segments or
// OptionAckDelay. Credit is cumulative, so the next grant repairs a lost one.
type PositiveAck struct {
	named
	initialGrant uint64
	limit        uint64
	every        int
	ackSchedule

	flags  microproto.Attr[uint8]
	next   microproto.Attr[uint32]
	seen   microproto.Attr[uint64]
	credit microproto.Attr[uint64]

	each           *bool
	grant, granted *uint64
	sent, expected *uint32
	seenCell       *uint64

	advertised uint64 // credit of the last acknowledgement
	arrived    int    // segments of the last train that are not yet counted
}

const flagData = 1 // the segment is part of a message

var (
	ackTimer = microproto.NewEvent[*ackSchedule]("ctp.ack.timer")
	ackFlush = microproto.NewEvent[*ackSchedule]("ctp.ack.flush")
)

func newPositiveAck(s *settings) microproto.MicroProtocol {
	return &PositiveAck{named: s.named, initialGrant: s.queue(OptionPeerReceive), limit: s.queue(OptionReceive),
		every: option(s, OptionAckEvery, 2, 1, 1<<20), ackSchedule: ackSchedule{delay: s.ackDelay()}}
}

// Attach implements microproto.MicroProtocol.
func (p *PositiveAck) Attach(b *microproto.Binder) error {
	b.TakesTrains()
	lookupCell(b, cellSentNext, &p.sent)
	lookupCell(b, cellExpected, &p.expected)
	lookupCell(b, cellGrant, &p.grant)
	lookupCell(b, cellCredit, &p.granted)
	lookupCell(b, cellSeen, &p.seenCell)
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
	bind(b, microproto.OpenSession, func(*microproto.Exec, struct{}) {
		*p.grant, p.advertised = p.initialGrant, p.limit
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
	p.writeHeader(m)
	p.wrote(x, m)
}

func (p *PositiveAck) writeHeader(m *microproto.Message) {
	p.next.Set(m, *p.expected)
	p.seen.Set(m, *p.seenCell)
	p.credit.Set(m, *p.granted)
}

// wrote notes that a segment carries the acknowledgement.
func (p *PositiveAck) wrote(x *microproto.Exec, _ *microproto.Message) {
	p.advertised = *p.granted
	p.carried(x)
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
	switch flags := p.flags.Get(m); {
	case flags&^flagData != 0 || flags == 0 && len(m.Payload) > 0:
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
	microproto.Raise(x, AckArrived, Ack{Next: p.next.Get(m), Seen: p.seen.Get(m), Credit: *p.grant, Alone: p.isAlone(m)})
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
