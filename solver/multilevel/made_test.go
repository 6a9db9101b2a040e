package multilevel

import (
	"github.com/stretchr/testify/require"

	"github.com/p2pdc/p2pdc/internal/solvertest"
	"github.com/p2pdc/p2pdc/solver/problem"
	"github.com/p2pdc/p2pdc/solver/verify"
)

func newPeerOf(c problem.Config) (problem.Peer, error) {
	if err := c.Method.Check(); err != nil {
		return nil, err
	}
	return Method{c.Method.Name}.New(c)
}

func newSingle(t require.TestingT, c problem.Config) *solvertest.Single {
	return solvertest.NewSingle(t, newPeerOf, c)
}

// singleResidual returns the relative residual of a peer that has the whole grid.
func singleResidual(t require.TestingT, a *solvertest.Single, p *problem.Problem) float64 {
	u := make([]float64, p.Points())
	a.Peer.Solution(u)
	e, err := verify.Evaluate(p, u, nil)
	require.NoError(t, err)
	return e.RelativeResidual
}
