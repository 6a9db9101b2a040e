package runner_test

import (
	"testing"

	"github.com/p2pdc/p2pdc/solver/iterate"
	"github.com/p2pdc/p2pdc/solver/runner"
)

// A sweep of two peers in one process over loopback, and one of one peer.
func BenchmarkSweep(b *testing.B) {
	p := membrane(b, 64)
	for _, bench := range []struct {
		name   string
		scheme iterate.Scheme
		peers  int
	}{{"one", iterate.Synchronous(), 1}, {"sync", iterate.Synchronous(), 2}, {"async", iterate.Asynchronous(), 2}} {
		b.Run(bench.name, func(b *testing.B) {
			pl := plan{problem: p, peers: bench.peers, scheme: bench.scheme,
				change: func(_ int, c *runner.Config) {
					c.Solver.Tolerance = 0
					c.Solver.MaxSweeps = iterate.Iteration(max(b.N, 1))
					c.Solver.CheckEvery = 1000
				}}
			if bench.peers > 1 {
				pl.node = overNodes(nodes(b, bench.peers, 0))
			}
			b.ResetTimer()
			for _, o := range pl.run(b) {
				if o.err != nil {
					b.Fatal(o.err)
				}
			}
		})
	}
}
