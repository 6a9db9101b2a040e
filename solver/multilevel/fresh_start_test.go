package multilevel

import (
	"testing"

	"github.com/p2pdc/p2pdc/internal/solvertest"
	"github.com/p2pdc/p2pdc/solver/iterate"
	"github.com/p2pdc/p2pdc/solver/method"
	"github.com/p2pdc/p2pdc/solver/problem"
	"github.com/stretchr/testify/require"
)

// Multigrid ignores starting values that are little better than the reference vector, as those of a run that has lost a
// peer before its first cycle is complete, and begins with others.
func TestStartingValuesOfMultigrid(t *testing.T) {
	p := solvertest.Membrane([3]int{31, 31, 31}, 3)
	part, err := problem.GridOf(p.N, [3]int{1, 1, 2})
	require.NoError(t, err)
	from := func(u []float64, tol float64) (cycles iterate.Iteration, answer []float64) {
		config := problem.Config{
			Problem: p, Partition: part, Tolerance: tol, MaxSweeps: 30, Scheme: iterate.Synchronous(),
			Method: problem.MethodConfig{Name: problem.Multigrid}, GatherPoints: 100,
		}
		k := newPeerGroup(t, 1, config)
		for r, c := range solvertest.ConfigsFor(config) {
			if u == nil {
				break
			}
			b := part.Box(iterate.Rank(r))
			c.Initial = make([]float64, b.Points())
			method.CopyBox(c.Initial, method.DenseLayout(b.Size()), b.From(b.Lo), u, method.DenseLayout(p.N), b.Lo)
			k.peers[r], err = newPeerOf(c)
			require.NoError(t, err)
		}
		k.run()
		require.Equal(t, iterate.Converged, k.peers[0].Outcome().Reason)
		return k.peers[0].Outcome().Sweeps, k.answer(p)
	}
	_, near := from(nil, 1e-5)
	cycles, answer := from(nil, 1e-9)
	far := make([]float64, len(answer))
	for i, v := range answer {
		far[i] = v + 0.3*float64(i%5)
	}
	again, same := from(far, 1e-9)
	require.Equal(t, cycles, again)
	solvertest.RequireSameBits(t, answer, same)
	fewer, _ := from(near, 1e-9)
	require.Less(t, fewer, cycles)
}
