package ctp

import (
	"time"

	"github.com/p2pdc/p2pdc/microproto"
)

// PositiveAck tells the other end what has come and how much it may send: a
// cumulative number, a bitmap of the 64 numbers behind the first that is missing,
// and the bytes granted in all. Every segment carries them; when none goes the
// other way they travel alone: at once when something is unusual, in the next Advance
// when a message has ended, otherwise after OptionAckEvery segments or OptionAckDelay. Credit is
// cumulative: a lost grant is repaired by the next.
type PositiveAck struct {
	first uint64
	limit uint64
	every int
	delay time.Duration

	flags  microproto.Attr[uint8]
	next   microproto.Attr[uint32]
	seen   microproto.Attr[uint64]
	credit microproto.Attr[uint64]

	each           *bool
	grant, granted *uint64
	sent, expected *uint32
	stored         *uint64

	told    uint64 // credit in the last acknowledgement
	pending int    // segments that wait for one
	came    int    // of the train that came last, those not yet counted
	due     bool   // one has been enqueued
	turn    bool   // the timer waits for the turn to end only
	timer   microproto.TimerID
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
	return &PositiveAck{first: uint64(first), limit: uint64(limit), every: int(every), delay: time.Duration(delay)}, err
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
	p.stored = microproto.LookupCell[uint64](b, cellSeen)
	p.each = microproto.DeclareCell(b, cellAckEach, false)
	p.flags = microproto.WireAttr[uint8](b, attrFlags)
	p.next = microproto.WireAttr[uint32](b, "ack.next")
	p.seen = microproto.WireAttr[uint64](b, "ack.seen")
	p.credit = microproto.WireAttr[uint64](b, "ack.credit")
	microproto.Bind(b, microproto.OpenSession, microproto.Normal, func(*microproto.Exec, struct{}) {
		*p.grant, p.told = p.first, p.limit
	})
	microproto.Bind(b, microproto.SegmentFromUser, microproto.Normal, func(_ *microproto.Exec, m *microproto.Message) {
		p.flags.Set(m, flagData)
	})
	microproto.Bind(b, microproto.SegmentToNet, microproto.Normal, p.fill)
	microproto.Bind(b, microproto.SegmentFromNet, microproto.Early, p.take)
	microproto.Bind(b, AckWanted, microproto.Normal, p.want)
	microproto.Bind(b, Consumed, microproto.Late, p.consumed)
	microproto.Bind(b, ackDue, microproto.Normal, func(x *microproto.Exec, _ struct{}) {
		if *p.each && p.due {
			p.flush(x)
		}
	})
	microproto.Bind(b, ackFlush, microproto.Normal, func(x *microproto.Exec, _ *PositiveAck) { p.flush(x) })
	microproto.Bind(b, ackTimer, microproto.Normal, func(x *microproto.Exec, _ *PositiveAck) {
		p.timer, p.turn = 0, false
		p.flush(x)
	})
	return nil
}

// fill puts in the newest acknowledgement at the last moment.
func (p *PositiveAck) fill(x *microproto.Exec, m *microproto.Message) {
	p.next.Set(m, *p.expected)
	p.seen.Set(m, *p.stored)
	p.credit.Set(m, *p.granted)
	p.told = *p.granted
	p.pending, p.due, p.turn = 0, false, false
	if p.timer != 0 {
		x.Cancel(p.timer)
		p.timer = 0
	}
}

func (p *PositiveAck) take(x *microproto.Exec, m *microproto.Message) {
	flags, next := p.flags.Get(m), p.next.Get(m)
	switch {
	case flags&^flagData != 0 || flags == 0 && len(m.Payload) > 0:
		x.Drop(m, "malformed acknowledgement")
		return
	case before(*p.sent, next):
		x.Drop(m, "acknowledgement of what was never sent")
		return
	}
	*p.grant = max(*p.grant, p.credit.Get(m))
	p.came = 1
	if *p.each {
		p.came = m.Segments()
	}
	microproto.Raise(x, AckArrived, Ack{Next: next, Seen: p.seen.Get(m), Credit: *p.grant, Alone: flags&flagData == 0})
	if flags&flagData == 0 {
		x.Done(m)
	}
}

func (p *PositiveAck) want(x *microproto.Exec, u Urgency) {
	p.pending += max(p.came, 1)
	p.came = 1
	switch {
	case p.due:
	case u == Turn:
		if !p.turn {
			x.Cancel(p.timer)
			p.turn = true
			p.timer = microproto.RaiseAfter(x, ackTimer, 0, p)
		}
	case u == Now || p.pending >= p.every:
		p.due = true
		microproto.Enqueue(x, ackFlush, p)
	case p.timer == 0:
		p.timer = microproto.RaiseAfter(x, ackTimer, p.delay, p)
	}
}

// flush sends an acknowledgement of its own, unless a segment has carried it.
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

// consumed tells the other end when much of the queue has become free.
func (p *PositiveAck) consumed(x *microproto.Exec, _ struct{}) {
	if *p.granted-p.told >= p.limit/4 {
		p.want(x, Now)
	}
}
