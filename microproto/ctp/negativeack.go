package ctp

import "github.com/p2pdc/p2pdc/microproto"

// NegativeAck is an optional row of the synchronous Ethernet columns. The receiver reports each
// gap as soon as a later segment shows it, and the sender sends the missing segments again at
// once, the first time. Other losses, those of reports included, are detected by
// acknowledgements and time-outs as without this row. Use it on paths that keep the order: on
// others it retransmits segments that are only late.
//
// A congestion window still detects losses by duplicate acknowledgements.
type NegativeAck struct {
	named
	number   microproto.Attr[uint32]
	first    microproto.Attr[uint32]
	count    microproto.Attr[uint8]
	expected *uint32

	next     uint32 // number after the highest that has arrived
	gap      gap    // not yet reported
	reported gap    // reported by the frame that is being processed
}

type gap struct {
	first uint32
	count uint8
}

// maxGap bounds the numbers that one frame reports: a longer gap is a sign of congestion, to
// which the other end must not respond with a burst.
const maxGap = 32

// segmentNamed: the other end reports the segment of that number as missing.
var segmentNamed = microproto.NewEvent[uint32]("ctp.segment.named")

func newNegativeAck(s *settings) microproto.MicroProtocol { return &NegativeAck{named: s.named} }

// Attach implements microproto.MicroProtocol.
func (n *NegativeAck) Attach(b *microproto.Binder) error {
	b.TakesTrains()
	lookupAttr(b, attrNumber, &n.number)
	lookupCell(b, cellExpected, &n.expected)
	wireAttr(b, "negative.first", &n.first)
	wireAttr(b, "negative.count", &n.count)
	bind(b, microproto.OpenSession, func(*microproto.Exec, struct{}) { n.next = *n.expected })
	bind(b, microproto.SegmentToNet, n.nameGap)
	// Before PositiveAck, which ends acknowledgements without payload. The missing segments are
	// sent after the acknowledgement in the same frame was processed.
	microproto.Bind(b, microproto.SegmentFromNet, microproto.Early-1, n.receive)
	microproto.Bind(b, AckArrived, afterRetransmit, n.resend)
	// After ReliableFIFO: a segment that it drops has not arrived.
	microproto.Bind(b, microproto.SegmentFromNet, microproto.Late, n.arrived)
	microproto.Bind(b, segmentSplit, microproto.Late, n.arrived)
	return nil
}

// arrived notes the gap before a segment that was stored. ReliableFIFO requests an
// acknowledgement of a segment that is out of order; it is sent after this chain and reports
// the gap.
func (n *NegativeAck) arrived(_ *microproto.Exec, m *microproto.Message) {
	number := n.number.Get(m)
	if before(number, n.next) {
		return
	}
	if missing := number - n.next; missing > 0 {
		n.gap = gap{n.next, uint8(min(missing, maxGap))}
	}
	n.next = number + uint32(m.Segments())
}

// nameGap writes a gap that was not reported yet to the next outgoing segment.
func (n *NegativeAck) nameGap(_ *microproto.Exec, m *microproto.Message) {
	n.first.Set(m, n.gap.first)
	n.count.Set(m, n.gap.count)
	n.gap = gap{}
}

func (n *NegativeAck) receive(x *microproto.Exec, m *microproto.Message) {
	n.reported = gap{n.first.Get(m), n.count.Get(m)}
	if n.reported.count > maxGap {
		x.Drop(m, "malformed acknowledgement")
	}
}

func (n *NegativeAck) resend(x *microproto.Exec, _ Ack) {
	for i := range uint32(n.reported.count) {
		microproto.Raise(x, segmentNamed, n.reported.first+i)
	}
	n.reported = gap{}
}
