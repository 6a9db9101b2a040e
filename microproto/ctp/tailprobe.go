package ctp

import (
	"github.com/p2pdc/p2pdc/microproto"
	"github.com/p2pdc/p2pdc/trace"
)

// tail is the state of tail-loss probes.
type tail struct {
	due    microproto.Instant // when a probe is due, 0: never
	off    bool               // a time-out has passed, and nothing has been acknowledged since then
	probes int                // probes that are not yet judged
	number uint32             // of the segment that they repeated
	at     microproto.Instant // when the first was sent, 0: a micro-protocol holds it
}

// planProbe sets the time of a probe after a new segment or an acknowledgement of a segment. The time-out
// begins with the last transmission (RFC 9002 §6.2.1). There is one probe, if all that was to be sent is
// in flight and no recovery is under way. Selective recovery sends more, each after twice the time of
// the one before, until the retransmission time-out: a lost retransmission has no later segment either.
// After that time-out only its back-off counts.
func (r *Retransmit) planProbe(x *microproto.Exec) {
	r.tail.due = 0
	sent := r.transmitted()
	single := r.tail.probes == 0 && sent == r.entries.Len() && !*r.timerKept && !before(r.una, r.recover)
	if *r.probeTimeout > 0 && sent > 0 && (single || *r.selective.on) && !r.tail.off {
		r.tail.due = max(x.Now(), r.sentAt.Add(*r.probeTimeout<<min(r.tail.probes, maxProbes)))
	}
}

// maxProbes bounds the doubling of the time between probes.
const maxProbes = 16

// probeTail sends the oldest missing segment again. With the first probe the time-out starts afresh (RFC 8985 §7.3).
func (r *Retransmit) probeTail(x *microproto.Exec) {
	r.tail.due = 0
	probes := r.tail.probes
	if i, ok := r.oldestMissing(x); ok && x.Held(r.entries.At(i).m) == 0 {
		if number := r.una + uint32(i); probes == 0 || number != r.tail.number {
			r.tail.number, r.tail.at = number, 0
		}
		r.tail.probes++
		r.resend(x, r.entries.At(i))
	}
	r.arm(x, probes == 0)
}

// judgeProbe examines an acknowledgement of n segments in order. If it arrives much
// sooner after the first probe than a round trip, the segment itself had arrived.
func (r *Retransmit) judgeProbe(x *microproto.Exec, n int, a Ack) {
	if r.tail.probes == 0 {
		return
	}
	i := int(int32(r.tail.number - r.una))
	if i >= n && !a.has(r.tail.number) {
		return
	}
	lost := i >= 0 && r.tail.at != 0 && x.Now().Sub(r.tail.at) >= *r.smoothed*3/4
	if r.tail = (tail{}); lost {
		r.recordLoss(x, r.una+uint32(i), trace.ByProbe)
		microproto.Raise(x, microproto.SegmentLost, r.entries.At(i).m)
		r.reduce()
		microproto.Raise(x, TailLost, struct{}{})
	}
}
