package fas

import (
	"testing"

	"github.com/p2pdc/p2pdc/internal/solvertest"
	"github.com/p2pdc/p2pdc/solver/iterate"
	"github.com/p2pdc/p2pdc/solver/multilevel"
	"github.com/p2pdc/p2pdc/solver/problem"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// TestTimeStepsHaveTheAnswerOfMultigrid checks that all steps converge, in every scheme and over a network that loses and
// reorders messages, and that the answer equals that of multigrid within the tolerance.
func TestTimeStepsHaveTheAnswerOfMultigrid(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := anyRun(t)
		c.Problem = solvertest.Evolve(t, c.Problem)
		c.Tolerance = 1e-9
		c.Scheme = rapid.SampledFrom([]iterate.Scheme{
			iterate.Synchronous(), iterate.Asynchronous(), iterate.BoundedDelay(0), iterate.BoundedDelay(2),
		}).Draw(t, "scheme")
		if _, err := newPlan(&c); err != nil {
			t.Skip(err)
		}
		n, err := solvertest.NewNetwork(rapid.Uint64().Draw(t, "seed"), Method{}.New, solvertest.ConfigsFor(c))
		require.NoError(t, err)
		n.Segment = 400
		if c.Scheme.Asynchronous() {
			n.Loss, n.Duplicate = rapid.Float64Range(0, 0.4).Draw(t, "loss"), 0.1
		}
		require.NoError(t, n.Run())
		for r, q := range n.Peers {
			require.Equal(t, iterate.Converged, q.Outcome().Reason, "rank %d", r)
			require.Equal(t, c.Problem.Steps(), q.Outcome().Steps, "rank %d", r)
		}
		one := problem.Config{Problem: c.Problem, Scheme: iterate.Synchronous(), Tolerance: 1e-11,
			Method: problem.MethodConfig{Name: problem.Multigrid}}
		one.Partition, err = problem.Slabs(c.Problem.N, 1, nil)
		require.NoError(t, err)
		m, err := solvertest.NewNetwork(1, multilevel.Method{}.New, solvertest.ConfigsFor(one))
		require.NoError(t, err)
		require.NoError(t, m.Run())
		require.InDeltaSlice(t, m.Assemble(c.Problem), n.Assemble(c.Problem), 1e-6)
	})
}
