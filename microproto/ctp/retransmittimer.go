package ctp

import (
	"math"

	"github.com/p2pdc/p2pdc/microproto"
)

// arm sets the deadline of the oldest segment in flight; restart moves an existing one.
func (r *Retransmit) arm(x *microproto.Exec, restart bool) {
	if restart || r.deadline == 0 {
		r.deadline = x.Now().Add(*r.rto)
	}
	setExpiry(x, &r.expiry, retransmitTimer, r)
}

func (r *Retransmit) expire(x *microproto.Exec, _ *Retransmit) {
	r.running = 0
	if r.inCount == 0 {
		r.deadline = 0
		r.sendProbe(x)
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
		if !r.isolate(x, i) {
			break // the pool is empty; the next time-out tries again
		}
		r.round++
		r.recover, r.nextRetry = *r.sentNext, r.una
		microproto.Raise(x, microproto.SegmentTimeout, e.m)
		r.timerWasKept = *r.timerKept // the time-out has ended a recovery
		r.resend(x, e)
		if *r.limit != math.MaxUint64 {
			r.resumeRecovery(x, math.MaxInt)
		}
		break
	}
	r.deadline = 0
	r.arm(x, true)
}

func (r *Retransmit) block(x *microproto.Exec, _ struct{}) {
	if !r.blocked {
		r.blocked, r.blockedAt = true, *r.grant
	}
	if r.inCount == 0 {
		r.arm(x, false)
	}
}

// sendProbe sends a probe if a Send waits for credit, and sets the timer for the next.
func (r *Retransmit) sendProbe(x *microproto.Exec) {
	if !r.blocked {
		return
	}
	r.probing = true
	microproto.Raise(x, AckRequested, Now)
	r.probeDelay = min(max(2*r.probeDelay, *r.rto), maxProbeDelay)
	r.deadline = x.Now().Add(r.probeDelay)
	r.arm(x, false)
}
