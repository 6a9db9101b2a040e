package solver

import (
	"testing"

	"github.com/p2pdc/p2pdc/internal/solvertest"
	"github.com/p2pdc/p2pdc/solver/iterate"
	"github.com/p2pdc/p2pdc/solver/problem"
	"github.com/p2pdc/p2pdc/solver/verify"
	"github.com/stretchr/testify/require"
)

// Half the step length needs about twice as many sweeps to the same answer, with one and two peers. A step length for
// which the iteration is no contraction is refused.
func TestStep(t *testing.T) {
	p := solvertest.Membrane([3]int{9, 9, 9}, 3)
	part, err := problem.Slabs(p.N, 2, nil)
	require.NoError(t, err)
	sweeps := map[float64]iterate.Iteration{}
	for _, step := range []float64{0, 1, 0.5} {
		c := problem.Config{
			Problem:   p,
			Partition: part,
			Scheme:    iterate.Synchronous(),
			Tolerance: 1e-9,
			Method:    problem.MethodConfig{Step: step},
		}
		n := runOf(t, 1, c)
		require.NoError(t, n.Run())
		require.Equal(t, iterate.Converged, n.Peers[0].Outcome().Reason)
		sweeps[step] = n.Peers[0].Outcome().Sweeps
		e, err := verify.Evaluate(p, n.Assemble(p), nil)
		require.NoError(t, err)
		require.LessOrEqual(t, e.RelativeResidual, 1e-9)
	}
	require.Equal(t, sweeps[0], sweeps[1])
	require.Greater(t, float64(sweeps[0.5]), 1.6*float64(sweeps[1]))
	for _, step := range []float64{-1, 1.01} {
		_, err := New(
			problem.Config{
				Problem:   p,
				Partition: part,
				Scheme:    iterate.Synchronous(),
				Method:    problem.MethodConfig{Step: step},
			},
		)
		require.ErrorContains(t, err, "contraction")
	}
}
