package ctp

import (
	"math"

	"github.com/p2pdc/p2pdc/microproto"
)

// arm keeps one timer for the oldest segment in flight; anew starts it afresh. A
// timer that fires too early only sets itself again, so that no acknowledgement
// costs a cancellation.
func (r *Retransmit) arm(x *microproto.Exec, anew bool) {
	if anew || r.deadline == 0 {
		r.deadline = x.Now().Add(*r.rto)
	}
	if r.timer != 0 && r.fires > r.deadline {
		x.Cancel(r.timer) // it was set when the time-out was longer
		r.timer = 0
	}
	if r.timer == 0 {
		r.fires = r.deadline
		r.timer = microproto.RaiseAfter(x, retransmitTimer, r.deadline.Sub(x.Now()), r)
	}
}

func (r *Retransmit) expire(x *microproto.Exec, _ *Retransmit) {
	r.timer = 0
	if r.inCount == 0 {
		r.deadline = 0
		r.ask(x)
		return
	}
	if x.Now() < r.deadline {
		r.arm(x, false)
		return
	}
	for i := range r.transmitted() {
		e := r.entries.at(i)
		if e.sacked {
			continue
		}
		if !r.alone(x, i) {
			break // no message for it now; the next time-out tries again
		}
		r.round++
		r.recover, r.nextRetry = *r.sentNext, r.una
		microproto.Raise(x, microproto.SegmentTimeout, e.m)
		r.wasKept = *r.timerKept // a recovery that this has ended starts no timer any more
		r.resend(x, e)
		if *r.limit != math.MaxUint64 {
			r.goOn(x, math.MaxInt)
		}
		break
	}
	r.deadline = 0
	r.arm(x, true)
}

// block: a Send found no credit.
func (r *Retransmit) block(x *microproto.Exec, _ struct{}) {
	if !r.blocked {
		r.blocked, r.blockedAt = true, *r.grant
	}
	if r.inCount == 0 {
		r.arm(x, false)
	}
}

// ask sends a probe when a Send waits for credit, and plans the next.
func (r *Retransmit) ask(x *microproto.Exec) {
	if !r.blocked {
		return
	}
	r.probing = true
	microproto.Raise(x, AckWanted, Now)
	r.probeDelay = min(max(2*r.probeDelay, *r.rto), maxProbeDelay)
	r.deadline = x.Now().Add(r.probeDelay)
	r.arm(x, false)
}
