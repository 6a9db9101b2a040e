package seal

import (
	"fmt"

	"github.com/p2pdc/p2pdc/microproto"
)

// NumberBytes, TagBytes: what AEAD adds to a frame in front and behind.
const (
	NumberBytes = 8
	TagBytes    = 16
)

// attrNumber is the attribute that holds a frame's number.
const attrNumber = "aead.number"

// AEAD seals what goes down and opens what comes up. A frame of the composite above
// that nobody else holds, with room for the header in front and for the tag behind,
// is sealed where it lies; anything else is copied. What comes up is opened in the
// frame that brought it.
type AEAD struct {
	flow    *Flow
	out, in Secret
	every   uint64 // numbers under one key
	number  microproto.Attr[uint64]

	sealing *key
	opening [2]*key // the newest in use and the one before it
	trying  *key    // of a phase from which nothing has passed yet
	copied  []byte  // a sealed payload that had no room where it lay
}

// NewAEAD makes the micro-protocol of one end: it seals with keys of out and opens
// with keys of in, which are the other end's in and out.
func NewAEAD(f *Flow, out, in Secret) *AEAD {
	return &AEAD{flow: f, out: out, in: in, every: KeyFrames}
}

// Name implements microproto.MicroProtocol.
func (a *AEAD) Name() string { return "AEAD" }

// Attach implements microproto.MicroProtocol.
func (a *AEAD) Attach(b *microproto.Binder) error {
	a.number = microproto.WireAttr[uint64](b, attrNumber)
	microproto.Bind(b, microproto.MessageFromUser, microproto.Late, a.seal)
	microproto.Bind(b, microproto.SegmentFromNet, microproto.Normal, a.open)
	microproto.Bind(b, microproto.SegmentFromNet, microproto.Last, a.deliver)
	return nil
}

// seal sends a payload under the next number: every transmission has its own, also
// that of a segment which was sent before.
func (a *AEAD) seal(x *microproto.Exec, m *microproto.Message) {
	n := a.flow.sent
	if n >= MaxNumbers {
		x.Fail(fmt.Errorf("seal: %d frames sent, their numbers are used up: open a new session", n))
		return
	}
	if phase := n / a.every; a.sealing == nil || a.sealing.phase != phase {
		k, err := a.out.newKey(phase)
		if err != nil {
			x.Fail(err)
			return
		}
		a.sealing = k
	}
	a.flow.sent++
	a.number.Set(m, n)
	to := x.Behind(m, TagBytes)
	inPlace := to != nil
	if !inPlace {
		to = a.copied
	}
	m.Payload = a.sealing.aead.Seal(to[:0], a.sealing.number(n), m.Payload, m.Header())
	if !inPlace {
		a.copied = m.Payload
	}
	if err := x.Transmit(m); err != nil {
		x.Drop(m, "link")
		return
	}
	x.Done(m)
}

// open checks and decrypts a frame.
func (a *AEAD) open(x *microproto.Exec, m *microproto.Message) {
	if len(m.Payload) < TagBytes {
		a.flow.counts.Short++
		x.Drop(m, "short")
		return
	}
	n := a.number.Get(m)
	k, err := a.keyOf(n / a.every)
	if err == nil {
		m.Payload, err = k.aead.Open(m.Payload[:0], k.number(n), m.Payload, m.Header())
	}
	if err != nil || n >= MaxNumbers {
		a.flow.counts.Forged++
		x.Drop(m, "forged")
		return
	}
	if k == a.trying { // the other end has gone on to it
		a.opening[0], a.opening[1], a.trying = k, a.opening[0], nil
	}
}

// keyOf finds the key of a phase. One that is not in use is kept apart until a frame
// has passed under it, so that forged numbers cost a derivation and displace nothing.
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

// deliver hands what has passed to the composite above.
func (a *AEAD) deliver(x *microproto.Exec, m *microproto.Message) { x.Deliver(m) }
