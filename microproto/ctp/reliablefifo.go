package ctp

import "github.com/p2pdc/p2pdc/microproto"

// ReliableFIFO brings segments up in the order of their numbers, each once. What
// comes too early is held; what comes again is dropped and acknowledged again. It
// owns the receiver's queue of OptionReceive bytes and the credit for it: a segment
// is stored only if it fits, and what was stored is acknowledged.
type ReliableFIFO struct {
	limit         uint64
	hold          microproto.HoldBit
	number        microproto.Attr[uint32]
	offset, total microproto.Attr[uint32]
	expected      *uint32
	seen          *uint64
	consumed      *uint64
	taken         *uint64
	credit        *uint64

	stored uint64                // bytes taken in all
	early  []*microproto.Message // by number modulo fifoWindow; nil before the first
	held   int
	most   int // that may be held: the pool has other uses
}

// fifoWindow is how far ahead of the expected one a segment may be.
const fifoWindow = 4096

func newReliableFIFO(o microproto.Options) (microproto.MicroProtocol, error) {
	limit, err := option(o, OptionReceive, defaultReceive, messageCost, anyPositive)
	return &ReliableFIFO{limit: uint64(limit)}, err
}

// Name implements microproto.MicroProtocol.
func (f *ReliableFIFO) Name() string { return "ReliableFIFO" }

// Attach implements microproto.MicroProtocol.
func (f *ReliableFIFO) Attach(b *microproto.Binder) error {
	b.TakesTrains()
	f.number = microproto.LookupAttr[uint32](b, attrNumber)
	f.offset = microproto.LookupAttr[uint32](b, attrOffset)
	f.total = microproto.LookupAttr[uint32](b, attrTotal)
	f.expected = microproto.LookupCell[uint32](b, cellExpected)
	f.seen = microproto.LookupCell[uint64](b, cellSeen)
	f.consumed = microproto.LookupCell[uint64](b, cellConsumed)
	f.taken = microproto.LookupCell[uint64](b, cellTaken)
	f.credit = microproto.LookupCell[uint64](b, cellCredit)
	f.most = max(1, b.Limits().Messages/8)
	f.hold = b.HoldBit("ReliableFIFO.early")
	microproto.Bind(b, microproto.OpenSession, microproto.Normal, func(x *microproto.Exec, _ struct{}) {
		f.stored = *f.taken
		f.grant(x, struct{}{})
	})
	microproto.Bind(b, Consumed, microproto.Normal, f.grant)
	microproto.Bind(b, microproto.SegmentFromNet, microproto.Late, f.take)
	microproto.Bind(b, segmentApart, microproto.Normal, f.take)
	return nil
}

func (f *ReliableFIFO) grant(*microproto.Exec, struct{}) { *f.credit = *f.consumed + f.limit }

// share is a segment's part of its message's cost.
func (f *ReliableFIFO) share(m *microproto.Message) uint64 {
	n := uint64(m.Length())
	if f.offset.Get(m) == 0 {
		n += messageCost
	}
	return n
}

func (f *ReliableFIFO) take(x *microproto.Exec, m *microproto.Message) {
	number, segments := f.number.Get(m), m.Segments()
	ahead := int32(number - *f.expected)
	if segments > 1 && (ahead != 0 || f.held > 0 || f.stored+f.share(m)-*f.consumed > f.limit) {
		f.part(x, m)
		return
	}
	switch {
	case ahead < 0 || ahead > 0 && ahead < fifoWindow && f.held > 0 && f.early[number%fifoWindow] != nil:
		// Its acknowledgement was lost, or is late.
		microproto.Raise(x, AckWanted, Now)
		x.Drop(m, "duplicate")
		return
	case ahead >= fifoWindow || ahead > 0 && f.held >= f.most:
		x.Drop(m, "beyond the window")
		return
	case f.stored+f.share(m)-*f.consumed > f.limit:
		microproto.Raise(x, AckWanted, Soon)
		x.Drop(m, "beyond the credit")
		return
	}
	f.stored += f.share(m)
	if ahead > 0 {
		if f.early == nil { // most sessions never see a segment out of order
			f.early = make([]*microproto.Message, fifoWindow)
		}
		f.early[number%fifoWindow] = m
		f.held++
		if ahead <= 64 {
			*f.seen |= 1 << (ahead - 1)
		}
		x.Hold(m, f.hold)
		microproto.Raise(x, AckWanted, Now)
		return
	}
	urgency := Soon
	switch {
	case f.held > 0:
		urgency = Now
	case f.offset.Get(m)+uint32(m.Length()) == f.total.Get(m):
		urgency = Turn
	}
	if segments > 1 { // nothing is held behind it
		*f.expected += uint32(segments)
	} else {
		f.step()
		if x.Held(m)&f.hold != 0 {
			x.Release(m, f.hold)
		}
	}
	// Held ones go on after this chain, and so after this segment, in order.
	for f.held > 0 {
		p := &f.early[*f.expected%fifoWindow]
		if *p == nil {
			break
		}
		e := *p
		*p = nil
		f.held--
		f.step()
		x.Release(e, f.hold)
	}
	microproto.Raise(x, AckWanted, urgency)
}

// part takes a train apart that is not simply the next: each of its segments has a
// fate of its own.
func (f *ReliableFIFO) part(x *microproto.Exec, m *microproto.Message) {
	for i := range m.Segments() {
		microproto.Raise(x, ackDue, struct{}{})
		p, err := x.Part(m, i)
		if err != nil {
			break // the others come again
		}
		// It waits like a held one, so that it cannot pass one that was held.
		x.Hold(p, f.hold)
		x.Forward(p)
		microproto.Raise(x, segmentApart, p)
	}
	x.Done(m)
}

// segmentApart is raised for each segment of a train that was taken apart.
var segmentApart = microproto.NewEvent[*microproto.Message]("ctp.segment.apart")

// step moves the expected number and the bitmap behind it on by one.
func (f *ReliableFIFO) step() {
	*f.expected++
	*f.seen >>= 1
	if f.held > 0 && f.early[(*f.expected+64)%fifoWindow] != nil {
		*f.seen |= 1 << 63
	}
}
