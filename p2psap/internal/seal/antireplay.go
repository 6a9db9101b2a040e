package seal

import "github.com/p2pdc/p2pdc/microproto"

// AntiReplay drops frames whose number has arrived before or is below the window. Its place is
// below AEAD: it checks the number before a frame is decrypted, and records it only after the
// frame was authenticated.
type AntiReplay struct {
	flow   *Flow
	number microproto.Attr[uint64]
	pass   microproto.Attr[uint64]
}

// NewAntiReplay returns the micro-protocol for the flow of an AEAD.
func NewAntiReplay(f *Flow) *AntiReplay { return &AntiReplay{flow: f} }

// Name implements microproto.MicroProtocol.
func (r *AntiReplay) Name() string { return "AntiReplay" }

// Attach implements microproto.MicroProtocol.
func (r *AntiReplay) Attach(b *microproto.Binder) error {
	b.TakesTrains()
	r.number = microproto.LookupAttr[uint64](b, attrNumber)
	r.pass = microproto.LookupAttr[uint64](b, attrPass)
	microproto.Bind(b, microproto.SegmentFromNet, microproto.Early, r.check)
	microproto.Bind(b, microproto.SegmentFromNet, microproto.Late, r.accept)
	return nil
}

func (r *AntiReplay) check(x *microproto.Exec, m *microproto.Message) {
	n := r.number.Get(m)
	pass, reason := uint64(0), ""
	for i := range m.Segments() {
		fresh, old := r.flow.window.fresh(n + uint64(i))
		switch {
		case fresh:
			pass |= 1 << i
		case old:
			r.flow.counts.Old++
			reason = "old"
		default:
			r.flow.counts.Replayed++
			reason = "replayed"
		}
	}
	if pass == 0 {
		x.Drop(m, reason)
		return
	}
	r.pass.Set(m, pass)
}

func (r *AntiReplay) accept(_ *microproto.Exec, m *microproto.Message) {
	n, pass := r.number.Get(m), r.pass.Get(m)
	for i := uint64(0); pass != 0; i, pass = i+1, pass>>1 {
		if pass&1 != 0 {
			r.flow.window.accept(n + i)
		}
	}
}
