package ctp

import "github.com/p2pdc/p2pdc/microproto"

// SequencedSegment numbers segments. Numbers have 32 bits and wrap. They are compared as in
// RFC 1982, so two segments in flight must be less than 2³¹ apart.
type SequencedSegment struct {
	first  uint32
	next   *uint32
	number microproto.Attr[uint32]
}

func newSequencedSegment(o microproto.Options) (microproto.MicroProtocol, error) {
	first, err := option(o, OptionFirst, 1, 0, 1<<32-1)
	return &SequencedSegment{first: uint32(first)}, err
}

// Name implements microproto.MicroProtocol.
func (s *SequencedSegment) Name() string { return "SequencedSegment" }

// Attach implements microproto.MicroProtocol.
func (s *SequencedSegment) Attach(b *microproto.Binder) error {
	b.TakesTrains()
	s.number = microproto.SteppedAttr[uint32](b, attrNumber, microproto.StepSegments)
	s.next = microproto.DeclareCell(b, cellNext, s.first)
	microproto.DeclareCell(b, cellSentNext, s.first)
	microproto.DeclareCell(b, cellExpected, s.first)
	microproto.DeclareCell(b, cellSeen, uint64(0))
	microproto.Bind(b, microproto.SegmentFromUser, microproto.Normal, func(_ *microproto.Exec, m *microproto.Message) {
		s.number.Set(m, *s.next)
		*s.next += uint32(m.Segments())
	})
	return nil
}
