package richardson

import (
	"time"

	"pgregory.net/rapid"

	"github.com/p2pdc/p2pdc/internal/solvertest"
	"github.com/p2pdc/p2pdc/solver/iterate"
	"github.com/p2pdc/p2pdc/solver/problem"
)

// speeds draws a time per point for each peer. Some change during the run.
func speeds(t *rapid.T, peers int) func(rank int, now time.Duration) time.Duration {
	slow, later := make([]time.Duration, peers), make([]time.Duration, peers)
	for i := range slow {
		slow[i] = time.Duration(rapid.SampledFrom([]int{1, 1, 1, 3, 10}).Draw(t, "slow")) * 2 * time.Microsecond
		later[i] = time.Duration(rapid.SampledFrom([]int{1, 1, 10}).Draw(t, "later")) * 2 * time.Microsecond
	}
	change := time.Duration(rapid.IntRange(1, 100).Draw(t, "change")) * time.Millisecond
	return func(rank int, now time.Duration) time.Duration {
		if now < change {
			return slow[rank]
		}
		return later[rank]
	}
}

// anySlabs draws a partition into slabs along the slowest axis.
func anySlabs(t *rapid.T, p *problem.Problem) problem.Partition {
	slow := p.Dimension - 1
	n := p.N[slow]
	cuts := []int{0}
	for i := 1; i < n; i++ {
		if len(cuts) < 6 && rapid.IntRange(0, 2).Draw(t, "cut") == 0 {
			cuts = append(cuts, i)
		}
	}
	part := problem.Partition{Cuts: [3][]int{{0, p.N[0]}, {0, p.N[1]}, {0, p.N[2]}}}
	part.Cuts[slow] = append(cuts, n)
	return part
}

// anyClusters draws the cluster of each peer. Clusters need not be connected.
func anyClusters(t *rapid.T, peers int) []int {
	out := make([]int, peers)
	for r := range out {
		out[r] = rapid.IntRange(0, 3).Draw(t, "cluster")
	}
	return out
}

// anyStepping draws a run of a nonstationary problem.
func anyStepping(t *rapid.T, s func(problem.Partition) iterate.Scheme) problem.Config {
	p := solvertest.Evolving(t)
	return steppingOf(t, p, solvertest.AnyPartition(t, p), s)
}

// steppingOf draws a run of a nonstationary problem with a partition.
func steppingOf(
	t *rapid.T,
	p *problem.Problem,
	part problem.Partition,
	s func(problem.Partition) iterate.Scheme,
) problem.Config {
	c := problem.Config{
		Problem: p, Partition: part, Scheme: s(part), Executor: solvertest.Backwards{},
		Tolerance:   rapid.SampledFrom([]float64{1e-2, 1e-4}).Draw(t, "tolerance"),
		CheckEvery:  iterate.Iteration(rapid.IntRange(0, 9).Draw(t, "every")),
		Reconfigure: rapid.Bool().Draw(t, "reconfigure"),
	}
	c.Lag = iterate.Iteration(rapid.IntRange(0, int(c.CheckEvery)).Draw(t, "lag"))
	return c
}
