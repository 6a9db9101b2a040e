package runner_test

import (
	"testing"
	"time"

	"github.com/p2pdc/p2pdc/solver/iterate"
	"github.com/p2pdc/p2pdc/solver/problem"
	"github.com/p2pdc/p2pdc/solver/richardson"
	"github.com/p2pdc/p2pdc/solver/runner"
	"github.com/p2pdc/p2pdc/solver/verify"
	"github.com/stretchr/testify/require"
)

// Planes move over real sockets when one peer is slowed down. The answer covers the grid, and has the bits of the
// sequential method in lockstep.
func TestPlanesMoveOverSockets(t *testing.T) {
	p := membrane(t, 20)
	seq, err := richardson.SolveSequential(p, problem.Jacobi, 1e-6, 0, 0, 0)
	require.NoError(t, err)
	for _, scheme := range []iterate.Scheme{iterate.Synchronous(), iterate.BoundedDelay(0), iterate.Asynchronous()} {
		if testing.Short() && scheme.Name() == "delay:0" {
			continue
		}
		t.Run(scheme.Name(), func(t *testing.T) {
			ns := nodes(t, 3, 10*time.Second)
			run := plan{problem: p, peers: 3, scheme: scheme, node: overNodes(ns), change: func(rank int,
				c *runner.Config) {
				c.Solver.Tolerance = 1e-6
				c.Solver.Balance = true
				c.Solver.BalanceWindow = time.Nanosecond // a window ends with its fourth sweep
				if rank == 2 {
					c.Slow = 200
				}
			}}
			out := run.run(t)
			end := 0
			given := 0
			taken := 0
			for rank, o := range out {
				require.NoError(t, o.err, "rank %d", rank)
				require.Equal(t, iterate.Converged, o.result.Reason)
				require.Equal(t, end, o.box.Lo[2])
				end = o.box.Hi[2]
				given, taken = given+o.result.PlanesSent, taken+o.result.PlanesReceived
			}
			require.Equal(t, p.N[2], end)
			require.Equal(t, given, taken)
			require.Positive(t, given)
			u := assemble(p, out)
			if scheme.Lockstep() {
				points := uint64(0)
				for _, o := range out {
					points += o.result.Points
				}
				require.Equal(t, uint64(seq.Sweeps)*uint64(p.Points()), points, "every sweep relaxes every point once")
				sameBits(t, seq.U, u)
				return
			}
			e, err := verify.Evaluate(p, u, nil)
			require.NoError(t, err)
			require.Equal(t, e.RelativeResidual, out[0].result.Residual)
			require.LessOrEqual(t, e.RelativeResidual, 1e-6)
		})
	}
}
