package solver_test

import (
	"testing"

	"github.com/p2pdc/p2pdc/problems"
	"github.com/p2pdc/p2pdc/solver/problem"
	"github.com/p2pdc/p2pdc/solver/richardson"
	"github.com/p2pdc/p2pdc/solver/verify"
	"github.com/stretchr/testify/require"
)

// The errors against exact solutions are those that an independent program found.
func TestErrorsAgainstExactSolutions(t *testing.T) {
	for _, c := range []struct {
		name string
		n    int
		want float64
	}{
		{"ball3d", 31, 5.2288e-3},
		{"paraboloid", 31, 1.158e-3},
		{"quartic", 15, 3.798e-3},
		{"quartic", 31, 9.631e-4},
	} {
		if testing.Short() && c.n == 31 && c.name != "quartic" { // the longest
			continue
		}
		b, err := problems.Lookup(c.name)
		require.NoError(t, err)
		p, err := b.Make([3]int{c.n, c.n, c.n})
		require.NoError(t, err)
		require.NoError(t, p.Validate())
		s, err := richardson.SolveSequential(p, problem.Jacobi, 1e-7, 0, 0, 0)
		require.NoError(t, err)
		e, err := verify.Evaluate(p, s.U, nil)
		require.NoError(t, err)
		require.LessOrEqual(t, e.RelativeResidual, s.Residual, "sweeps after the one that was judged only help")
		require.LessOrEqual(t, e.RelativeResidual, 1e-7)
		require.InEpsilon(t, c.want, e.MaxError, 2e-3, "%s at n = %d, %d sweeps", c.name, c.n, s.Sweeps)
	}
}
