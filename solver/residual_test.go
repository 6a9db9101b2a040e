package solver

import "github.com/stretchr/testify/require"

// residual is that of the peer's solution.
func singleResidual(t require.TestingT, a *single, p *Problem) float64 {
	u := make([]float64, p.Points())
	a.peer.Solution(u)
	e, err := Evaluate(p, u, nil)
	require.NoError(t, err)
	return e.RelativeResidual
}
