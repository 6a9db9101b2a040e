package method

import "math"

// Verdict is what becomes of a cycle.
type Decision int

// The verdicts on a cycle.
const (
	Accepted      Decision = iota // its values stay
	Undecided                     // the change of the energy decides
	Rejected                      // back to the values kept, and relaxation from there
	StartRejected                 // back to the values before the start, and a cycle from there
)

// Safeguard makes the convergence of multigrid certain, whatever the coarse corrections
// do. The full multigrid start and the cycle after it are accepted when the VI residual is
// not larger than before. A later cycle is accepted when it falls below Falls times the
// smallest so far: that can happen without end only if it tends to 0. Otherwise, for a
// symmetric A, it is accepted when the values after the coarse correction and the relaxation
// that follows have less energy than those before it, or else the part of that step that has
// least. Each cycle begins with projected relaxation, which lowers the energy everywhere but
// at the solution, continuously, so that an iteration that never raises it converges
// (Zangwill's theorem; so argues Kornhuber, Numer. Math. 69, 1994, for monotone multigrid).
// Otherwise the iteration goes on with relaxation alone, from the values kept, ever longer
// while cycles fail: relaxation converges by itself.
type Safeguard struct {
	Symmetric  bool
	smallest   float64
	largest    float64 // residual ever seen
	unmeasured bool    // there is no residual to compare with, and the values are worth keeping
	afterStart bool    // best is the residual before the full multigrid start, which a cycle followed
	sweeps     int
	rejected   int
	change     float64 // of the energy, by the step that is judged
}

// Falls is the factor that the residual of an accepted cycle keeps below.
const RequiredReduction = 0.8

const (
	minRelaxations = 4
	maxRelaxations = 1 << 10
	// nothingLeft is the part of the largest residual below which a rejection is likely one
	// of rounding, in a local solve that has nothing left to do: no more than the first
	// number of sweeps is worth while then.
	roundingLevel = 1e-10
)

// Reset forgets the residual: the values are only a start, and any cycle is accepted.
func (g *Safeguard) Reset() { g.smallest, g.unmeasured, g.afterStart = math.Inf(1), false, false }

// Begin takes the residual of the values that the next cycle begins with or, where a full
// multigrid start comes before it, of those before that.
func (g *Safeguard) Begin(residual float64, started bool) {
	g.smallest, g.unmeasured, g.afterStart = residual, false, started
}

// Changed forgets the residual: the values were changed from outside. Of a symmetric A
// the energy judges the next cycle.
func (g *Safeguard) Changed() {
	g.smallest, g.unmeasured, g.afterStart = math.Inf(1), g.Symmetric, false
}

// Judge takes the residual (‖r‖₂) after a cycle.
func (g *Safeguard) Evaluate(residual float64) Decision {
	g.change = math.Inf(1)
	if residual > g.largest && residual < math.Inf(1) {
		g.largest = residual
	}
	if g.afterStart {
		if g.afterStart = false; residual <= g.smallest {
			return g.accept(residual)
		}
		g.rejected++
		return StartRejected
	}
	if g.unmeasured && residual < math.Inf(1) {
		g.unmeasured = false
		return Undecided
	}
	if residual <= RequiredReduction*g.smallest {
		return g.accept(residual)
	}
	if g.Symmetric && residual < math.Inf(1) {
		return Undecided
	}
	return g.reject(residual)
}

// JudgeEnergy takes the change of the energy since the values that were kept.
func (g *Safeguard) EvaluateEnergy(change, residual float64) Decision {
	if g.change = change; change < 0 {
		return g.accept(residual)
	}
	return g.reject(residual)
}

// Halves reports whether, after JudgeEnergy has rejected a cycle of that residual, half of
// its step is worth a look: see Part.
func (g *Safeguard) TryHalfStep(residual float64) bool {
	return g.change < math.Inf(1) && residual > roundingLevel*g.largest
}

// leastStep is the part of a step below which relaxation is worth more.
const minStepFraction = 0.05

// Part takes the change of the energy of half the step, after that of all of it, and returns
// what the half step is to be multiplied by to have least energy; 0: nothing. The energy is a
// parabola along the step, and both ends of it lie between the obstacles: a correction may
// point the right way and be too long. After such a part comes Damped.
func (g *Safeguard) StepFraction(half float64) float64 {
	curvature := 2*g.change - 4*half // the change at t is curvature·t² − slope·t
	part := (curvature - g.change) / (2 * curvature)
	if curvature > 0 && part >= minStepFraction && part < 1 {
		return 2 * part
	}
	return 0
}

// Damped takes the residual after such a part of a step.
func (g *Safeguard) AcceptDamped(residual float64) { g.accept(residual) }

func (g *Safeguard) accept(residual float64) Decision {
	g.smallest, g.sweeps = math.Min(g.smallest, residual), 0
	return Accepted
}

func (g *Safeguard) reject(residual float64) Decision {
	g.sweeps = min(maxRelaxations, max(minRelaxations, 2*g.sweeps))
	if residual <= roundingLevel*g.largest {
		g.sweeps = minRelaxations
	}
	g.rejected++
	return Rejected
}

// Sweeps is how long to relax after a rejection.
func (g *Safeguard) Sweeps() int { return g.sweeps }

// Relaxed takes the residual after that.
func (g *Safeguard) AcceptRelaxed(residual float64) {
	g.smallest = math.Min(g.smallest, residual)
}

// Rejections is the number of cycles that were not accepted.
func (g *Safeguard) Rejections() int { return g.rejected }
