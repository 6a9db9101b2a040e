package ctp

import (
	"github.com/p2pdc/p2pdc/microproto"
	"github.com/p2pdc/p2pdc/trace"
)

// arm sets the time-out of the oldest segment in flight; restart moves an existing one.
func (r *Retransmit) arm(x *microproto.Exec, restart bool) {
	if restart || r.timeoutAt == 0 {
		r.timeoutAt = x.Now().Add(*r.rto)
	}
	r.deadline = r.timeoutAt
	for _, due := range [...]microproto.Instant{r.tail.due, r.selective.due} {
		if due != 0 && due < r.deadline {
			r.deadline = due
		}
	}
	setExpiry(x, &r.expiry, retransmitTimer, r)
}

func (r *Retransmit) expire(x *microproto.Exec, _ *Retransmit) {
	r.running = 0
	if r.inCount == 0 {
		r.timeoutAt = 0
		r.sendProbe(x)
		return
	}
	if r.selective.due != 0 && x.Now() >= r.selective.due && x.Now() < r.timeoutAt {
		r.judgeLosses(x)
		r.selective.most = againForEach
		microproto.Raise(x, WindowMoved, struct{}{})
		r.arm(x, false)
		return
	}
	if r.tail.due != 0 && x.Now() >= r.tail.due && x.Now() < r.timeoutAt {
		r.probeTail(x)
		return
	}
	if x.Now() < r.timeoutAt {
		r.arm(x, false)
		return
	}
	if i, ok := r.oldestMissing(x); ok && x.Held(r.entries.At(i).m) == 0 {
		e := r.entries.At(i)
		r.tail = tail{off: true}
		r.recordLoss(x, r.una+uint32(i), trace.ByTimeout)
		r.beginRound()
		if *r.selective.on && r.bounded() {
			r.loseAll(x)
		}
		microproto.Raise(x, microproto.SegmentTimeout, e.m)
		r.timerWasKept = *r.timerKept // the time-out has ended a recovery
		r.resend(x, e)
		if r.bounded() {
			microproto.Raise(x, WindowMoved, struct{}{})
		}
	}
	r.arm(x, true)
}

// judgeTimeout examines the first acknowledgement of n segments in order after a time-out. If it was caused by a segment
// that was sent once and before the time-out, the segments in flight are only late (Eifel, RFC 3522: the number of the
// copy replaces the timestamp).
func (r *Retransmit) judgeTimeout(x *microproto.Exec, n int, a Ack) {
	if !*r.selective.on || !r.bounded() || !r.tail.off || n == 0 || a.Copy != 0 || before(r.recover, a.Next) {
		return
	}
	if highest, ok := a.highest(); ok && !before(highest, r.recover) {
		return // sent after the time-out: the copies may have arrived before it
	}
	r.recover = r.una
	r.keepAll(x)
	microproto.Raise(x, LossesRefuted, struct{}{})
}

// pathSilent sends the oldest segment again if it has timed out before.
func (r *Retransmit) pathSilent(x *microproto.Exec, _ struct{}) {
	if r.transmitted() > 0 && r.isolate(x, 0) && r.copies.Get(r.entries.Front().m) > 0 {
		r.beginRound()
		r.resend(x, r.entries.Front())
	}
}

// pathMoved lets the time-out pass at once: of the oldest segment in flight, or of the probe for credit. The last
// acknowledgements may be lost, too.
func (r *Retransmit) pathMoved(x *microproto.Exec, _ struct{}) {
	cancel(x, &r.running)
	if r.inCount > 0 {
		r.tail.due, r.selective.due, r.timeoutAt = 0, 0, x.Now()
	}
	r.expire(x, r)
	microproto.Raise(x, AckRequested, Now)
}

// oldestMissing returns the oldest segment that has not arrived, made a message of its own. It returns false if there
// is none, or if the pool has no messages for that; the next time-out then tries again.
func (r *Retransmit) oldestMissing(x *microproto.Exec) (i int, ok bool) {
	return 0, r.transmitted() > 0 && r.isolate(x, 0)
}

// beginRound lets acknowledgements send again all that is outstanding.
func (r *Retransmit) beginRound() {
	r.round++
	r.recover, r.nextRetry = *r.sentNext, r.una
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
	r.timeoutAt = x.Now().Add(r.probeDelay)
	r.arm(x, false)
}
