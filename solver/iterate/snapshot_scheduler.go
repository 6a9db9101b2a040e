package iterate

import (
	"math"
	"time"
)

// snapshotScheduler says at the root when the next snapshot is worth while. Guesses tell when the
// first one is; they may be wrong either way, since a peer knows its neighbours by old
// values. After that the residuals of the snapshots themselves tell how long it takes.
type snapshotScheduler struct {
	estimates    forecast
	exact        forecast
	roundTrip    time.Duration // down the tree and up again
	begunAt      time.Duration
	nextAt       time.Duration // no snapshot before
	backOff      time.Duration // at most after the next one that fails
	progressed   bool          // somebody has done something since the last one began
	sweepAtBegin Iteration     // the root's, then
}

const (
	// shotAhead is how much of the way to where the exact residuals point to goes by
	// before the next snapshot: residuals fall faster towards the end as often as not.
	retryFraction = 0.5
	// restRounds bounds the rest after a snapshot that guesses misled to.
	maxBackOffRounds = 32
)

// guessed takes a guess of the level, and how long a round over the tree takes.
func (s *snapshotScheduler) recordEstimate(now time.Duration, level float64, round time.Duration) {
	if !s.estimates.known || level != s.estimates.level {
		s.estimates.record(now, level, anchorDrop)
	}
	s.roundTrip = max(s.roundTrip, round)
}

// left is the time in seconds until the tolerance may be met, +∞ if that cannot be told.
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

func (s *snapshotScheduler) begin(now time.Duration, sweep Iteration) {
	s.begunAt, s.sweepAtBegin, s.progressed = now, sweep, false
}

// promising tells that a snapshot begun now may be the last; sweep is the root's newest.
func (s *snapshotScheduler) due(now time.Duration, sweep Iteration) bool {
	at, known := s.estimates.predict()
	return known && (s.progressed || sweep != s.sweepAtBegin) && now >= s.nextAt && now+s.roundTrip >= at
}

// failed takes the level of a snapshot that was not the answer.
func (s *snapshotScheduler) rejected(now time.Duration, level float64, void bool) {
	s.roundTrip = now - s.begunAt
	if void {
		s.nextAt = now + s.roundTrip
		return // it says nothing of the residual
	}
	s.exact.record(s.begunAt, level, 0)
	s.nextAt = now + s.backOff
	if at, known := s.exact.predict(); known {
		s.nextAt = min(s.nextAt, s.begunAt+time.Duration(retryFraction*float64(at-s.begunAt)))
		if s.nextAt <= now && s.backOff > 0 {
			return // it is near
		}
	}
	s.backOff = min(max(2*s.backOff, s.roundTrip), maxBackOffRounds*s.roundTrip)
}

// samplingInterval says how often a peer measures for its guess.
type samplingInterval struct {
	endKnown    bool
	expectedEnd time.Duration // when the tolerance may be met, as the root told
	at          time.Duration // of the last measurement
	sweeps      Iteration
	period      time.Duration // of a sweep
}

// hear takes the seconds until the tolerance may be met; what makes no sense, like
// +∞, counts as not known.
func (p *samplingInterval) receive(now time.Duration, left float64) {
	p.endKnown = left >= 0 && left < maxForecast.Seconds()
	p.expectedEnd = now
	if p.endKnown {
		p.expectedEnd = now + time.Duration(left*float64(time.Second))
	}
}

// left is what others are told.
func (p *samplingInterval) remaining(now time.Duration) float64 {
	if !p.endKnown {
		return math.Inf(1)
	}
	return max(0, p.expectedEnd-now).Seconds()
}

// next is the sweep that measures next: a bound that keeps up with what the straight
// line through a peer's own residuals does not foresee. Half a round is as good as any
// shorter time, until the end is near; and a peer need not look more often than eight
// times while the run grows e times as old.
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
