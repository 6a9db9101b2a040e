package fas

import (
	"testing"

	"github.com/p2pdc/p2pdc/internal/solvertest"
	"github.com/p2pdc/p2pdc/solver/iterate"
	"github.com/p2pdc/p2pdc/solver/problem"
	"github.com/p2pdc/p2pdc/solver/verify"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// anyRun draws a problem and a partition into boxes that are large enough.
func anyRun(t *rapid.T) problem.Config {
	dim := rapid.IntRange(1, 3).Draw(t, "dimension")
	n := [3]int{1, 1, 1}
	for a := range dim {
		n[a] = rapid.SampledFrom([][]int{{7, 31, 63, 95, 40, 100}, {7, 15, 31, 23, 20, 33}, {7, 15, 12}}[dim-1]).Draw(t, "n")
	}
	p := solvertest.AnyProblemOf(t, dim, n)
	var part problem.Partition
	for a := range 3 {
		part.Cuts[a] = []int{0}
		for at := 0; a < dim && len(part.Cuts[a]) < 4; {
			at += rapid.IntRange(2, 20).Draw(t, "length")
			if at > n[a]-2 {
				break
			}
			part.Cuts[a] = append(part.Cuts[a], at)
		}
		part.Cuts[a] = append(part.Cuts[a], n[a])
	}
	return problem.Config{Problem: p, Partition: part, Method: problem.MethodConfig{Name: problem.FAS}, Tolerance: 1e-6}
}

// TestConvergesInEveryScheme checks that, for any scheme, over a network that loses and reorders messages, the residual
// of the answer meets the tolerance and equals the one that the peers report.
func TestConvergesInEveryScheme(t *testing.T) {
	schemes := []iterate.Scheme{
		iterate.Synchronous(), iterate.Asynchronous(), iterate.BoundedDelay(0), iterate.BoundedDelay(2), iterate.Hybrid(nil),
	}
	for _, s := range schemes {
		t.Run(s.Name(), func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				c := anyRun(t)
				if c.Scheme = s; s.Name() == "hybrid" {
					c.Scheme = iterate.Hybrid(problem.Clusters(c.Partition, rapid.IntRange(1, 3).Draw(t, "clusters")))
				}
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
				}
				e, err := verify.Evaluate(c.Problem, n.Assemble(c.Problem), nil)
				require.NoError(t, err)
				require.LessOrEqual(t, e.RelativeResidual, c.Tolerance)
				require.Equal(t, e.RelativeResidual, n.Peers[0].Outcome().Residual, "the residual that the peers report")
			})
		})
	}
}
