package richardson

import (
	"testing"

	"github.com/p2pdc/p2pdc/internal/solvertest"
	"github.com/p2pdc/p2pdc/solver/iterate"
	"github.com/p2pdc/p2pdc/solver/problem"
	"github.com/p2pdc/p2pdc/solver/verify"
	"github.com/stretchr/testify/require"
)

// Boxes large enough to be cut into pieces and parts give the same bits on any
// number of threads; with -race this also shows that pieces do not overlap.
func TestThreadsShareABox(t *testing.T) {
	schemes := []iterate.Scheme{iterate.Synchronous(), iterate.BoundedDelay(0)}
	for i, c := range []struct {
		n     [3]int
		dim   int
		parts [3]int
		order problem.Order
	}{
		{[3]int{70, 64, 66}, 3, [3]int{1, 1, 1}, problem.Jacobi},
		{[3]int{130, 70, 40}, 3, [3]int{1, 1, 1}, problem.InTurn},
		{[3]int{45, 70, 50}, 3, [3]int{2, 1, 2}, problem.Jacobi},
		{[3]int{700, 600, 1}, 2, [3]int{1, 1, 1}, problem.Jacobi},
		{[3]int{300, 200, 1}, 2, [3]int{1, 3, 1}, problem.Jacobi},
		{[3]int{300000, 1, 1}, 1, [3]int{2, 1, 1}, problem.Jacobi},
	} {
		p := solvertest.Membrane(c.n, c.dim)
		part, err := problem.GridOf(p.N, c.parts)
		require.NoError(t, err)
		want, err := SolveSequential(p, c.order, 0, 2, 1, 3)
		require.NoError(t, err)
		for k, s := range schemes {
			if testing.Short() && k != i%2 {
				continue
			}
			n := runOf(
				t,
				4,
				problem.Config{
					Problem:    p,
					Partition:  part,
					Scheme:     s,
					Order:      c.order,
					CheckEvery: 2,
					Lag:        1,
					MaxSweeps:  3,
					Executor:   solvertest.Threads{},
				},
			)
			most := 0
			for _, st := range workersOf(n)[0].pass.sweep {
				most = max(most, st.Chunks)
			}
			require.Greater(t, most, 1, "nothing is shared")
			require.NoError(t, n.Run())
			require.Equal(t, want.Residual, workersOf(n)[0].Outcome().Residual)
			solvertest.RequireSameBits(t, want.U, n.Assemble(p))
		}
	}
}

// Evaluate divides a large grid into slabs and gives the result of one slab.
func TestEvaluateInSlabs(t *testing.T) {
	p := solvertest.Membrane([3]int{70, 66, 64}, 3)
	s, err := SolveSequential(p, problem.Jacobi, 0, 0, 0, 5)
	require.NoError(t, err)
	e, err := verify.Evaluate(p, s.U, solvertest.Threads{})
	require.NoError(t, err)
	require.Equal(t, s.Residual, e.RelativeResidual)
}
