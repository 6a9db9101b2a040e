package schwarz

import (
	"github.com/p2pdc/p2pdc/internal/solvertest"
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
