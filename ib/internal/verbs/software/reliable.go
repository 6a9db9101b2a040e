package software

import (
	"time"

	"github.com/p2pdc/p2pdc/ib/internal/verbs"
)

// handleAck handles an acknowledgement on an RC pair (IBTA 9.7.5). mu is held.
func (q *pair) handleAck(a ack) {
	r := &q.requests
	if q.currentState() != verbs.ReadyToSend {
		return
	}
	upTo := a.psn
	if a.kind == positiveAck {
		upTo = (upTo + 1) & psnMask
	}
	gain, sent := psnDistance(upTo, r.unacknowledged), psnDistance(r.highest, r.unacknowledged)
	if gain < 0 || gain > sent || a.kind != positiveAck && gain == sent {
		return // for packets never sent, or acknowledged before
	}
	if gain > 0 {
		r.acknowledge(upTo)
	}
	switch a.kind {
	case sequenceNAK:
		if r.retries++; r.retries > q.attr.Retries {
			q.failWith(verbs.StatusRetriesExceeded)
			return
		}
		r.seek(a.psn)
	case notReadyNAK:
		r.retries = 0 // the other end is alive
		if r.rnr++; q.attr.RNRRetries != 7 && r.rnr > q.attr.RNRRetries {
			q.failWith(verbs.StatusRNRExceeded)
			return
		}
		r.rnr = min(r.rnr, 8)
		r.seek(a.psn)
		r.setTimer(waitReady, rnrTime(a.timer))
	case errorNAK:
		q.failWith(a.status)
	}
}

// acknowledge completes the requests all of whose packets are before a PSN.
func (r *requester) acknowledge(upTo uint32) {
	r.unacknowledged = upTo
	r.retries, r.rnr = 0, 0
	for r.done < r.numbered {
		s := r.at(r.done)
		if psnDistance(upTo, s.first) < s.packets {
			break
		}
		if r.sent == r.done { // it was being sent again
			r.sent++
			r.packets, r.repositioned = 0, true
		}
		r.finish(verbs.StatusOK)
	}
	if r.sent == r.done && r.sent < r.numbered && psnDistance(upTo, r.at(r.sent).first) > r.packets {
		r.packets, r.repositioned = psnDistance(upTo, r.at(r.sent).first), true
	}
	if r.waitingFor == waitAck {
		r.stopTimer() // updateTimer sets it again
	}
}

// seek goes back to an unacknowledged packet.
func (r *requester) seek(psn uint32) {
	r.repositioned = true
	r.pair.fabric.resent.Add(1)
	for k := r.done; k < r.numbered; k++ {
		if s := r.at(k); psnDistance(psn, s.first) < s.packets {
			r.sent, r.packets = k, max(psnDistance(psn, s.first), 0)
			return
		}
	}
	r.sent, r.packets = r.numbered, 0
}

// updateTimer sets the timer while packets are unacknowledged.
func (r *requester) updateTimer() {
	q := r.pair
	switch {
	case q.transport != verbs.RC || r.waitingFor == waitReady:
	case r.unacknowledged == r.highest, q.currentState() != verbs.ReadyToSend:
		r.stopTimer()
	case r.waitingFor == waitNothing && q.attr.Timeout != 0:
		r.setTimer(waitAck, ackTimeout(q.attr.Timeout))
	}
}

// receiveAck handles a delayed acknowledgement.
func (q *pair) receiveAck(a ack) {
	q.mu.Lock()
	q.handleAck(a)
	q.transmitPending()
	q.mu.Unlock()
	q.fabric.processFailures()
}

// timerFired handles the pair's timer, unless it was stopped or set again while it fired.
func (q *pair) timerFired() {
	q.mu.Lock()
	if r := &q.requests; r.waitingFor != waitNothing && !time.Now().Before(r.due) {
		q.expire()
	}
	q.mu.Unlock()
	q.fabric.processFailures()
}

func (q *pair) expire() {
	r := &q.requests
	w := r.waitingFor
	r.waitingFor = waitNothing
	if w == waitAck {
		if r.retries++; r.retries > q.attr.Retries {
			q.failWith(verbs.StatusRetriesExceeded)
			return
		}
		r.seek(r.unacknowledged)
	}
	q.transmitPending()
}

// ackTimeout returns the time-out of a code (IBTA 9.7.6.1.3).
func ackTimeout(code uint8) time.Duration { return 4096 * time.Nanosecond << code }

// rnrTime returns the delay of a code in IBTA table 45, whose unit is 10 µs.
func rnrTime(code uint8) time.Duration {
	units := [32]time.Duration{
		65536, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192,
		256, 384, 512, 768, 1024, 1536, 2048, 3072, 4096, 6144, 8192, 12288, 16384, 24576, 32768, 49152,
	}
	return units[code&31] * 10 * time.Microsecond
}
