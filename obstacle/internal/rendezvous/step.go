package rendezvous

import "github.com/p2pdc/p2pdc/obstacle/internal/nullable"

// Step states that a peer has completed a time step. Its block at the end of the step precedes it, in chunks of
// StreamStep.
type Step struct {
	Step     int             `json:"step"`   // from 1
	Sweeps   uint64          `json:"sweeps"` // of the peer, in this step
	Residual nullable.Number `json:"residual"`
}
