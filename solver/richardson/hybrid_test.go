package richardson

import (
	"testing"

	"github.com/p2pdc/p2pdc/internal/solvertest"
	"github.com/p2pdc/p2pdc/solver/iterate"
	"github.com/p2pdc/p2pdc/solver/problem"
	"github.com/p2pdc/p2pdc/solver/verify"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestHybridOfOneClusterIsBitwiseSequential(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) { checkLockstep(t, oneCluster) })
}

// oneCluster stands for Hybrid with as many zeros as the partition has peers.
var oneCluster = iterate.Hybrid(nil)

func TestHybridMeetsTheTolerance(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := solvertest.AnyProblem(t)
		part := solvertest.AnyPartition(t, p)
		c := problem.Config{
			Problem: p, Partition: part, Scheme: iterate.Hybrid(anyClusters(t, part.Peers())), Tolerance: 1e-4,
			CheckEvery: iterate.Iteration(rapid.IntRange(1, 9).Draw(t, "every")),
			Order:      rapid.SampledFrom([]problem.Order{problem.Jacobi, problem.InTurn}).Draw(t, "order"),
			MaxSweeps:  iterate.Iteration(rapid.SampledFrom([]int{0, 0, 0, 30}).Draw(t, "max")),
		}
		n, err := newNetwork(rapid.Uint64().Draw(t, "seed"), solvertest.ConfigsFor(c))
		require.NoError(t, err)
		n.Loss, n.Duplicate = rapid.Float64Range(0, 0.5).Draw(t, "loss"), 0.1
		require.NoError(t, n.Run())
		e, err := verify.Evaluate(p, n.Assemble(p), nil)
		require.NoError(t, err)
		reason := workersOf(n)[0].Outcome().Reason
		for _, w := range workersOf(n) {
			require.Equal(t, reason, w.Outcome().Reason)
			if !c.Scheme.Lockstep() {
				require.Equal(t, e.RelativeResidual, w.Outcome().Residual, "what was agreed is what is true")
			}
		}
		if c.MaxSweeps == 0 {
			require.Equal(t, iterate.Converged, reason)
			require.LessOrEqual(t, e.RelativeResidual, c.Tolerance)
		}
	})
}

// Each pair of neighbours keeps its own rule: within a cluster relaxation k reads
// iterate k, between clusters peers drift apart.
func TestHybridAdmitsPerNeighbour(t *testing.T) {
	p := solvertest.Membrane([3]int{4, 4, 16}, 3)
	c := problem.Config{
		Problem:   p,
		Partition: solvertest.SlabsOf(t, p, 4),
		Scheme:    iterate.Hybrid([]int{0, 0, 1, 1}),
		MaxSweeps: 400,
	}
	n := runOf(t, 5, c)
	n.Loss = 0.2
	n.RelaxTime[0], n.RelaxTime[1], n.RelaxTime[2], n.RelaxTime[3] = 1000, 1000, 50000, 50000
	within, between := 0, 0
	n.Observe = func() {
		at := func(r int) int { return int(workersOf(n)[r].Iterate) }
		for _, pair := range [][2]int{{0, 1}, {1, 0}, {2, 3}, {3, 2}} {
			within = max(within, at(pair[0])-made(workersOf(n)[pair[1]]))
		}
		between = max(between, at(1)-at(2), at(2)-at(1))
	}
	require.NoError(t, n.Run())
	require.Equal(t, 1, within)
	require.Greater(t, between, 20)
}

// With one peer per cluster every operation is that of the asynchronous scheme:
// the same seed gives the same run.
func TestHybridOfOnePeerPerClusterIsAsynchronous(t *testing.T) {
	p := solvertest.Membrane([3]int{5, 5, 12}, 3)
	play := func(s iterate.Scheme) *solvertest.Network {
		n := runOf(
			t,
			21,
			problem.Config{Problem: p, Partition: solvertest.SlabsOf(t, p, 3), Scheme: s, Tolerance: 1e-5},
		)
		n.Loss, n.Duplicate = 0.2, 0.1
		require.NoError(t, n.Run())
		return n
	}
	a, b := play(iterate.Asynchronous()), play(iterate.Hybrid([]int{0, 1, 2}))
	require.Equal(t, a.Events, b.Events)
	require.Equal(t, a.Now, b.Now)
	for r := range workersOf(a) {
		require.Equal(t, workersOf(a)[r].Outcome(), workersOf(b)[r].Outcome())
	}
	solvertest.RequireSameBits(t, a.Assemble(p), b.Assemble(p))
}

func TestHybridNeedsAClusterPerPeer(t *testing.T) {
	p := solvertest.Membrane([3]int{2, 2, 6}, 3)
	_, err := newWorker(
		problem.Config{Problem: p, Partition: solvertest.SlabsOf(t, p, 3), Scheme: iterate.Hybrid([]int{0, 1})},
	)
	require.ErrorContains(t, err, "clusters for 2 peers; the run has 3")
}

// Clusters are even and connected, on any grid of boxes.
func TestClustersAreConnected(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var parts, n [3]int
		for a := range 3 {
			parts[a] = rapid.IntRange(1, 5).Draw(t, "parts")
			n[a] = parts[a]
		}
		part, err := problem.GridOf(n, parts)
		require.NoError(t, err)
		asked := rapid.IntRange(1, 9).Draw(t, "clusters")
		label := problem.Clusters(part, asked)
		size := map[int]int{}
		for _, c := range label {
			size[c]++
		}
		most := min(asked, part.Peers())
		require.Len(t, size, most)
		for c := range most {
			require.InDelta(t, float64(part.Peers())/float64(most), size[c], 1)
		}
		reached := map[int]int{}
		seen := make([]bool, part.Peers())
		for r := range seen {
			if seen[r] {
				continue
			}
			require.Zero(t, reached[label[r]], "cluster %d is in pieces: %v %v", label[r], parts, label)
			todo := []iterate.Rank{iterate.Rank(r)}
			seen[r] = true
			for len(todo) > 0 {
				q := todo[0]
				todo = todo[1:]
				reached[label[q]]++
				for _, nb := range part.Neighbours(q) {
					if !seen[nb.Rank] && label[nb.Rank] == label[q] {
						seen[nb.Rank] = true
						todo = append(todo, nb.Rank)
					}
				}
			}
		}
	})
}
