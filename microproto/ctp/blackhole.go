package ctp

import "github.com/p2pdc/p2pdc/microproto"

// A path whose MTU has become smaller loses full segments silently (a black hole, RFC 2923
// §2.1; RFC 8899 §4.3), while short ones arrive. Retransmit detects the former and can probe
// for the latter.

const (
	stuckTransmissions = 4    // transmissions after the first, before a segment counts as stuck
	stuckBytes         = 1000 // a shorter segment does not indicate a black hole
)

// Stuck implements microproto.Prober: it reports whether the oldest segment is long and was
// sent several times without an acknowledgement.
func (r *Retransmit) Stuck() bool {
	if r.entries.Len() == 0 {
		return false
	}
	e := r.entries.Front()
	return e.m != nil && e.length >= stuckBytes && r.copies.Get(e.m) >= stuckTransmissions
}

// Probe implements microproto.Prober.
func (r *Retransmit) Probe(x *microproto.Exec) {
	r.probing = true
	microproto.Raise(x, AckRequested, Now)
}
