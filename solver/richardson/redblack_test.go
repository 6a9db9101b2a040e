package richardson

import (
	"testing"

	"github.com/p2pdc/p2pdc/internal/kernel"
	"github.com/p2pdc/p2pdc/internal/solvertest"
	"github.com/p2pdc/p2pdc/solver/iterate"
	"github.com/p2pdc/p2pdc/solver/multilevel"
	"github.com/p2pdc/p2pdc/solver/problem"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// redBlackOracle makes red-black sweeps with plain loops over the whole grid, with the operations that package kernel
// specifies.
func redBlackOracle(t require.TestingT, p *problem.Problem, omega float64, sweeps int) []float64 {
	s, err := newSequential(p, problem.Jacobi)
	require.NoError(t, err)
	require.NoError(t, s.start(nil))
	diagonal := s.row[kernel.Center]
	for range sweeps {
		for colour := range 2 {
			s.each(func(i, d int, idx [3]int) {
				if (idx[0]+idx[1]+idx[2]-3)&1 != colour {
					return
				}
				r := s.defect(s.cur, i, d)
				v := s.cur[i] - float64(omega/diagonal*r)
				if s.rows != nil {
					v = s.cur[i] - float64(omega*float64(r/s.rows[d][kernel.Center]))
				}
				s.cur[i] = problem.Clamp(v, s.phi[d], s.psi[d])
			})
		}
	}
	return s.interior()
}

func TestRedBlackEqualsPlainLoops(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := solvertest.AnyProblem(t)
		omega := rapid.Float64Range(0.5, 1.9).Draw(t, "omega")
		sweeps := rapid.IntRange(1, 30).Draw(t, "sweeps")
		c := problem.Config{
			Problem: p, Partition: solvertest.AnyPartition(t,
				p), Scheme: iterate.Synchronous(), MaxSweeps: iterate.Iteration(sweeps),
			Method: problem.MethodConfig{Name: problem.SOR, Omega: omega}, Executor: solvertest.Threads{},
		}
		n, err := solvertest.NewNetwork(1, multilevel.SOR().New, solvertest.ConfigsFor(c))
		require.NoError(t, err)
		require.NoError(t, n.Run())
		o := n.Peers[0].Outcome()
		if o.Reason != iterate.ReachedSweeps || o.Iterate == 0 {
			return // u⁰ solves it or has the smallest residual, or the residual is 0 to the last bit
		}
		require.EqualValues(t, sweeps, o.Sweeps)
		sweeps = int(o.Iterate) //nolint:gosec // the iterate with the smallest residual is the answer
		solvertest.RequireSameBits(t, redBlackOracle(t, p, omega, sweeps), n.Assemble(p))
	})
}
