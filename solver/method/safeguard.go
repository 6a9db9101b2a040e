package method

import "math"

// Decision is the result of evaluating a cycle.
type Decision int

// The decisions on a cycle.
const (
	Accepted      Decision = iota // keep its values
	Undecided                     // the change of the energy decides
	Rejected                      // restore the saved values and relax
	StartRejected                 // restore the values before the full multigrid start and execute a cycle
)

// Safeguard guarantees the convergence of multigrid for arbitrary coarse corrections.
//
// The full multigrid start and the cycle after it are accepted if the VI residual has not increased. A
// later cycle is accepted if the residual is at most RequiredReduction times the smallest so far, which
// can happen infinitely often only if the residual tends to 0.
//
// Otherwise, for a symmetric A, the energy decides: the cycle is accepted if the values after the coarse correction
// and the following relaxation have less energy than those before it, or reduced to the part of the step that
// minimises the energy. Each cycle begins with projected relaxation, which decreases the energy everywhere but at the
// solution and depends continuously on the values, so an iteration that never increases the energy converges
// (Zangwill's theorem; the argument of Kornhuber, Numer. Math. 69, 1994, for monotone multigrid).
//
// If A is symmetric but for a weak flow, the energy decides as well, but about at most maxTrusted cycles after which the
// residual has not been reduced by RequiredReduction.
//
// Otherwise the cycle is rejected, and relaxation continues from the saved values, for longer each time
// while cycles are rejected: relaxation alone converges.
type Safeguard struct {
	symmetric  bool // A is symmetric, or nearly
	weakFlow   bool // it is nearly
	smallest   float64
	proven     float64 // smallest when it was last reduced by RequiredReduction
	trusted    int     // cycles accepted by the energy since then
	largest    float64 // largest residual so far
	unmeasured bool    // smallest is unknown, but the values must not become worse
	afterStart bool    // smallest is the residual before a full multigrid start
	sweeps     int
	rejected   int
	change     float64 // change of the energy in the evaluated step
}

// RequiredReduction bounds the residual of an accepted cycle relative to the smallest so far.
const RequiredReduction = 0.8

const (
	// maxTrusted bounds the cycles that the energy accepts with a weak flow while the residual does not fall.
	maxTrusted     = 16
	minRelaxations = 4
	maxRelaxations = 1 << 10
	// roundingLevel is the part of the largest residual below which a rejection is probably due to rounding,
	// in a local solve that is complete. Only minRelaxations sweeps follow then.
	roundingLevel = 1e-10
)

// NewSafeguard returns a Safeguard for an arbitrary start: it accepts the first cycle. symmetric reports
// whether A is symmetric, weakFlow whether it is but for a weak flow.
func NewSafeguard(symmetric, weakFlow bool) Safeguard {
	return Safeguard{symmetric: symmetric || weakFlow, weakFlow: weakFlow && !symmetric, smallest: math.Inf(1), proven: math.Inf(1)}
}

// Fields implements iterate.State.
func (g *Safeguard) Fields(visit func(field any)) {
	visit(&g.smallest)
	visit(&g.proven)
	visit(&g.trusted)
	visit(&g.largest)
	visit(&g.unmeasured)
	visit(&g.afterStart)
	visit(&g.sweeps)
	visit(&g.rejected)
}

// Adopt goes on with the relaxations of an earlier run of the same problem. Begin must follow.
func (g *Safeguard) Adopt(e *Safeguard) {
	g.largest, g.sweeps = e.largest, min(maxRelaxations, max(0, e.sweeps))
}

// Begin sets the residual of the values before the next cycle or, if started, of the values before
// the full multigrid start that precedes the cycle.
func (g *Safeguard) Begin(residual float64, started bool) {
	g.smallest, g.proven = residual, residual
	g.trusted = 0
	g.unmeasured = false
	g.afterStart = started
}

// Changed discards the residual, because the values were changed from outside. For a symmetric A
// the energy decides about the next cycle.
func (g *Safeguard) Changed() {
	g.smallest, g.unmeasured, g.afterStart = math.Inf(1), g.symmetric, false
}

// Evaluate decides about a cycle by the residual ‖r‖₂ after it.
func (g *Safeguard) Evaluate(residual float64) Decision {
	g.change = math.Inf(1)
	if residual > g.largest && residual < math.Inf(1) {
		g.largest = residual
	}
	if g.afterStart {
		if g.afterStart = false; residual <= g.smallest {
			return g.Accept(residual)
		}
		g.rejected++
		return StartRejected
	}
	if g.unmeasured && residual < math.Inf(1) {
		g.unmeasured = false
		return Undecided
	}
	if residual <= RequiredReduction*g.smallest {
		return g.Accept(residual)
	}
	if g.symmetric && residual < math.Inf(1) {
		return Undecided
	}
	return g.reject(residual)
}

// EvaluateEnergy decides about an undecided cycle by the change of the energy since the saved values.
func (g *Safeguard) EvaluateEnergy(change, residual float64) Decision {
	if g.change = change; change < 0 && !(g.weakFlow && g.trusted >= maxTrusted) {
		g.trusted++
		return g.Accept(residual)
	}
	return g.reject(residual)
}

// TryHalfStep reports whether, after a cycle with that residual was rejected, the energy of half its step should be
// measured for StepFraction. It is false unless EvaluateEnergy has rejected the cycle.
func (g *Safeguard) TryHalfStep(residual float64) bool {
	return g.change < math.Inf(1) && residual > roundingLevel*g.largest
}

// minStepFraction is the part of a step below which relaxation is more effective.
const minStepFraction = 0.05

// StepFraction returns the factor by which the half step must be multiplied to minimise the energy, or 0 if
// relaxation is better. half is the change of the energy over half the step. The energy is a parabola along the step,
// and the values of the whole step are between the obstacles: a correction may have the right direction and be too
// long. After such a reduction Accept must be called.
func (g *Safeguard) StepFraction(half float64) float64 {
	curvature := 2*g.change - 4*half // the change at t is curvature·t² − slope·t
	part := (curvature - g.change) / (2 * curvature)
	if curvature > 0 && part >= minStepFraction && part < 1 {
		return 2 * part
	}
	return 0
}

// Accept records the residual of values that are kept.
func (g *Safeguard) Accept(residual float64) Decision {
	g.AcceptRelaxed(residual)
	g.sweeps = 0
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

// Sweeps returns the number of relaxations after a rejection.
func (g *Safeguard) Sweeps() int { return g.sweeps }

// AcceptRelaxed records the residual after these relaxations.
func (g *Safeguard) AcceptRelaxed(residual float64) {
	if g.smallest = math.Min(g.smallest, residual); g.smallest <= RequiredReduction*g.proven {
		g.proven, g.trusted = g.smallest, 0
	}
}

// Rejections returns the number of cycles that were not accepted.
func (g *Safeguard) Rejections() int { return g.rejected }
