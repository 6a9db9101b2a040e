package ctp

import "github.com/p2pdc/p2pdc/microproto"

// A path whose largest datagram has become smaller swallows full segments without a word
// (a black hole, RFC 2923 §2.1; RFC 8899 §4.3), while small ones pass. Retransmit sees
// the first half, and can find out the second.

// stuckCopies is how often a segment has been sent again before it counts as stuck.
const stuckCopies = 4

// stuckBytes: shorter segments say nothing about the largest that pass.
const stuckBytes = 1000

// Stuck tells that the oldest segment is long, and does not come through however often
// it is sent.
func (r *Retransmit) Stuck() bool {
	if r.entries.n == 0 {
		return false
	}
	e := r.entries.front()
	return e.m != nil && !e.sacked && e.length >= stuckBytes && r.copies.Get(e.m) >= stuckCopies
}

// Probe asks the other end for an acknowledgement, in a frame without payload.
func (r *Retransmit) Probe(x *microproto.Exec) {
	r.probing = true
	microproto.Raise(x, AckWanted, Now)
}
