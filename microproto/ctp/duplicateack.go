package ctp

import "github.com/p2pdc/p2pdc/microproto"

// DuplicateAck counts duplicate acknowledgements and raises AckDuplicated for each.
// An acknowledgement that moves nothing while segments are in flight is one if it
// came alone and left the credit as it was (RFC 5681 §2), or if its bitmap tells of
// a segment that has come since the one before (RFC 6675 §2), for where data go both
// ways most acknowledgements travel with data. Retransmit does not judge the bitmap
// while this row is there; and the other end's counts what it acknowledges in segments,
// also where they come in trains (RFC 5681 §4.2).
type DuplicateAck struct {
	sentNext *uint32
	grant    *uint64
	byCount  *bool
	each     *bool

	next   uint32 // expected by the other end
	seen   uint64 // all that its bitmaps told since then
	credit uint64 // in the last acknowledgement
	count  int
}

func newDuplicateAck(microproto.Options) (microproto.MicroProtocol, error) {
	return &DuplicateAck{}, nil
}

// Name implements microproto.MicroProtocol.
func (d *DuplicateAck) Name() string { return "DuplicateAck" }

// afterRetransmit is the place in AckArrived behind Retransmit, where what was
// acknowledged has been taken out of flight, and before the congestion window moves.
const afterRetransmit = microproto.Late / 2

// Attach implements microproto.MicroProtocol.
func (d *DuplicateAck) Attach(b *microproto.Binder) error {
	b.TakesTrains()
	d.sentNext = microproto.LookupCell[uint32](b, cellSentNext)
	d.grant = microproto.LookupCell[uint64](b, cellGrant)
	d.byCount = microproto.LookupCell[bool](b, cellByCount)
	d.each = microproto.LookupCell[bool](b, cellAckEach)
	microproto.Bind(b, microproto.OpenSession, microproto.Normal, func(*microproto.Exec, struct{}) {
		*d.byCount, *d.each = true, true
		d.next, d.credit = *d.sentNext, *d.grant
	})
	microproto.Bind(b, AckArrived, afterRetransmit, d.acked)
	return nil
}

func (d *DuplicateAck) acked(x *microproto.Exec, a Ack) {
	if before(a.Next, d.next) {
		return // older than one that came before
	}
	changed := a.Credit != d.credit
	d.credit = a.Credit
	if a.Next != d.next {
		d.next, d.seen, d.count = a.Next, a.Seen, 0
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
