package ctp

import (
	"math"

	"github.com/p2pdc/p2pdc/microproto"
)

// SequencedSegment numbers segments. Numbers have 32 bits and wrap. They are compared as in
// RFC 1982, so two segments in flight must be less than 2³¹ apart.
type SequencedSegment struct {
	named
	first  uint32
	next   *uint32
	number microproto.Attr[uint32]
}

func newSequencedSegment(s *settings) microproto.MicroProtocol {
	return &SequencedSegment{named: s.named, first: option[uint32](s, OptionFirst, 1, 0, math.MaxUint32)}
}

// Attach implements microproto.MicroProtocol.
func (s *SequencedSegment) Attach(b *microproto.Binder) error {
	b.TakesTrains()
	s.number = microproto.SteppedAttr[uint32](b, attrNumber, microproto.StepSegments)
	microproto.Numbers(b, s.number)
	declareCell(b, cellNext, &s.next, s.first)
	microproto.DeclareCell(b, cellSentNext, s.first)
	microproto.DeclareCell(b, cellExpected, s.first)
	microproto.DeclareCell(b, cellArrived, arrivals{})
	b.Common(microproto.CommonCase{
		Send: func(_ *microproto.Exec, m *microproto.Message) bool {
			s.number.Set(m, *s.next)
			return true
		},
		Sent:   func(*microproto.Exec, *microproto.Message) { *s.next++ },
		Expect: microproto.Always,
	})
	bind(b, microproto.SegmentFromUser, func(_ *microproto.Exec, m *microproto.Message) {
		s.number.Set(m, *s.next)
		*s.next += uint32(m.Segments())
	})
	return nil
}
