package iterate

import "github.com/p2pdc/p2pdc/internal/kernel"

// Stagnation recognises a run whose residual rounding keeps from falling further. A run
// stagnates when two things hold:
//
//   - the residual has had no new minimum for a quarter of the run, at stagnantChecks
//     checks or more. A run that converges, however slowly, has one at nearly every check;
//   - the residual is what rounding leaves, ‖r‖₂ ≤ stagnantUnits·ε·‖m‖₂ with ε = 2^−53 and
//     m_i = 2·a_ii·|u_i| + |f_i| at points off contact. The computed residual of a point is
//     wrong by up to 6 units ε of Σ|a_ij|·|u_j| + |f_i| (see residualRounding), for which
//     m_i stands; one more is the rounding of u_i, and one that of the relaxed value, so
//     that a smaller residual need not change any u_i. Measured: at most 2.2 units.
//
// The second costs a pass over the block. So it is asked for only when the first holds, at
// the check that follows. Both use exact sums, so all partitions decide alike.
type Stagnation struct {
	known  bool
	best   float64   // smallest relative residual
	bestAt Iteration // of the check that found it, or of the last doubt that was cleared
	checks int       // since then
}

const (
	// StagnantChecks without a new minimum of the residual are needed before a run counts as stagnant.
	StagnantChecks = 6
	stagnantUnits  = 8
	// quietChecks of the root's own residual without a new minimum of the estimates make a
	// snapshot worth while that looks for stagnation. Of snapshots quietSnapshots will do.
	estimateChecks = 4
	snapshotChecks = 3
)

// hear takes the relative residual of check k. It reports whether there has been no new
// minimum for a quarter of the run and so many checks.
func (s *Stagnation) record(k Iteration, residual float64, checks int) bool {
	if !s.known || residual < s.best {
		*s = Stagnation{known: true, best: residual, bestAt: k}
		return false
	}
	s.checks++
	return s.checks >= checks && k-s.bestAt >= k/4
}

// Judge takes the relative residual of check k. asked: m was asked for there, and this is
// its norm, relative to the same reference. It returns Stagnated or Running, and whether
// the next check has to bring m. With tolerance 0 a run goes on until it is stopped.
func (s *Stagnation) Evaluate(k Iteration, residual, tol float64, checks int, asked bool, m float64) (why Reason, ask bool) {
	switch {
	case tol == 0 || !s.record(k, residual, checks):
		return Running, false
	case !asked:
		return Running, true
	case residual <= stagnantUnits*kernel.UnitRoundoff*m:
		return Stagnated, false
	}
	s.bestAt, s.checks = k, 0 // not by rounding: look again after another quarter
	return Running, false
}
