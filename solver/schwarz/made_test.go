package schwarz

import (
	"testing"

	"github.com/p2pdc/p2pdc/solver/internal/solvertest"
	"github.com/p2pdc/p2pdc/solver/problem"
)

// newNetwork builds the peers of a run.
func newNetwork(seed uint64, configs []problem.Config) (*solvertest.Network, error) {
	return solvertest.NewNetwork(seed, Method{}.New, configs)
}

func newPeerOf(c problem.Config) (problem.Peer, error) {
	if err := c.Method.Check(); err != nil {
		return nil, err
	}
	return Method{}.New(c)
}

func solveTogether(t testing.TB, configs []problem.Config) []problem.Peer {
	return solvertest.Together(t, Method{}.New, configs)
}
