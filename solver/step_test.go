package solver

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// Half a step is about half as fast and comes to the same answer, on two peers as on
// one; a step that is no contraction is refused.
func TestStep(t *testing.T) {
	p := membrane([3]int{9, 9, 9}, 3)
	part, err := Slabs(p.N, 2, nil)
	require.NoError(t, err)
	sweeps := map[float64]Iteration{}
	for _, step := range []float64{0, 1, 0.5} {
		c := Config{Problem: p, Partition: part, Scheme: Synchronous(), Tolerance: 1e-9, Method: MethodConfig{Step: step}}
		peers := together(t, configsFor(c))
		require.Equal(t, Converged, peers[0].Outcome().Reason)
		sweeps[step] = peers[0].Outcome().Sweeps
		e, err := Evaluate(p, collected(p, peers), nil)
		require.NoError(t, err)
		require.LessOrEqual(t, e.RelativeResidual, 1e-9)
	}
	require.Equal(t, sweeps[0], sweeps[1])
	require.Greater(t, float64(sweeps[0.5]), 1.6*float64(sweeps[1]))
	for _, step := range []float64{-1, 1.01} {
		_, err := New(Config{Problem: p, Partition: part, Scheme: Synchronous(), Method: MethodConfig{Step: step}})
		require.ErrorContains(t, err, "contraction")
	}
}
