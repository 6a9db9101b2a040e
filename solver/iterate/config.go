package iterate

import "time"

// DefaultRepeat is used when Config.Repeat is 0.
const DefaultRepeat = 5 * time.Millisecond

// Config holds the settings of a run for the rules of exchange and termination. Rank, Peers, Scheme
// and Tolerance are required; all peers of a run have the same values of all fields but Rank.
type Config struct {
	Rank   Rank
	Peers  int
	Scheme Scheme
	// Tolerance is the relative residual that ends the run. With 0 the run continues until it is
	// stopped or the residual is exactly 0.
	Tolerance float64
	// MaxSweeps bounds the sweeps of each peer. 0 means no bound.
	MaxSweeps Iteration
	// CheckEvery is the number of sweeps between two checks of the residual in lockstep. With 0 the
	// interval adapts to the rate at which the residual falls.
	CheckEvery Iteration
	// Lag is the number of sweeps between a check and the effect of its verdict, at most
	// CheckEvery. With 0 it is chosen.
	Lag Iteration
	// Repeat is the time after which a waiting peer repeats a halo on a session that may lose
	// messages. With 0 it is DefaultRepeat.
	Repeat time.Duration
	Moves  bool // the boundaries between peers may move
	// KeepEvery is the least time between two iterates that all peers keep (OpKeep), in lockstep. 0: none is kept.
	KeepEvery time.Duration
	// State is that of a kept iterate, from which the run goes on with the values of that iterate. nil: it begins.
	State []byte
	// MayDiverge states that the iteration is not known to converge: a residual that stands still is divergence then.
	MayDiverge bool
	// Largest bounds the magnitude of every value of every iterate: larger values are refused, and their sender is lost. 0: the
	// iterates may grow without bound.
	Largest float64
	// Reference returns the divisor of relative residuals for a given norm of the reference
	// residual. If nil, the divisor is that norm.
	Reference func(norm float64) float64
}
