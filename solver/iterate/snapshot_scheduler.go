package iterate

import (
	"math"
	"time"
)

// snapshotScheduler says at the root when the next snapshot is worth while. Guesses tell when the
// first one is; they may be wrong either way, since a peer knows its neighbours by old
// values. After that the residuals of the snapshots themselves tell how long it takes.
type snapshotScheduler struct {
	guesses forecast
	exact   forecast
	round   time.Duration // down the tree and up again
	begunAt time.Duration
	nextAt  time.Duration // no snapshot before
	rest    time.Duration // at most after the next one that fails
	news    bool          // somebody has done something since the last one began
	sweep   Iteration     // the root's, then
}

const (
	// shotAhead is how much of the way to where the exact residuals point to goes by
	// before the next snapshot: residuals fall faster towards the end as often as not.
	shotAhead = 0.5
	// restRounds bounds the rest after a snapshot that guesses misled to.
	restRounds = 32
)

// guessed takes a guess of the level, and how long a round over the tree takes.
func (s *snapshotScheduler) guessed(now time.Duration, level float64, round time.Duration) {
	if !s.guesses.known || level != s.guesses.level {
		s.guesses.hear(now, level, anchorDrop)
	}
	s.round = max(s.round, round)
}

// left is the time in seconds until the tolerance may be met, +∞ if that cannot be told.
func (s *snapshotScheduler) left(now time.Duration) float64 {
	at, known := s.exact.meets()
	if s.exact.slope() == 0 {
		at, known = s.guesses.meets()
	}
	if !known {
		return math.Inf(1)
	}
	return max(0, at-now).Seconds()
}

func (s *snapshotScheduler) begin(now time.Duration, sweep Iteration) {
	s.begunAt, s.sweep, s.news = now, sweep, false
}

// promising tells that a snapshot begun now may be the last; sweep is the root's newest.
func (s *snapshotScheduler) promising(now time.Duration, sweep Iteration) bool {
	at, known := s.guesses.meets()
	return known && (s.news || sweep != s.sweep) && now >= s.nextAt && now+s.round >= at
}

// failed takes the level of a snapshot that was not the answer.
func (s *snapshotScheduler) failed(now time.Duration, level float64, void bool) {
	s.round = now - s.begunAt
	if void {
		s.nextAt = now + s.round
		return // it says nothing of the residual
	}
	s.exact.hear(s.begunAt, level, 0)
	s.nextAt = now + s.rest
	if at, known := s.exact.meets(); known {
		s.nextAt = min(s.nextAt, s.begunAt+time.Duration(shotAhead*float64(at-s.begunAt)))
		if s.nextAt <= now && s.rest > 0 {
			return // it is near
		}
	}
	s.rest = min(max(2*s.rest, s.round), restRounds*s.round)
}

// samplingInterval says how often a peer measures for its guess.
type samplingInterval struct {
	known  bool
	end    time.Duration // when the tolerance may be met, as the root told
	at     time.Duration // of the last measurement
	sweeps Iteration
	period time.Duration // of a sweep
}

// hear takes the seconds until the tolerance may be met; what makes no sense, like
// +∞, counts as not known.
func (p *samplingInterval) hear(now time.Duration, left float64) {
	p.known = left >= 0 && left < farAhead.Seconds()
	p.end = now
	if p.known {
		p.end = now + time.Duration(left*float64(time.Second))
	}
}

// left is what others are told.
func (p *samplingInterval) left(now time.Duration) float64 {
	if !p.known {
		return math.Inf(1)
	}
	return max(0, p.end-now).Seconds()
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
	if p.known {
		gap = min(gap, Iteration(max(round/4, (p.end-now)/2)/p.period))
	}
	return k + max(1, gap)
}
