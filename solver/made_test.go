package solver

import (
	"github.com/p2pdc/p2pdc/internal/solvertest"
	"github.com/p2pdc/p2pdc/solver/problem"
	"github.com/stretchr/testify/require"
)

// newNetwork builds the peers of a run by the methods of this module.
func newNetwork(seed uint64, configs []problem.Config) (*solvertest.Network, error) {
	return solvertest.NewNetwork(seed, New, configs)
}

func newSingle(t require.TestingT, c problem.Config) *solvertest.Single {
	return solvertest.NewSingle(t, New, c)
}

func runOf(t require.TestingT, seed uint64, c problem.Config) *solvertest.Network {
	n, err := newNetwork(seed, solvertest.ConfigsFor(c))
	require.NoError(t, err)
	return n
}
