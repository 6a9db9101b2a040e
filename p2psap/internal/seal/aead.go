package seal

import (
	"fmt"

	"github.com/p2pdc/p2pdc/microproto"
)

// NumberBytes is the length of the header that AEAD adds to a frame, TagBytes of the trailer.
const (
	NumberBytes = 8
	TagBytes    = 16
)

// attrNumber is the attribute of a frame's number. Bit i of attrPass is set while segment i of an
// incoming train passes the checks.
const (
	attrNumber = "aead.number"
	attrPass   = "aead.pass"
)

// AEAD seals outgoing frames and opens incoming ones. It seals a frame in place if it has the
// only reference to it and there is room for the header and the tag. It opens a single frame in
// place, unless that is in memory of the other end. Trains are sealed and opened into other memory.
type AEAD struct {
	flow    *Flow
	out, in Secret
	every   uint64 // numbers under one key
	number  microproto.Attr[uint64]
	pass    microproto.Attr[uint64]

	sealing *key
	opening [2]*key // the newest key in use and the one before it
	trying  *key    // of a phase of which no frame has passed yet

	first     uint64 // number of the first segment of the present message
	passing   uint64 // its segments that pass; see attrPass
	sealPiece func(i int, dst, header, payload []byte)
	openPiece func(i int, dst, header, payload []byte) int
}

// NewAEAD returns the micro-protocol of one end. It seals with keys of out and opens with keys of
// in; these are in and out of the other end.
func NewAEAD(f *Flow, out, in Secret) *AEAD {
	a := &AEAD{flow: f, out: out, in: in, every: KeyFrames}
	a.sealPiece, a.openPiece = a.sealOne, a.openOne
	return a
}

// Name implements microproto.MicroProtocol.
func (a *AEAD) Name() string { return "AEAD" }

// Attach implements microproto.MicroProtocol.
func (a *AEAD) Attach(b *microproto.Binder) error {
	b.TakesTrains()
	a.number = microproto.SteppedAttr[uint64](b, attrNumber, microproto.StepSegments)
	a.pass = microproto.LocalAttr[uint64](b, attrPass)
	microproto.Bind(b, microproto.MessageFromUser, microproto.Late, a.seal)
	microproto.Bind(b, microproto.SegmentFromNet, microproto.Normal, a.open)
	microproto.Bind(b, microproto.SegmentFromNet, microproto.Last, a.deliver)
	return nil
}

// seal transmits a payload, or those of a train, under the next numbers. Every transmission has a
// number of its own, retransmissions included.
func (a *AEAD) seal(x *microproto.Exec, m *microproto.Message) {
	n, count := a.flow.sent, uint64(m.Segments())
	if n > MaxNumbers-count {
		x.Fail(fmt.Errorf("seal: %d frames sent, their numbers are used up: open a new session", n))
		return
	}
	for _, at := range [2]uint64{n, n + count - 1} {
		if err := a.sealingFor(at); err != nil {
			x.Fail(err)
			return
		}
	}
	a.flow.sent += count
	a.number.Set(m, n)
	a.first = n
	var err error
	if to := x.Extend(m, TagBytes); to != nil && count == 1 {
		m.Payload = a.sealing.aead.Seal(to[:0], a.sealing.number(n), m.Payload, m.Header())
		err = x.Transmit(m)
	} else {
		err = x.TransmitWith(m, TagBytes, a.sealPiece)
	}
	if err != nil {
		x.Drop(m, "link")
		return
	}
	x.Done(m)
}

// sealingFor derives the key of a number, if it is not the present one.
func (a *AEAD) sealingFor(n uint64) (err error) {
	if phase := n / a.every; a.sealing == nil || a.sealing.phase != phase {
		a.sealing, err = a.out.newKey(phase)
	}
	return err
}

func (a *AEAD) sealOne(i int, dst, header, payload []byte) {
	n := a.first + uint64(i)
	// It cannot fail: the keys of the first and of the last were made before.
	_ = a.sealingFor(n)
	a.sealing.aead.Seal(dst[:0], a.sealing.number(n), payload, header)
}

// open checks and decrypts a frame, or those of a train that AntiReplay has passed.
func (a *AEAD) open(x *microproto.Exec, m *microproto.Message) {
	a.first = a.number.Get(m)
	passed := 0
	if m.Segments() > 1 || x.ReadOnly() {
		a.passing = a.pass.Get(m)
		passed = x.Rewrite(m, a.openPiece)
		a.pass.Set(m, a.passing)
	} else if n := a.openInto(0, m.Payload, m.Header(), m.Payload); n >= 0 {
		m.Payload = m.Payload[:n]
		passed = 1
	}
	switch {
	case passed < 0:
		a.flow.counts.Dropped += uint64(m.Segments())
		x.Drop(m, "memory")
	case passed == 0:
		x.Drop(m, "forged")
	}
}

func (a *AEAD) openOne(i int, dst, header, payload []byte) int {
	if a.passing&(1<<i) == 0 {
		return -1
	}
	n := a.openInto(i, dst, header, payload)
	if n < 0 {
		a.passing &^= 1 << i
	}
	return n
}

// openInto decrypts segment i into dst and returns its length, -1 if the other end did not seal
// it.
func (a *AEAD) openInto(i int, dst, header, payload []byte) int {
	n := a.first + uint64(i)
	if len(payload) < TagBytes {
		a.flow.counts.Short++
		return -1
	}
	k, err := a.keyOf(n / a.every)
	if err == nil {
		_, err = k.aead.Open(dst[:0], k.number(n), payload, header)
	}
	if err != nil || n >= MaxNumbers {
		a.flow.counts.Forged++
		return -1
	}
	if k == a.trying { // the other end uses this key now
		a.opening[0], a.opening[1] = k, a.opening[0]
		a.trying = nil
	}
	return len(payload) - TagBytes
}

// keyOf returns the key of a phase. A key that is not in use is kept in trying until a frame has
// passed under it, so that a forged number costs a derivation but replaces no key in use.
func (a *AEAD) keyOf(phase uint64) (*key, error) {
	for _, k := range a.opening {
		if k != nil && k.phase == phase {
			return k, nil
		}
	}
	if a.trying == nil || a.trying.phase != phase {
		k, err := a.in.newKey(phase)
		if err != nil {
			return nil, err
		}
		a.trying = k
	}
	return a.trying, nil
}

// deliver passes authenticated frames to the upper composite.
func (a *AEAD) deliver(x *microproto.Exec, m *microproto.Message) { x.Deliver(m) }
