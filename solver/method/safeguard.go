package method

import "math"

// Verdict is what becomes of a cycle.
type Verdict int

// The verdicts on a cycle.
const (
	Accepted  Verdict = iota // its values stay
	Undecided                // the change of the energy decides
	Rejected                 // back to the values kept, and relaxation from there
	Misled                   // back to the values before the start, and a cycle from there
)

// Safeguard makes the convergence of multigrid certain, whatever the coarse corrections
// do. The full multigrid start and the cycle after it are accepted when the residual is not
// larger than before. A cycle is accepted when the VI residual falls below Falls times the smallest so
// far: that can happen without end only if it tends to 0. Otherwise, for a symmetric A,
// it is accepted when the values after the coarse correction and the relaxation that
// follows have less energy than those before it; each cycle begins with projected
// relaxation, which lowers the energy everywhere but at the solution, continuously, so
// that an iteration that never raises it converges (Zangwill's theorem; so argues
// Kornhuber, Numer. Math. 69, 1994, for monotone multigrid). Otherwise the iteration goes on
// with relaxation alone, from the values kept, ever longer while cycles fail: relaxation
// converges by itself.
type Safeguard struct {
	Symmetric bool
	best      float64
	largest   float64 // residual ever seen
	unknown   bool    // there is no residual to compare with, and the values are worth keeping
	started   bool    // best is the residual before the full multigrid start, which a cycle followed
	sweeps    int
	rejected  int
}

// Falls is the factor that the residual of an accepted cycle keeps below.
const Falls = 0.8

const (
	firstSweeps = 4
	mostSweeps  = 1 << 10
	// nothingLeft is the part of the largest residual below which a rejection is likely one
	// of rounding, in a local solve that has nothing left to do: no more than the first
	// number of sweeps is worth while then.
	nothingLeft = 1e-10
)

// Reset forgets the residual: the values are only a start, and any cycle is accepted.
func (g *Safeguard) Reset() { g.best, g.unknown, g.started = math.Inf(1), false, false }

// Begin takes the residual of the values that the next cycle begins with or, where a full
// multigrid start comes before it, of those before that.
func (g *Safeguard) Begin(residual float64, started bool) {
	g.best, g.unknown, g.started = residual, false, started
}

// Changed forgets the residual: the values were changed from outside. Of a symmetric A
// the energy judges the next cycle.
func (g *Safeguard) Changed() { g.best, g.unknown, g.started = math.Inf(1), g.Symmetric, false }

// Judge takes the residual (‖r‖₂) after a cycle.
func (g *Safeguard) Judge(residual float64) Verdict {
	if residual > g.largest && residual < math.Inf(1) {
		g.largest = residual
	}
	if g.started {
		if g.started = false; residual <= g.best {
			return g.accept(residual)
		}
		return Misled
	}
	if g.unknown && residual < math.Inf(1) {
		g.unknown = false
		return Undecided
	}
	if residual <= Falls*g.best {
		return g.accept(residual)
	}
	if g.Symmetric && residual < math.Inf(1) {
		return Undecided
	}
	return g.reject(residual)
}

// JudgeEnergy takes the change of the energy since the values that were kept.
func (g *Safeguard) JudgeEnergy(change, residual float64) Verdict {
	if change < 0 {
		return g.accept(residual)
	}
	return g.reject(residual)
}

func (g *Safeguard) accept(residual float64) Verdict {
	g.best, g.sweeps = math.Min(g.best, residual), 0
	return Accepted
}

func (g *Safeguard) reject(residual float64) Verdict {
	g.sweeps = min(mostSweeps, max(firstSweeps, 2*g.sweeps))
	if residual <= nothingLeft*g.largest {
		g.sweeps = firstSweeps
	}
	g.rejected++
	return Rejected
}

// Sweeps is how long to relax after a rejection.
func (g *Safeguard) Sweeps() int { return g.sweeps }

// Relaxed takes the residual after that.
func (g *Safeguard) Relaxed(residual float64) {
	g.best = math.Min(g.best, residual)
}

// Rejections is the number of cycles that were not accepted.
func (g *Safeguard) Rejections() int { return g.rejected }
