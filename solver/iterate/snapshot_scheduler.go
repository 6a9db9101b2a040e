package iterate

import (
	"math"
	"time"
)

// snapshotScheduler determines at the root when the next snapshot begins. Estimates trigger the first one.
// They may be too low or too high, because a peer knows old values of its neighbours. After that the exact
// residuals of the snapshots predict the end.
type snapshotScheduler struct {
	estimates    forecast
	exact        forecast
	roundTrip    time.Duration // from the root to the farthest peer and back
	newestRound  time.Duration // the same, of the newest estimate
	begunAt      time.Duration // of the newest snapshot
	rejectedAt   time.Duration
	nextAt       time.Duration // no snapshot begins earlier
	backOff      time.Duration // after the next snapshot that does not end the run, at most
	progressed   bool          // another peer has reported since the newest snapshot began
	sweepAtBegin Iteration     // sweep of the root when it began
}

const (
	// retryFraction is the part of the predicted remaining time that passes before the next snapshot:
	// the fall of residuals often accelerates towards the end.
	retryFraction = 0.5
	// maxBackOffRounds bounds, in round trips, the back-off after a snapshot that the estimates
	// triggered too early.
	maxBackOffRounds = 32
	// maxPauseRounds bounds the time after a rejected snapshot in round trips of the newest estimate, which a path
	// that has become faster shows: the time of the snapshot, of which a round trip is a part, and the predicted end
	// come from its slow past.
	maxPauseRounds = 2 * maxBackOffRounds
)

// recordEstimate adds an estimate of the level and the round-trip time of the tree.
func (s *snapshotScheduler) recordEstimate(now time.Duration, level float64, round time.Duration) {
	if !s.estimates.known || level != s.estimates.level {
		s.estimates.record(now, level, anchorDrop)
	}
	s.roundTrip, s.newestRound = max(s.roundTrip, round), round
}

// earliest returns the time before which no snapshot begins.
func (s *snapshotScheduler) earliest() time.Duration {
	if s.newestRound == 0 {
		return s.nextAt
	}
	return min(s.nextAt, s.rejectedAt+maxPauseRounds*s.newestRound)
}

// remaining returns the seconds until the tolerance is expected to be met, +∞ if unknown.
func (s *snapshotScheduler) remaining(now time.Duration) float64 {
	at, known := s.exact.predict()
	if s.exact.slope() == 0 {
		at, known = s.estimates.predict()
	}
	if !known {
		return math.Inf(1)
	}
	return max(0, at-now).Seconds()
}

// begin records that a snapshot begins; sweep is the newest of the root.
func (s *snapshotScheduler) begin(now time.Duration, sweep Iteration) {
	s.begunAt, s.sweepAtBegin, s.progressed = now, sweep, false
}

// changed reports whether the newest snapshot began before a peer's newest sweep; sweep is the newest of the root.
func (s *snapshotScheduler) changed(sweep Iteration) bool {
	return s.progressed || sweep != s.sweepAtBegin
}

// due reports whether a snapshot that begins now may end the run; sweep is the newest of the root.
func (s *snapshotScheduler) due(now time.Duration, sweep Iteration) bool {
	at, known := s.estimates.predict()
	return known && s.changed(sweep) && now >= s.earliest() && now+s.roundTrip >= at
}

// rejected records the level of a snapshot that did not end the run.
func (s *snapshotScheduler) rejected(now time.Duration, level float64, void bool) {
	s.roundTrip, s.rejectedAt = now-s.begunAt, now
	if void {
		s.nextAt = now + s.roundTrip
		return // a void snapshot has no residual
	}
	s.exact.record(s.begunAt, level, 0)
	s.nextAt = now + s.backOff
	if at, known := s.exact.predict(); known {
		s.nextAt = min(s.nextAt, s.begunAt+time.Duration(retryFraction*float64(at-s.begunAt)))
		if s.nextAt <= now && s.backOff > 0 {
			return // the end is near: no back-off
		}
	}
	s.backOff = min(max(2*s.backOff, s.roundTrip), maxBackOffRounds*s.roundTrip)
}

// samplingInterval determines how often a peer measures for its estimate.
type samplingInterval struct {
	endKnown    bool
	expectedEnd time.Duration // when the tolerance is met, as predicted by the root
	at          time.Duration // of the last measurement
	sweeps      Iteration
	period      time.Duration // of a sweep
}

// receive sets the predicted seconds until the tolerance is met. Invalid values, +∞ among them, mean
// unknown.
func (p *samplingInterval) receive(now time.Duration, left float64) {
	p.endKnown = left >= 0 && left < maxForecast.Seconds()
	p.expectedEnd = now
	if p.endKnown {
		p.expectedEnd = now + time.Duration(left*float64(time.Second))
	}
}

// remaining returns the predicted seconds until the tolerance is met, +∞ if unknown.
func (p *samplingInterval) remaining(now time.Duration) float64 {
	if !p.endKnown {
		return math.Inf(1)
	}
	return max(0, p.expectedEnd-now).Seconds()
}

// next returns an upper bound of the sweep that measures next. It bounds the interval that the peer's own
// residuals suggest, which may be wrong. Measuring more often than twice a round trip has no benefit until the
// end is near. Nor is it necessary to measure more often than eight times while the age of the run grows by
// the factor e.
func (p *samplingInterval) next(now time.Duration, k Iteration, round time.Duration) Iteration {
	if k > p.sweeps {
		p.period = (now - p.at) / time.Duration(k-p.sweeps)
	}
	p.at, p.sweeps = now, k
	if round == 0 || p.period <= 0 {
		return 2*k + 1
	}
	gap := max(Iteration(round/2/p.period), k/8)
	if p.endKnown {
		gap = min(gap, Iteration(max(round/4, (p.expectedEnd-now)/2)/p.period))
	}
	return k + max(1, gap)
}
