package ctp

import "github.com/p2pdc/p2pdc/microproto"

// DuplicateAck counts duplicate acknowledgements and raises AckDuplicated for each. An
// acknowledgement of nothing new in order, while segments are in flight, is a duplicate if it
// was sent alone and leaves the credit unchanged (RFC 5681 §2), or if its bitmap reports another
// segment (RFC 6675 §2), since most acknowledgements travel with data when data go both ways.
// With this row Retransmit detects no losses by arrivals, unless OptionSelective is 1, and PositiveAck acknowledges
// the segments of trains one by one (RFC 5681 §4.2).
type DuplicateAck struct {
	named
	sentNext  *uint32
	grant     *uint64
	option    bool
	selective *bool
	each      *bool

	next   uint32 // expected by the other end
	seen   uint64 // union of its bitmaps since then
	credit uint64 // of the last acknowledgement
	count  int
}

func newDuplicateAck(s *settings) microproto.MicroProtocol {
	return &DuplicateAck{named: s.named, option: option(s, OptionSelective, 0, 0, 1) == 1}
}

// afterRetransmit is the priority in AckArrived after Retransmit, which has released the
// acknowledged segments, and before the congestion window is updated.
const afterRetransmit = microproto.Late / 2

// Attach implements microproto.MicroProtocol.
func (d *DuplicateAck) Attach(b *microproto.Binder) error {
	b.TakesTrains()
	lookupCell(b, cellSentNext, &d.sentNext)
	lookupCell(b, cellGrant, &d.grant)
	lookupCell(b, cellSelective, &d.selective)
	lookupCell(b, cellAckEach, &d.each)
	bind(b, microproto.OpenSession, func(*microproto.Exec, struct{}) {
		*d.selective, *d.each = d.option, true
		d.next, d.credit = *d.sentNext, *d.grant
	})
	microproto.Bind(b, AckArrived, afterRetransmit, d.acked)
	return nil
}

func (d *DuplicateAck) acked(x *microproto.Exec, a Ack) {
	if before(a.Next, d.next) {
		return // older than one that arrived before
	}
	changed := a.Credit != d.credit
	d.credit = a.Credit
	if a.Next != d.next {
		d.next, d.seen = a.Next, a.Seen
		d.count = 0
		return
	}
	news := a.Seen&^d.seen != 0
	d.seen |= a.Seen
	if *d.sentNext == d.next || !news && (changed || !a.Alone) {
		return
	}
	d.count++
	microproto.Raise(x, AckDuplicated, d.count)
}
