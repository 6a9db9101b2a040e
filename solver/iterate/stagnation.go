package iterate

import (
	"math"

	"github.com/p2pdc/p2pdc/internal/kernel"
)

// Stagnation detects a run whose residual does not fall further. A run stagnates because of rounding when two conditions
// hold:
//
//   - The residual has had no new minimum during the last quarter of the run, at StagnantChecks checks or
//     more. A run that converges, even slowly, has a new minimum at nearly every check. The residuals of
//     snapshots fluctuate by rounding: among them, only one that is lower by an eighth is a new minimum.
//   - The residual has the magnitude of rounding errors: ‖r‖₂ ≤ stagnantUnits·ε·‖m‖₂ with ε = 2^−53 and
//     m_i = 2·a_ii·|u_i| + |f_i| at points off contact, or whose residual is not 0. The computed residual of a point has an error of
//     up to 6 units ε of Σ|a_ij|·|u_j| + |f_i|, approximated by m_i. Two more units are the
//     rounding of u_i and of the relaxed value: below them a residual need not change any u_i.
//     m_i is too small where a point off contact lies much nearer to 0 than its neighbours: 2.2 units are
//     the most that was measured on most problems, and 11.4 on a string whose two obstacles cross 0.
//
// The second condition costs a pass over the block. So magnitudes are reduced only at the check after the first
// condition holds. Both use exact sums, so the decision does not depend on the partition.
//
// An iteration may amplify rounding errors, as SOR does with a factor near 2. Then the second condition allows a residual that
// is larger by its gain. If the iteration can lower the gain for some sweeps (Damping), it does so instead of ending. Its
// residual then falls at once to that of rounding, unless other errors are left, and for the first condition the checks suffice.
//
// A run also stagnates if its residual stands still during nine tenths of its work and standstillWork at least: A is nearly
// singular (a strong flow out of the domain, say), and the solution is out of reach. A residual that falls by a
// ten-thousandth does not stand still, nor does one that has risen, and falls from there, though still above its smallest
// value: SOR, which runs in lockstep, increases it by a factor of thousands at first where the diffusion varies by a million.
// While its largest value falls by a thousandth (snapshots: 1/32) each time the work doubles, it does not stand still either: the
// residual of Schwarz, where two boxes share a region of high diffusion, falls steeply at first, rises, and falls slowly from there.
// An iteration with a parameter that the user has set can fall so slowly that its end is out of reach. It stagnates if, in two
// periods in a row after standstillWork, its rate promises the tolerance only after slowest times the work so far.
// If the iteration may diverge, or its residual is at least grown, a rise is no progress: the run has diverged, and
// obstacles bound the values.
type Stagnation struct {
	// MayDiverge states that the iteration is not known to converge. It is no part of the state.
	MayDiverge bool
	Damping    Damping // likewise
	Given      bool    // likewise: the user has set a parameter that determines the rate
	snapshots  bool    // the checks are snapshots

	known  bool
	best   float64   // relative residual, the newest minimum
	bestAt Iteration // of the check that found it, or of the last doubt that was cleared
	checks int       // since then

	begun   float64 // work before the first check, in sweeps over the grid
	highest float64 // relative residual, the newest that was higher by a ten-thousandth
	level   float64 // the newest since then that was lower by a ten-thousandth (snapshots: an eighth)
	levelAt float64 // work between the first check and that of level
	due     float64 // work at which the present period ends; each is as long as all before
	former  float64 // largest relative residual of the period before; 0: there is none
	latest  float64 // of the present one
	falls   bool    // the last period had a lower one than that before it
	slow    bool    // the last period was too slow
}

// Damping describes how an iteration amplifies rounding errors. Its zero value is that of one that does not.
type Damping struct {
	Gain   float64 // bound of the factor by which it does now; 0: 1
	Damped bool    // the gain has been lowered for some sweeps
	Lower  func()  // lowers it; nil: it cannot be lowered
}

// Fields implements State.
func (s *Stagnation) Fields(visit func(field any)) {
	visit(&s.known)
	visit(&s.best)
	visit(&s.bestAt)
	visit(&s.checks)
	visit(&s.begun)
	visit(&s.highest)
	visit(&s.level)
	visit(&s.levelAt)
	visit(&s.due)
	visit(&s.former)
	visit(&s.latest)
	visit(&s.falls)
	visit(&s.slow)
}

