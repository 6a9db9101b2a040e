package ctp

import "github.com/p2pdc/p2pdc/microproto"

// tail is the state of tail-loss probes.
type tail struct {
	due    microproto.Instant // when a probe is due, 0: never
	probed bool               // a probe is not yet judged
	number uint32             // of the segment that it repeated
	at     microproto.Instant // when
}

// planProbe sets the time of a probe after a new segment or an acknowledgement of a segment: if
// all that was to be sent is in flight, and neither a recovery nor another probe is under way. The
// time-out begins with the last transmission (RFC 9002 §6.2.1).
func (r *Retransmit) planProbe(x *microproto.Exec) {
	r.tail.due = 0
	sent := r.transmitted()
	if *r.probeTimeout > 0 && sent > 0 && sent == r.entries.n && !r.tail.probed && !*r.timerKept &&
		!before(r.una, r.recover) {
		r.tail.due = max(x.Now(), r.sentAt.Add(*r.probeTimeout))
	}
}

// probeTail sends the oldest missing segment again. The time-out starts afresh (RFC 8985 §7.3).
func (r *Retransmit) probeTail(x *microproto.Exec) {
	r.tail.due = 0
	if i, ok := r.oldestMissing(x); ok {
		r.tail = tail{probed: true, number: r.una + uint32(i), at: x.Now()}
		r.resend(x, r.entries.at(i))
	}
	r.arm(x, true)
}

// judgeProbe examines an acknowledgement of n segments and of those in seen. If it arrives much
// sooner after the probe than a round trip, the segment itself had arrived.
func (r *Retransmit) judgeProbe(x *microproto.Exec, n int, seen uint64) {
	if !r.tail.probed {
		return
	}
	i := int(int32(r.tail.number - r.una))
	if i >= n && (i-n-1 < 0 || i-n-1 > 63 || seen>>(i-n-1)&1 == 0) {
		return
	}
	lost := i >= 0 && x.Now().Sub(r.tail.at) >= *r.smoothed*3/4
	if r.tail = (tail{}); lost {
		microproto.Raise(x, microproto.SegmentLost, r.entries.at(i).m)
		microproto.Raise(x, TailLost, struct{}{})
	}
}
