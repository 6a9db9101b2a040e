package runner_test

import (
	"fmt"
	"testing"

	"github.com/p2pdc/p2pdc/solver/iterate"
	"github.com/p2pdc/p2pdc/solver/problem"
	"github.com/p2pdc/p2pdc/solver/runner"
	"github.com/p2pdc/p2pdc/solver/verify"
	"github.com/stretchr/testify/require"
)

// Overlapping boxes over real sockets: peers that share an edge or a corner have sessions
// too, and shares of the coarse problem travel on the agreement sessions.
func TestSchwarzOverSockets(t *testing.T) {
	p := membrane(t, 21)
	for _, c := range []struct {
		scheme iterate.Scheme
		peers  int
		method problem.MethodConfig
	}{
		{iterate.Synchronous(), 4, problem.MethodConfig{Overlap: 2, InnerCycles: 1}},
		{iterate.BoundedDelay(2), 4, problem.MethodConfig{Overlap: 8, Local: problem.SOR, InnerCycles: 10}},
		{iterate.Asynchronous(), 8, problem.MethodConfig{Overlap: 4}},
		{iterate.Asynchronous(), 4, problem.MethodConfig{Overlap: 1, Local: problem.SOR, InnerCycles: 12,
			Flexible: true,
			Coarse:   -1}},
		{iterate.Asynchronous(), 2, problem.MethodConfig{Overlap: 3, Local: problem.Richardson, InnerCycles: 50}},
		{iterate.Hybrid([]int{0, 0, 1, 1}), 4, problem.MethodConfig{Overlap: 2}},
	} {
		c.method.Name = problem.Schwarz
		t.Run(fmt.Sprintf("%s/%d peers/%s", c.scheme.Name(), c.peers, c.method.Local), func(t *testing.T) {
			pl := plan{
				problem: p, peers: c.peers, boxes: true, scheme: c.scheme, node: overNodes(nodes(t, c.peers, 0)),
				change: func(_ int, r *runner.Config) { r.Solver.Method = c.method },
			}
			out := pl.run(t)
			for rank, o := range out {
				require.NoError(t, o.err, "rank %d", rank)
				require.Equal(t, iterate.Converged, o.result.Reason)
				require.Len(t, o.result.Halos, c.peers-1, "boxes that share only an edge exchange values, too")
				for _, s := range o.result.Halos {
					async := c.scheme.Between(iterate.Rank(rank), s.Rank).Asynchronous()
					require.Equal(t, async, contains(s.Info.Composition, "Asynchronous"))
				}
			}
			e, err := verify.Evaluate(p, assemble(p, out), problem.Sequential{})
			require.NoError(t, err)
			require.LessOrEqual(t, e.RelativeResidual, 1e-5)
			require.Equal(t, e.RelativeResidual, out[0].result.Residual)
		})
	}
}
