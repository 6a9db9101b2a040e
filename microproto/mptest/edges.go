package mptest

import "github.com/p2pdc/p2pdc/microproto"

// Top returns a micro-protocol for the top of a composite under test. It makes a segment of every
// message from the user (a train of a train), forwards it, and delivers every incoming segment.
func Top() microproto.MicroProtocol { return top{} }

// Bottom returns a micro-protocol for the bottom of a composite under test. It transmits every
// segment that reaches SegmentToNet, and then ends it unless keep(m) reports that another
// micro-protocol retains it. keep may be nil.
func Bottom(keep func(m *microproto.Message) bool) microproto.MicroProtocol { return bottom{keep} }

type top struct{}

func (top) Name() string { return "mptest.top" }

func (top) Attach(b *microproto.Binder) error {
	b.TakesTrains()
	microproto.Bind(b, microproto.MessageFromUser, microproto.Normal, func(x *microproto.Exec, m *microproto.Message) {
		s, err := x.NewMessage(microproto.Down)
		if err != nil {
			x.Drop(m, "pool")
			return
		}
		x.Share(s, m, m.Payload)
		if m.Segments() > 1 {
			x.FormTrain(s, m.Unit())
		}
		x.Done(m)
		if microproto.Raise(x, microproto.SegmentFromUser, s) {
			x.Forward(s)
		}
	})
	microproto.Bind(b, microproto.SegmentToUser, microproto.Last, func(x *microproto.Exec, m *microproto.Message) {
		x.Deliver(m)
	})
	return nil
}

type bottom struct {
	keep func(m *microproto.Message) bool
}

func (bottom) Name() string { return "mptest.bottom" }

func (p bottom) Attach(b *microproto.Binder) error {
	b.TakesTrains()
	microproto.Bind(b, microproto.SegmentToNet, microproto.Last, func(x *microproto.Exec, m *microproto.Message) {
		err := x.Transmit(m)
		switch {
		case p.keep != nil && p.keep(m):
		case err != nil:
			x.Drop(m, "transmit")
		default:
			x.Done(m)
		}
	})
	return nil
}
