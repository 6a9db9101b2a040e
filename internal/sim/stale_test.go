package sim

import (
	"testing"

	"github.com/p2pdc/p2pdc/solver/iterate"
	"github.com/p2pdc/p2pdc/solver/problem"
	"github.com/p2pdc/p2pdc/solver/richardson"
	"github.com/stretchr/testify/require"
)

// Without old values the iteration is the synchronous one. With values 0 to 4 sweeps old it takes
// more sweeps, more so with thin blocks.
func TestStaleness(t *testing.T) {
	p := plain(t, [3]int{16, 16, 16}, 1, iterate.Synchronous()).Problem
	slabs, err := problem.Slabs(p.N, 8, nil)
	require.NoError(t, err)
	boxes, err := problem.Boxes(p.N, 8)
	require.NoError(t, err)
	sequential, err := richardson.SolveSequential(p, problem.Jacobi, 1e-6, 1, 1, 0)
	require.NoError(t, err)
	var more []float64
	for _, part := range []problem.Partition{slabs, boxes} {
		fresh, err := (&Stale{Problem: p, Partition: part, Tolerance: 1e-6, Seed: 1}).Run()
		require.NoError(t, err)
		require.Zero(t, fresh.Age)
		require.InDelta(t, float64(sequential.Sweeps), float64(fresh.Sweeps), 24, "but for when it is looked at")
		old, err := (&Stale{Problem: p, Partition: part, Tolerance: 1e-6, Most: 4, Seed: 1}).Run()
		require.NoError(t, err)
		require.InDelta(t, 2, old.Age, 0.1)
		more = append(more, float64(old.Sweeps)/float64(fresh.Sweeps)-1)
	}
	t.Logf("%d sweeps; slabs of 2 planes take %.1f %% more with old values, boxes %.1f %%", sequential.Sweeps, 100*more[0],
		100*more[1])
	require.Greater(t, more[0], 2*more[1])
	require.Positive(t, more[1])
}
