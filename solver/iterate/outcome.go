package iterate

import (
	"cmp"
	"math"

	"github.com/p2pdc/p2pdc/internal/kernel"
)

// Reason is the reason why a run ended.
type Reason int

// The reasons.
const (
	Running       Reason = iota // the run has not ended
	Converged                   // the residual meets the tolerance
	ReachedSweeps               // bound on sweeps
	ReachedTime                 // bound on time
	Interrupted
	Diverged   // the residual has grown without bound; see diverges, and Stagnation
	Stagnated  // the residual has stopped falling above the tolerance; see Stagnation
	LastReason = Stagnated
)

var reasons = [LastReason + 1]string{
	"running", "converged", "reached the bound on sweeps", "reached the bound on time", "interrupted", "diverged",
	"stagnated above the tolerance",
}

// String returns the reason in words.
func (r Reason) String() string {
	if r < 0 || r > LastReason {
		return "reason?"
	}
	return reasons[r]
}

// EndsStep reports whether the iterate of a run that ended for this reason is the end of the time step. After a step that
// stagnated no other follows.
func (r Reason) EndsStep() bool { return r == Converged || r == Stagnated }

// Outcome is the result of a peer's run.
type Outcome struct {
	Reason Reason
	Sweeps Iteration // relaxations or cycles made by this peer
	// Work is the cost in sweeps over the peer's box at the end. It is 0 if it equals Sweeps; it differs for
	// methods with cycles and for boxes that changed their size.
	Work      float64
	Iterate   Iteration // of the answer
	Residual  float64   // relative, agreed by all peers; NaN if it was never measured
	Snapshots int       // not counting snapshot 0, of the starting vector
	// State is that of the method at the end, for a later run that begins with the last values (problem.Config.Earlier). nil:
	// the method has none.
	State []byte

	// In a run with time steps, Sweeps counts all steps. Reason, Iterate, Residual and Snapshots are those
	// of the last step.
	Steps         int     // completed, with those of an earlier run that this one continues
	WorstResidual float64 // largest relative residual of a completed step
	WorstStep     int     // the step with that residual, 0 if there is none
	StaleHalos    uint64  // dropped halos of past time steps

	// In a run that moves planes between peers.
	Moves                      int // of this peer's boundaries
	PlanesSent, PlanesReceived int
}

// StepResult is the result of a time step.
type StepResult struct {
	Step     int       // from 1
	Sweeps   Iteration // of this peer
	Residual float64   // relative, agreed by all peers
}

// Progress is the state of a run for display.
type Progress struct {
	Step     int // time step in progress, 0 in a stationary run
	Sweep    Iteration
	Residual float64 // last relative residual, of all peers at the root and of the subtree elsewhere; NaN if unknown
	Omega    float64 // relaxation factor of SOR, the same for all peers at a sweep; 0: another method
}

const (
	// DefaultCheckEvery is the interval of checks in sweeps when it is not set.
	DefaultCheckEvery = 32
	defaultLag        = 16
)

// CheckInterval determines which iterates are checked and when a verdict takes effect. The parallel methods
// and their sequential references use the same rule.
type CheckInterval struct {
	Every Iteration // sweeps between checks
	Lag   Iteration // sweeps from a check to the effect of its verdict
	Max   Iteration // largest iterate; 0 means no bound
	Fixed bool      // Every was set by the user: the residual is measured at every check
}

// NewCheckInterval returns the interval for a run. For every and lag 0 selects a default; for most, the
// largest iterate, 0 means no bound.
func NewCheckInterval(every, lag, most Iteration) CheckInterval {
	fixed := every > 0
	every = cmp.Or(every, DefaultCheckEvery)
	return CheckInterval{Every: every, Lag: min(cmp.Or(lag, defaultLag), every), Max: most, Fixed: fixed}
}

// forEstimates returns the interval for residual estimates. Each peer chooses its own, so it can be
// shorter: a quarter.
func (r CheckInterval) forEstimates() CheckInterval {
	if !r.Fixed {
		r.Every = max(1, r.Every/4)
	}
	return r
}

// Effect returns the iterate at which the verdict on iterate k takes effect. The verdicts on iterate 0 and
// on the last iterate take effect at once.
func (r CheckInterval) Effect(k Iteration) Iteration {
	if k == 0 {
		return 0
	}
	return r.bounded(k + r.Lag)
}

// After returns the iterate that is checked after iterate k.
func (r CheckInterval) After(k Iteration) Iteration { return r.bounded(k + r.Every) }

func (r CheckInterval) bounded(k Iteration) Iteration {
	if r.Max > 0 {
		return min(k, r.Max)
	}
	return k
}

// Evaluate returns the relative residual of iterate k and the reason to end the run there, Running if
// there is none.
func (r CheckInterval) Evaluate(k Iteration, norm, reference, tolerance float64) (float64, Reason) {
	rel := Relative(norm, reference)
	switch {
	case rel <= tolerance:
		return rel, Converged
	case diverges(norm, reference):
		return rel, Diverged
	case r.Max > 0 && k == r.Max:
		return rel, ReachedSweeps
	}
	return rel, Running
}

// divergence is the ratio of a residual to its reference from which a run counts as diverged. No run that converges reaches
// it, and values of such residuals are many sweeps away from overflow. So all peers get the verdict while the values that
// they exchange are still finite, and none blames its neighbour.
const divergence = 1e100

// diverges reports whether a run with such a residual has diverged.
func diverges(norm, reference float64) bool {
	return !kernel.Finite(norm) || reference > 0 && norm > divergence*reference
}

// Relative returns a residual divided by its reference. A residual of 0 gives 0 for every reference.
func Relative(norm, reference float64) float64 {
	if norm == 0 {
		return 0
	}
	return norm / reference
}

// UnknownResidual returns NaN, the value of a residual that has not been measured.
func UnknownResidual() float64 { return math.NaN() }

// Norm returns the Euclidean norm whose square is s.
func Norm(s *kernel.Sum) float64 { return math.Sqrt(s.Float64()) }
