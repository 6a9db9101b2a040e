package iterate

import "time"

// Config is what the rules of exchange and termination have to know of a run.
type Config struct {
	Rank      Rank
	Peers     int
	Scheme    Scheme
	Tolerance float64       // relative residual; 0: the run goes on until it is stopped
	Repeat    time.Duration // a halo is repeated at least this often while the peer waits
	Moves     bool          // the boundaries between peers may move
	// Reference returns what residuals are relative to, of the norm of the reference vector.
	Reference func(norm float64) float64
}
