package iterate

import (
	"math"

	"github.com/p2pdc/p2pdc/internal/kernel"
)

// Reason tells why a run ended, or that it has not.
type Reason int

// The reasons. Diverged: a residual was not finite. Stagnated: rounding keeps the residual
// above the tolerance.
const (
	Running Reason = iota
	Converged
	ReachedSweeps
	ReachedTime
	Interrupted
	Diverged
	Stagnated
	LastReason = Stagnated
)

func (r Reason) String() string {
	switch r {
	case Running:
		return "running"
	case Converged:
		return "converged"
	case ReachedSweeps:
		return "reached the bound on sweeps"
	case ReachedTime:
		return "reached the bound on time"
	case Interrupted:
		return "interrupted"
	case Diverged:
		return "diverged"
	case Stagnated:
		return "stagnated above the tolerance"
	}
	return "reason?"
}

// Outcome is how a peer's run ended.
type Outcome struct {
	Reason    Reason
	Sweeps    Iteration // relaxations, or cycles, done by this peer
	Work      float64   // what they cost, in sweeps over the own box, of a method whose cycles are not sweeps, or of a box that was another before; 0: Sweeps
	Iterate   Iteration // of the answer (own block)
	Residual  float64   // relative, as agreed (the program recomputes it); NaN: never measured
	Snapshots int       // snapshots taken after the first, which is of u⁰

	// Of a nonstationary run. Sweeps are those of all steps; Reason, Iterate,
	// Residual and Snapshots are the last step's.
	Steps         int     // completed
	WorstResidual float64 // largest relative residual of a completed step
	WorstStep     int     // that one; 0: none
	StaleHalos    uint64  // faces of an old step, dropped

	// Of a run whose planes move.
	Moves                      int // of this peer's cuts
	PlanesSent, PlanesReceived int // planes
}

// StepResult is how a time step ended.
type StepResult struct {
	Step     int       // from 1
	Sweeps   Iteration // of this peer
	Residual float64   // relative, as agreed
}

// Progress is for people who watch.
type Progress struct {
	Step     int // in progress; 0: the problem is stationary
	Sweep    Iteration
	Residual float64 // last known relative residual of the whole (root) or own share; NaN: not yet
}

// The rule of checks, one for workers and the sequential method.
const (
	DefaultCheckEvery = 32
	defaultLag        = 16
)

// CheckInterval is when residuals are checked and when a verdict takes effect.
type CheckInterval struct {
	Every, Lag, Max Iteration // max 0: no bound
	Fixed           bool      // every was asked for: measure at every check
}

// NewCheckInterval returns the interval for a run: every is the distance of checks (0: chosen), lag how many
// iterates later a verdict takes effect (0: chosen), most the largest iterate (0: no bound).
func NewCheckInterval(every, lag, most Iteration) CheckInterval {
	fixed := every > 0
	if !fixed {
		every = DefaultCheckEvery
	}
	if lag == 0 {
		lag = min(defaultLag, every)
	}
	return CheckInterval{Every: every, Lag: min(lag, every), Max: most, Fixed: fixed}
}

// loose is the rhythm of guesses, which nobody else has to keep: a quarter as long.
func (r CheckInterval) forEstimates() CheckInterval {
	if !r.Fixed {
		r.Every = max(1, r.Every/4)
	}
	return r
}

// Effect is the iterate at which a verdict on check k takes effect. That on u⁰
// does at once, as does that on the last iterate.
func (r CheckInterval) Effect(k Iteration) Iteration {
	if k == 0 {
		return 0
	}
	if r.Max > 0 {
		return min(k+r.Lag, r.Max)
	}
	return k + r.Lag
}

// After is the check that follows check k.
func (r CheckInterval) After(k Iteration) Iteration {
	n := k + r.Every
	if r.Max > 0 {
		n = min(n, r.Max)
	}
	return n
}

// Judge turns exact sums of squares into the relative residual and what it means
// for check k.
func (r CheckInterval) Evaluate(k Iteration, norm, reference, tolerance float64) (float64, Reason) {
	rel := Relative(norm, reference)
	switch {
	case rel <= tolerance:
		return rel, Converged
	case !kernel.Finite(norm):
		return rel, Diverged
	case r.Max > 0 && k == r.Max:
		return rel, ReachedSweeps
	}
	return rel, Running
}

// Relative is a residual against a reference (see units.reference); nothing left is 0
// whatever it is measured by.
func Relative(norm, reference float64) float64 {
	if norm == 0 {
		return 0
	}
	return norm / reference
}

// NotYet returns NaN, the residual before one is known.
func UnknownResidual() float64 { return math.NaN() }

// Norm is the Euclidean norm whose square is s.
func Norm(s *kernel.Sum) float64 { return math.Sqrt(s.Float64()) }
