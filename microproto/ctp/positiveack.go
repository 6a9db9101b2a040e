package ctp

import (
	"time"

	"github.com/p2pdc/p2pdc/microproto"
)

// PositiveAck acknowledges segments and grants credit: a cumulative number, a bitmap of the 64
// numbers after the first missing one, and the bytes granted in all. Every segment carries
// them. Without segments in that direction they are sent alone: at once if a segment is out of
// order, in the next Advance if a message has ended, otherwise after OptionAckEvery segments or
// OptionAckDelay. Credit is cumulative, so the next grant repairs a lost one.
type PositiveAck struct {
	initialGrant uint64
	limit        uint64
	every        int
	delay        time.Duration

	flags  microproto.Attr[uint8]
	next   microproto.Attr[uint32]
	seen   microproto.Attr[uint64]
	credit microproto.Attr[uint64]

	each           *bool
	grant, granted *uint64
	sent, expected *uint32
	seenCell       *uint64

	advertised  uint64 // credit of the last acknowledgement
	pending     int    // segments to be acknowledged
	arrived     int    // segments of the last train that are not yet counted
	due         bool   // ackFlush is enqueued
	nextAdvance bool   // the timer fires in the next Advance
	timer       microproto.TimerID
}

const flagData = 1 // the segment is part of a message

var (
	ackTimer = microproto.NewEvent[*PositiveAck]("ctp.ack.timer")
	ackFlush = microproto.NewEvent[*PositiveAck]("ctp.ack.flush")
)

func newPositiveAck(o microproto.Options) (microproto.MicroProtocol, error) {
	first, err := option(o, OptionPeerReceive, defaultReceive, messageCost, anyPositive)
	if err != nil {
		return nil, err
	}
	limit, err := option(o, OptionReceive, defaultReceive, messageCost, anyPositive)
	if err != nil {
		return nil, err
	}
	floor, err := option(o, OptionRTOFloor, int64(defaultRTOFloor), 1, int64(time.Hour))
	if err != nil {
		return nil, err
	}
	delay, err := option(o, OptionAckDelay, min(floor/4, int64(25*time.Millisecond)), 0, int64(time.Second))
	if err != nil {
		return nil, err
	}
	every, err := option(o, OptionAckEvery, 2, 1, 1<<20)
	return &PositiveAck{initialGrant: uint64(first), limit: uint64(limit), every: int(every),
		delay: time.Duration(delay)}, err
}

// Name implements microproto.MicroProtocol.
func (p *PositiveAck) Name() string { return "PositiveAck" }

// Attach implements microproto.MicroProtocol.
func (p *PositiveAck) Attach(b *microproto.Binder) error {
	b.TakesTrains()
	p.sent = microproto.LookupCell[uint32](b, cellSentNext)
	p.expected = microproto.LookupCell[uint32](b, cellExpected)
	p.grant = microproto.LookupCell[uint64](b, cellGrant)
	p.granted = microproto.LookupCell[uint64](b, cellCredit)
	p.seenCell = microproto.LookupCell[uint64](b, cellSeen)
	p.each = microproto.DeclareCell(b, cellAckEach, false)
	p.flags = microproto.WireAttr[uint8](b, attrFlags)
	p.next = microproto.WireAttr[uint32](b, "ack.next")
	p.seen = microproto.WireAttr[uint64](b, "ack.seen")
	p.credit = microproto.WireAttr[uint64](b, "ack.credit")
	microproto.Bind(b, microproto.OpenSession, microproto.Normal, func(*microproto.Exec, struct{}) {
		*p.grant, p.advertised = p.initialGrant, p.limit
	})
	microproto.Bind(b, microproto.SegmentFromUser, microproto.Normal, func(_ *microproto.Exec, m *microproto.Message) {
		p.flags.Set(m, flagData)
	})
	microproto.Bind(b, microproto.SegmentToNet, microproto.Normal, p.fillHeader)
	microproto.Bind(b, microproto.SegmentFromNet, microproto.Early, p.receive)
	microproto.Bind(b, AckRequested, microproto.Normal, p.request)
	microproto.Bind(b, Consumed, microproto.Late, p.consumed)
	microproto.Bind(b, ackDue, microproto.Normal, func(x *microproto.Exec, _ struct{}) {
		if *p.each && p.due {
			p.flush(x)
		}
	})
	microproto.Bind(b, ackFlush, microproto.Normal, func(x *microproto.Exec, _ *PositiveAck) { p.flush(x) })
	microproto.Bind(b, ackTimer, microproto.Normal, func(x *microproto.Exec, _ *PositiveAck) {
		p.timer, p.nextAdvance = 0, false
		p.flush(x)
	})
	return nil
}

// fillHeader writes the latest acknowledgement to an outgoing segment.
func (p *PositiveAck) fillHeader(x *microproto.Exec, m *microproto.Message) {
	p.next.Set(m, *p.expected)
	p.seen.Set(m, *p.seenCell)
	p.credit.Set(m, *p.granted)
	p.advertised = *p.granted
	p.pending = 0
	p.due, p.nextAdvance = false, false
	if p.timer != 0 {
		x.Cancel(p.timer)
		p.timer = 0
	}
}

func (p *PositiveAck) receive(x *microproto.Exec, m *microproto.Message) {
	flags, next := p.flags.Get(m), p.next.Get(m)
	switch {
	case flags&^flagData != 0 || flags == 0 && len(m.Payload) > 0:
		x.Drop(m, "malformed acknowledgement")
		return
	case before(*p.sent, next):
		x.Drop(m, "acknowledgement of a segment not sent")
		return
	}
	*p.grant = max(*p.grant, p.credit.Get(m))
	p.arrived = 1
	if *p.each {
		p.arrived = m.Segments()
	}
	microproto.Raise(x, AckArrived, Ack{Next: next, Seen: p.seen.Get(m), Credit: *p.grant, Alone: flags&flagData == 0})
	if flags&flagData == 0 {
		x.Done(m)
	}
}

func (p *PositiveAck) request(x *microproto.Exec, u Urgency) {
	p.pending += max(p.arrived, 1)
	p.arrived = 1
	switch {
	case p.due:
	case u == NextAdvance:
		if !p.nextAdvance {
			x.Cancel(p.timer)
			p.nextAdvance = true
			p.timer = microproto.RaiseAfter(x, ackTimer, 0, p)
		}
	case u == Now || p.pending >= p.every:
		p.due = true
		microproto.Enqueue(x, ackFlush, p)
	case p.timer == 0:
		p.timer = microproto.RaiseAfter(x, ackTimer, p.delay, p)
	}
}

// flush sends an acknowledgement alone, unless a segment has carried it.
func (p *PositiveAck) flush(x *microproto.Exec) {
	p.due = false
	if p.pending == 0 {
		return
	}
	m, err := x.NewMessage(microproto.Down)
	if err != nil {
		if p.timer == 0 {
			p.timer = microproto.RaiseAfter(x, ackTimer, p.delay+time.Millisecond, p)
		}
		return
	}
	x.Forward(m)
}

// consumed requests an acknowledgement when a quarter of the queue has become free.
func (p *PositiveAck) consumed(x *microproto.Exec, _ struct{}) {
	if *p.granted-p.advertised >= p.limit/4 {
		p.request(x, Now)
	}
}