const (
	// StagnantChecks without a new minimum of the residual are needed before a run counts as stagnant.
	StagnantChecks = 6
	stagnantUnits  = 32
	// estimateChecks is the number of measurements of the root without a new minimum of the estimates after
	// which a snapshot tests for stagnation. snapshotChecks replaces StagnantChecks for snapshots.
	estimateChecks = 4
	snapshotChecks = 3
	// noisyMinimum is the largest ratio of a new minimum to the one before among snapshots, or before the gain is lowered.
	noisyMinimum = 7. / 8
	// standstillWork exceeds the sweeps in which a flow crosses the largest grids, before the residual falls.
	standstillWork = 1 << 16
	standstillFall = 1 - 1e-4
	periodFall     = 1 - 1e-3
	// noisyPeriodFall replaces it for snapshots.
	noisyPeriodFall = 31. / 32
	// grown is the least relative residual that counts as divergence if it stands still. Transient growth ends before.
	grown = 1e6
	// slowest is far beyond the work in which the rate of a period is wrong.
	slowest = 16
)

// record adds the relative residual of iterate k. It reports whether there has been no new minimum for a
// quarter of the run and the given number of checks.
func (s *Stagnation) record(k Iteration, residual float64, checks int) bool {
	ratio := 1.
	if s.snapshots || s.Damping.Lower != nil {
		ratio = noisyMinimum
	}
	if !s.known || residual < ratio*s.best {
		s.known, s.best, s.bestAt, s.checks = true, residual, k, 0
		return false
	}
	s.checks++
	return s.checks >= checks && (s.Damping.Damped || k-s.bestAt >= k/4)
}

// move records the relative residual after that much work and reports whether it stands still, and whether it falls too slowly.
func (s *Stagnation) move(work, residual, tol float64) (stands, slow bool) {
	fall, period := standstillFall, periodFall
	if s.snapshots {
		fall, period = noisyMinimum, noisyPeriodFall
	}
	if !s.known {
		s.begun = work
	}
	work -= s.begun
	switch {
	case !s.known:
		s.highest, s.level, s.levelAt = residual, residual, work
	case residual < fall*s.level:
		s.level, s.levelAt = residual, work
	case !s.snapshots && residual*fall > s.highest && residual < grown && !s.MayDiverge:
		s.highest, s.level, s.levelAt = residual, residual, work
	}
	s.latest = max(s.latest, residual)
	lower := !s.MayDiverge && s.latest < min(period*s.former, grown)
	falls := s.falls || lower && work >= 0.75*s.due
	if work >= s.due {
		// The largest residuals of two periods are a quarter of the work apart.
		now := s.Given && work >= standstillWork && 4*slowest*math.Log(s.former/s.latest) < math.Log(residual/tol)
		slow = now && s.slow
		s.falls, s.slow = lower, now
		s.due, s.former, s.latest = 2*work, s.latest, 0
	}
	return work >= standstillWork && work-s.levelAt >= 0.9*work && !falls, slow
}

// RoundingLevel returns the residual that rounding errors may leave, from the norm of the magnitudes.
func RoundingLevel(m float64) float64 { return stagnantUnits * kernel.UnitRoundoff * m }

// Evaluate adds the relative residual of iterate k, which has taken work sweeps over the grid. If reduced is true, m is the
// norm of the magnitudes relative to the same reference. It returns Stagnated, Diverged or Running, and whether the next
// check has to reduce magnitudes. With tolerance 0 a run never stagnates.
func (s *Stagnation) Evaluate(k Iteration, work float64,
	residual, tol float64, checks int, reduced bool, m float64) (why Reason, reduce bool) {
	switch stands, slow := s.move(work, residual, tol); {
	case tol == 0:
		return Running, false
	case stands && (s.MayDiverge || residual >= grown):
		return Diverged, false
	case stands || slow:
		return Stagnated, false
	case !s.record(k, residual, checks):
		return Running, false
	case !reduced:
		return Running, true
	case residual > RoundingLevel(m)*max(1, s.Damping.Gain):
	case s.Damping.Lower == nil:
		return Stagnated, false
	default:
		s.Damping.Lower()
	}
	s.bestAt, s.checks = k, 0 // not caused by rounding: test again after another quarter
	return Running, false
}
