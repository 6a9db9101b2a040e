package seal

import "github.com/p2pdc/p2pdc/microproto"

// AntiReplay drops frames whose number has come before, or is too old to tell. It
// stands below AEAD: it looks before a frame is decrypted, and remembers the number
// only after the frame has turned out to be genuine.
type AntiReplay struct {
	flow   *Flow
	number microproto.Attr[uint64]
}

// NewAntiReplay makes the micro-protocol for the flow of an AEAD.
func NewAntiReplay(f *Flow) *AntiReplay { return &AntiReplay{flow: f} }

// Name implements microproto.MicroProtocol.
func (r *AntiReplay) Name() string { return "AntiReplay" }

// Attach implements microproto.MicroProtocol.
func (r *AntiReplay) Attach(b *microproto.Binder) (err error) {
	if r.number, err = microproto.LookupAttr[uint64](b, attrNumber); err != nil {
		return err
	}
	microproto.Bind(b, microproto.SegmentFromNet, microproto.Early, r.check)
	microproto.Bind(b, microproto.SegmentFromNet, microproto.Late, r.accept)
	return nil
}

func (r *AntiReplay) check(x *microproto.Exec, m *microproto.Message) {
	fresh, old := r.flow.window.fresh(r.number.Get(m))
	switch {
	case fresh:
		return
	case old:
		r.flow.counts.Old++
		x.Drop(m, "old")
	default:
		r.flow.counts.Replayed++
		x.Drop(m, "replayed")
	}
}

func (r *AntiReplay) accept(_ *microproto.Exec, m *microproto.Message) {
	r.flow.window.accept(r.number.Get(m))
}
