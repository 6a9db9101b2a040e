package ctp

import "github.com/p2pdc/p2pdc/microproto"

// NegativeAck is an optional row of the reliable Ethernet columns. The receiver names
// each gap as soon as a later segment shows it, and the sender sends what was named
// again at once, the first time; whatever else is lost, names included, is found out by
// acknowledgements and time-outs as without it. It belongs on paths that keep their
// order: where segments overtake one another it sends again what was only late.
//
// A congestion window sees the loss as before, by duplicate acknowledgements.
type NegativeAck struct {
	number   microproto.Attr[uint32]
	first    microproto.Attr[uint32]
	count    microproto.Attr[uint8]
	expected *uint32

	next uint32 // number behind the highest that has come
	gap  gap    // not yet named
	told gap    // named by the frame that is being taken
}

// gap is a run of numbers that are missing.
type gap struct {
	first uint32
	count uint8
}

// maxGap bounds the numbers that one frame names: a longer gap is congestion, and the
// other end should not answer it with a burst.
const maxGap = 32

// segmentNamed: the other end misses the segment of that number.
var segmentNamed = microproto.NewEvent[uint32]("ctp.segment.named")

func newNegativeAck(microproto.Options) (microproto.MicroProtocol, error) { return &NegativeAck{}, nil }

// Name implements microproto.MicroProtocol.
func (n *NegativeAck) Name() string { return "NegativeAck" }

// Attach implements microproto.MicroProtocol.
func (n *NegativeAck) Attach(b *microproto.Binder) error {
	b.TakesTrains()
	n.number = microproto.LookupAttr[uint32](b, attrNumber)
	n.expected = microproto.LookupCell[uint32](b, cellExpected)
	n.first = microproto.WireAttr[uint32](b, "negative.first")
	n.count = microproto.WireAttr[uint8](b, "negative.count")
	microproto.Bind(b, microproto.OpenSession, microproto.Normal, func(*microproto.Exec, struct{}) { n.next = *n.expected })
	microproto.Bind(b, microproto.SegmentToNet, microproto.Normal, n.name)
	// Before PositiveAck, which ends acknowledgements that came alone; resent is what
	// was named after the acknowledgement that names it has been taken.
	microproto.Bind(b, microproto.SegmentFromNet, microproto.Early-1, n.take)
	microproto.Bind(b, AckArrived, afterRetransmit, n.resend)
	// Behind ReliableFIFO: what it drops has not come.
	microproto.Bind(b, microproto.SegmentFromNet, microproto.Late, n.arrived)
	microproto.Bind(b, segmentApart, microproto.Late, n.arrived)
	return nil
}

// arrived looks whether a segment that was stored shows a gap before it. That it came
// out of order makes ReliableFIFO ask for an acknowledgement, which goes after this
// chain and names the gap.
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

// name puts a gap that was not named yet into whatever leaves.
func (n *NegativeAck) name(_ *microproto.Exec, m *microproto.Message) {
	n.first.Set(m, n.gap.first)
	n.count.Set(m, n.gap.count)
	n.gap = gap{}
}

func (n *NegativeAck) take(x *microproto.Exec, m *microproto.Message) {
	n.told = gap{n.first.Get(m), n.count.Get(m)}
	if n.told.count > maxGap {
		x.Drop(m, "malformed acknowledgement")
	}
}

func (n *NegativeAck) resend(x *microproto.Exec, _ Ack) {
	for i := range uint32(n.told.count) {
		microproto.Raise(x, segmentNamed, n.told.first+i)
	}
	n.told = gap{}
}
