package ctp

import "github.com/p2pdc/p2pdc/microproto"

// ReliableFIFO passes segments up in the order of their numbers, each once. It holds segments
// that are out of order, and drops duplicates and acknowledges them again. It owns the
// receiver's queue of OptionReceive bytes and its credit: a segment is stored, and then
// acknowledged, only if it fits.
type ReliableFIFO struct {
	named
	limit         uint64
	hold          microproto.HoldBit
	number        microproto.Attr[uint32]
	copy          microproto.Attr[uint8]
	offset, total microproto.Attr[uint32]
	expected      *uint32
	arrived       *arrivals
	consumed      *uint64
	taken         *uint64
	credit        *uint64

	stored  uint64                // bytes stored in all
	early   []*microproto.Message // held, by number modulo fifoWindow; nil before the first
	maxHeld int                   // a part of the pool
}

// fifoWindow bounds how far the number of a segment may be ahead of the expected one.
const fifoWindow = 4096

func newReliableFIFO(s *settings) microproto.MicroProtocol {
	return &ReliableFIFO{named: s.named, limit: s.queue(OptionReceive)}
}

// Attach implements microproto.MicroProtocol.
func (f *ReliableFIFO) Attach(b *microproto.Binder) error {
	b.TakesTrains()
	lookupAttr(b, attrNumber, &f.number)
	lookupAttr(b, attrCopy, &f.copy)
	lookupAttr(b, attrOffset, &f.offset)
	lookupAttr(b, attrTotal, &f.total)
	lookupCell(b, cellExpected, &f.expected)
	lookupCell(b, cellArrived, &f.arrived)
	lookupCell(b, cellConsumed, &f.consumed)
	lookupCell(b, cellTaken, &f.taken)
	lookupCell(b, cellCredit, &f.credit)
	f.maxHeld = max(1, b.Limits().Messages/8)
	f.hold = b.HoldBit("ReliableFIFO.early")
	b.Common(microproto.CommonCase{
		Send: microproto.Always, Expect: f.expectsAlone, Take: f.takeAlone, Priority: microproto.Late,
	})
	bind(b, microproto.OpenSession, func(x *microproto.Exec, _ struct{}) {
		f.stored = *f.taken
		f.grant(x, struct{}{})
	})
	bind(b, Consumed, f.grant)
	microproto.Bind(b, microproto.SegmentFromNet, microproto.Late, f.receive)
	bind(b, segmentSplit, f.receive)
	return nil
}

func (f *ReliableFIFO) grant(*microproto.Exec, struct{}) { *f.credit = *f.consumed + f.limit }

// costOf returns the bytes of the receiver's queue that a segment takes.
func (f *ReliableFIFO) costOf(m *microproto.Message) uint64 {
	n := uint64(m.Length())
	if f.offset.Get(m) == 0 {
		n += messageCost
	}
	return n
}

// expectsAlone and takeAlone are the common case: a message of one segment, which is the next and fits.
func (f *ReliableFIFO) expectsAlone(_ *microproto.Exec, m *microproto.Message) bool {
	return f.number.Get(m) == *f.expected && f.arrived.count == 0 && f.stored+f.costOf(m)-*f.consumed <= f.limit
}

func (f *ReliableFIFO) takeAlone(x *microproto.Exec, m *microproto.Message) {
	f.stored += f.costOf(m)
	f.arrived.copy = f.copy.Get(m) >> 1 & maskCopy
	*f.expected++
	microproto.Raise(x, AckRequested, NextAdvance)
}

func (f *ReliableFIFO) receive(x *microproto.Exec, m *microproto.Message) {
	number, segments, cost := f.number.Get(m), m.Segments(), f.costOf(m)
	ahead := int32(number - *f.expected)
	if segments > 1 && (ahead != 0 || f.arrived.count > 0 || f.stored+cost-*f.consumed > f.limit) {
		f.splitTrain(x, m)
		return
	}
	switch {
	case ahead < 0 || ahead > 0 && ahead < fifoWindow && f.arrived.has(number):
		// Its acknowledgement was lost or delayed.
		microproto.Raise(x, AckRequested, Now)
		x.Drop(m, "duplicate")
		return
	case ahead >= fifoWindow || ahead > 0 && f.arrived.count >= f.maxHeld:
		x.Drop(m, "beyond the window")
		return
	case f.stored+cost-*f.consumed > f.limit:
		microproto.Raise(x, AckRequested, Soon)
		x.Drop(m, "beyond the credit")
		return
	}
	f.stored += cost
	f.arrived.copy = f.copy.Get(m) >> 1 & maskCopy
	if ahead > 0 {
		if f.early == nil { // most sessions never receive a segment out of order
			f.early = make([]*microproto.Message, fifoWindow)
		}
		f.early[number%fifoWindow] = m
		f.arrived.add(number)
		x.Hold(m, f.hold)
		microproto.Raise(x, AckRequested, Now)
		return
	}
	urgency := Soon
	switch {
	case f.arrived.count > 0:
		urgency = Now
	case f.offset.Get(m)+uint32(m.Length()) == f.total.Get(m):
		urgency = NextAdvance
	}
	if segments > 1 { // no segment is held
		*f.expected += uint32(segments)
	} else {
		*f.expected++
		if x.Held(m)&f.hold != 0 {
			x.Release(m, f.hold)
		}
	}
	// Held segments continue after this chain, and so after this segment, in order.
	for f.arrived.has(*f.expected) {
		e := f.early[*f.expected%fifoWindow]
		f.early[*f.expected%fifoWindow] = nil
		f.arrived.remove(*f.expected)
		*f.expected++
		x.Release(e, f.hold)
	}
	microproto.Raise(x, AckRequested, urgency)
}

// splitTrain processes the segments of a train one by one: the train is not simply the next.
func (f *ReliableFIFO) splitTrain(x *microproto.Exec, m *microproto.Message) {
	for i := range m.Segments() {
		microproto.Raise(x, ackDue, struct{}{})
		p, err := x.Part(m, i)
		if err != nil {
			break // the others will be sent again
		}
		// Held, so that it cannot overtake a segment that was held before.
		x.Hold(p, f.hold)
		x.Forward(p)
		microproto.Raise(x, segmentSplit, p)
	}
	x.Done(m)
}

// segmentSplit is raised for each segment of a train that ReliableFIFO splits.
var segmentSplit = microproto.NewEvent[*microproto.Message]("ctp.segment.split")
