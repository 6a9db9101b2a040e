package fas

import (
	"testing"

	"github.com/p2pdc/p2pdc/solver/iterate"
	"github.com/p2pdc/p2pdc/solver/problem"
	"github.com/stretchr/testify/require"
)

// TestGridsThatDoNotHalve checks that the steps and the work do not depend on whether points of the grids coincide.
func TestGridsThatDoNotHalve(t *testing.T) {
	for name, make := range shapes {
		for _, c := range []struct{ n, like int }{{64, 63}, {50, 47}, {30, 31}, {61, 63}, {100, 95}} {
			if testing.Short() && c.n > 64 {
				continue
			}
			for i, s := range []world{{latency: .1}, {latency: 2}, {latency: .1, scheme: iterate.Synchronous()}} {
				s.parts = [3]int{2, 2, 2}
				want, o := s.run(t, make(c.like)), s.run(t, make(c.n))
				t.Log(name, c.n, i, want, o)
				require.NotZero(t, o.steps, "%s, %d points an axis: not converged", name, c.n)
				require.LessOrEqual(t, float64(o.steps), 1.5*float64(want.steps), "%s, %d points an axis, run %d", name, c.n, i)
				require.LessOrEqual(t, o.work, 1.5*want.work, "%s, %d points an axis, run %d", name, c.n, i)
			}
		}
	}
}

// TestGridsThatAreTooSmall checks that the refusal of a grid or of a partition says what to do.
func TestGridsThatAreTooSmall(t *testing.T) {
	check := func(n, peers int) error {
		p := hill(n)
		part, err := problem.Slabs(p.N, peers, nil)
		require.NoError(t, err)
		c := problem.Config{Problem: p, Partition: part, Scheme: iterate.Synchronous()}
		require.NoError(t, c.Prepare())
		return Method{}.Check(&c)
	}
	require.ErrorContains(t, check(2, 1), "a grid of [2 2 2] points is too small for a coarser one; use method schwarz")
	require.ErrorContains(t, check(64, 50), "the method needs 3: use fewer peers")
	require.NoError(t, check(4, 1))
	require.NoError(t, check(64, 16))
}
