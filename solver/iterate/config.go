package iterate

import "time"

// DefaultRepeat is Config.Repeat where that is 0.
const DefaultRepeat = 5 * time.Millisecond

// Config is what the rules of exchange and termination have to know of a run. Rank, Peers, Scheme and
// Tolerance are required.
type Config struct {
	Rank   Rank
	Peers  int
	Scheme Scheme
	// Tolerance ends the run when the relative residual is at most that; at 0 the run goes on until it
	// is stopped.
	Tolerance float64
	// MaxSweeps bounds the sweeps of a peer; 0: no bound.
	MaxSweeps Iteration
	// CheckEvery is the distance, in sweeps, of the iterates whose residual is measured in lockstep;
	// 0: chosen by how the residual falls.
	CheckEvery Iteration
	// Lag is how many sweeps after a check its verdict takes effect, at most CheckEvery; 0: chosen.
	Lag Iteration
	// Repeat is how long a waiting peer waits at most before it repeats a halo on a session that may
	// lose messages; 0: DefaultRepeat.
	Repeat time.Duration
	Moves  bool // the boundaries between peers may move
	// Reference returns what residuals are relative to, given the norm of the reference residual; nil: that
	// norm.
	Reference func(norm float64) float64
}
