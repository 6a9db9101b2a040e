package solver

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// Boxes large enough to be cut into pieces and parts give the same bits on any
// number of threads; with -race this also shows that pieces do not overlap.
func TestThreadsShareABox(t *testing.T) {
	for _, c := range []struct {
		n     [3]int
		dim   int
		parts [3]int
		order Order
	}{
		{[3]int{70, 64, 66}, 3, [3]int{1, 1, 1}, Jacobi},
		{[3]int{130, 70, 40}, 3, [3]int{1, 1, 1}, InTurn},
		{[3]int{45, 70, 50}, 3, [3]int{2, 1, 2}, Jacobi},
		{[3]int{700, 600, 1}, 2, [3]int{1, 1, 1}, Jacobi},
		{[3]int{300, 200, 1}, 2, [3]int{1, 3, 1}, Jacobi},
		{[3]int{300000, 1, 1}, 1, [3]int{2, 1, 1}, Jacobi},
	} {
		p := membrane(c.n, c.dim)
		part, err := GridOf(p.N, c.parts)
		require.NoError(t, err)
		want, err := SolveSequential(p, c.order, 0, 2, 1, 3)
		require.NoError(t, err)
		for _, s := range []Scheme{Synchronous(), BoundedDelay(0)} {
			n := runOf(t, 4, Config{Problem: p, Partition: part, Scheme: s, Order: c.order, CheckEvery: 2, Lag: 1, MaxSweeps: 3, Executor: threads{}})
			most := 0
			for _, st := range workersOf(n)[0].pass.sweep {
				most = max(most, st.chunks)
			}
			require.Greater(t, most, 1, "nothing is shared")
			require.NoError(t, n.run())
			require.Equal(t, want.Residual, workersOf(n)[0].Outcome().Residual)
			requireSameBits(t, want.U, n.assemble(p, part))
		}
	}
}

// Evaluate cuts a large grid into slabs; what it finds is what one slab finds.
func TestEvaluateInSlabs(t *testing.T) {
	p := membrane([3]int{70, 66, 64}, 3)
	s, err := SolveSequential(p, Jacobi, 0, 0, 0, 5)
	require.NoError(t, err)
	e, err := Evaluate(p, s.U, threads{})
	require.NoError(t, err)
	require.Equal(t, s.Residual, e.RelativeResidual)
}
