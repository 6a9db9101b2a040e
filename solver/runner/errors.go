package runner

import (
	"errors"
	"fmt"

	"github.com/p2pdc/p2pdc/p2psap"
	"github.com/p2pdc/p2pdc/solver/iterate"
)

// NeighbourError tells that the run cannot go on because of one neighbour: it was
// lost (errors.As finds a *p2psap.PeerLostError), left early (p2psap.ErrPeerClosed)
// or sent what no peer of this run sends.
type NeighbourError struct {
	Rank iterate.Rank
	Peer string // its name
	Err  error
}

func (e *NeighbourError) Error() string {
	what := "cannot go on with"
	var lost *p2psap.PeerLostError
	switch {
	case errors.As(e.Err, &lost):
		what = "lost"
	case errors.Is(e.Err, p2psap.ErrPeerClosed):
		what = "left too early by"
	}
	return fmt.Sprintf("runner: %s rank %d: %v", what, e.Rank, e.Err)
}

// Unwrap is what happened.
func (e *NeighbourError) Unwrap() error { return e.Err }

// ErrNoVerdict: the run was asked to end and did not within Config.Grace.
var ErrNoVerdict = errors.New("runner: the peers did not agree on the end in time")
