package solver

import (
	"github.com/p2pdc/p2pdc/internal/solvertest"
	"github.com/p2pdc/p2pdc/solver/problem"
	"github.com/p2pdc/p2pdc/solver/verify"
	"github.com/stretchr/testify/require"
)

// residual is that of the peer's solution.
func singleResidual(t require.TestingT, a *solvertest.Single, p *problem.Problem) float64 {
	u := make([]float64, p.Points())
	a.Peer.Solution(u)
	e, err := verify.Evaluate(p, u, nil)
	require.NoError(t, err)
	return e.RelativeResidual
}
