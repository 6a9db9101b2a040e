package runner_test

import (
	"fmt"
	"testing"

	"github.com/p2pdc/p2pdc/solver/iterate"
	"github.com/p2pdc/p2pdc/solver/problem"
	"github.com/p2pdc/p2pdc/solver/runner"
	"github.com/stretchr/testify/require"
)

// Methods of the whole grid have the bits of one peer, over real sockets and over sockets that are
// busy now and then.
func TestWholeGridMethods(t *testing.T) {
	p := membrane(t, 33)
	for _, name := range []string{problem.SOR, problem.Multigrid} {
		var want []outcome
		for _, peers := range []int{1, 2, 4} {
			for _, real := range []bool{true, false} {
				if peers == 1 && !real {
					continue
				}
				t.Run(fmt.Sprintf("%s/%d peers/sockets %v", name, peers, real), func(t *testing.T) {
					m := newMesh(uint64(peers))
					m.busy, m.grant = 0.2, 8
					pl := plan{problem: p, peers: peers, boxes: peers > 2, scheme: iterate.Synchronous(),
						node:   func(rank int) runner.Node { return m.node(names(peers)[rank]) },
						change: func(_ int, c *runner.Config) { c.Solver.Method.Name, c.Threads = name, 2 }}
					if real && peers > 1 {
						pl.node = overNodes(nodes(t, peers, 0))
					}
					out := pl.run(t)
					for rank, o := range out {
						require.NoError(t, o.err, "rank %d", rank)
						require.Equal(t, iterate.Converged, o.result.Reason)
						require.Positive(t, o.result.Points)
					}
					if want == nil {
						want = out
						return
					}
					for rank, o := range out {
						require.Equal(t, want[0].result.Iterate, o.result.Iterate, "rank %d", rank)
						require.Equal(t, want[0].result.Residual, o.result.Residual, "rank %d", rank)
					}
					sameBits(t, assemble(p, want), assemble(p, out))
				})
			}
		}
	}
}
