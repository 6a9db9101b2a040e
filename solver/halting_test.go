package solver

import (
	"testing"
	"time"

	"github.com/p2pdc/p2pdc/internal/solvertest"
	"github.com/p2pdc/p2pdc/solver/iterate"
	"github.com/p2pdc/p2pdc/solver/problem"
	"github.com/p2pdc/p2pdc/solver/verify"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// Peers in lockstep end at one iterate, one or two relaxations after the request, for any interval of checks.
func TestAnEarlyEndInLockstepIsQuick(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := solvertest.Membrane([3]int{8, 8, 24}, 3)
		peers := rapid.IntRange(1, 5).Draw(t, "peers")
		c := problem.Config{
			Problem: p, Partition: solvertest.SlabsOf(t, p, peers), Tolerance: solvertest.Impossible,
			Scheme: rapid.SampledFrom([]iterate.Scheme{iterate.Synchronous(), iterate.BoundedDelay(0)}).
				Draw(t, "scheme"),
			CheckEvery: iterate.Iteration(rapid.SampledFrom([]int{0, 1, 300}).Draw(t, "every")),
			Tiling:     problem.Tiling{Sweeps: 1},
		}
		if rapid.Bool().Draw(t, "schwarz") {
			c.Method = problem.MethodConfig{
				Name:        problem.Schwarz,
				Local:       problem.SOR,
				InnerCycles: 50,
				Coarse:      rapid.SampledFrom([]int{-1, 30}).Draw(t, "coarse"),
			}
		}
		n, err := newNetwork(rapid.Uint64().Draw(t, "seed"), solvertest.ConfigsFor(c))
		require.NoError(t, err)
		// A relaxation takes longer than a message over the whole tree.
		n.PointTime = func(int, time.Duration) time.Duration { return 20 * time.Microsecond }
		n.StopAt = time.Duration(rapid.IntRange(40, 2000).Draw(t, "stop")) * time.Millisecond
		n.StopRank = iterate.Rank(rapid.IntRange(0, peers-1).Draw(t, "rank"))
		requests := &stopRequests{Peer: n.Peers[0]}
		n.Network.Peers[0] = requests
		known, root, work, heard := iterate.Iteration(0), iterate.Iteration(0), 0.0, false
		n.Observe = func() {
			if requests.arrived && !heard {
				heard, root, work = true, n.Peers[0].Outcome().Sweeps, n.Peers[0].Outcome().Work
				for _, q := range n.Peers {
					known = max(known, q.Outcome().Sweeps)
				}
			}
		}
		require.NoError(t, n.Run())
		o := n.Peers[0].Outcome()
		require.Equal(t, iterate.Interrupted, o.Reason)
		require.True(t, heard)
		require.LessOrEqual(t, o.Work, work+8, "local solves of 50 sweeps are cut short")
		// One ahead of the root for each face between, and the relaxation in progress.
		require.LessOrEqual(
			t,
			o.Sweeps,
			max(known+2, root+iterate.Iteration(peers)),
			"known when the newest iterate was %d",
			known,
		)
		for r, q := range n.Peers {
			require.Equal(t, o.Sweeps, q.Outcome().Sweeps, "rank %d", r)
			require.Equal(t, o.Reason, q.Outcome().Reason, "rank %d", r)
		}
	})
}

// stopRequests is a root that records whether a request for an early end has arrived.
type stopRequests struct {
	iterate.Peer
	arrived bool
}

func (r *stopRequests) Stop(now time.Duration, why iterate.Reason) {
	r.arrived = true
	r.Peer.Stop(now, why)
}

func (r *stopRequests) Agree(now time.Duration, q iterate.Rank, msg []byte) error {
	r.arrived = r.arrived || iterate.MessageKind(msg[1]) == iterate.MsgStop
	return r.Peer.Agree(now, q, msg)
}

// One peer makes at most one relaxation of the grid after a request for an early end.
func TestAnEarlyEndOfRichardson(t *testing.T) {
	p := solvertest.Membrane([3]int{20, 20, 20}, 3)
	for _, every := range []iterate.Iteration{0, 1, 500} {
		c := problem.Config{
			Problem:    p,
			Partition:  solvertest.SlabsOf(t, p, 1),
			Scheme:     iterate.Synchronous(),
			Tolerance:  1e-12,
			CheckEvery: every,
			Tiling:     problem.Tiling{Sweeps: 1},
		}
		for _, after := range []float64{1.5, 10, 47.2, 100} {
			a := newSingle(t, c)
			require.LessOrEqual(t, a.Stopped(t, after), 1.0, "every %d, after %v", every, after)
			require.LessOrEqual(t, singleResidual(t, a, p), 1.0)
		}
	}
}

// Peers that share the grid leave a cycle at the same place.
func TestAnEarlyEndWithinACycleOfSeveralPeers(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := solvertest.Membrane([3]int{15, 15, 31}, 3)
		if rapid.Bool().Draw(t, "rejected") {
			p = solvertest.Windy(15)
		}
		peers := rapid.IntRange(2, 4).Draw(t, "peers")
		c := problem.Config{
			Problem: p, Partition: solvertest.SlabsOf(t, p,
				peers), Tolerance: solvertest.Impossible, Scheme: iterate.Synchronous(),
			Method: problem.MethodConfig{
				Name: rapid.SampledFrom([]string{problem.SOR, problem.Multigrid}).Draw(t, "method"),
			},
			StopCheckPoints: 1 + rapid.SampledFrom([]int{0, 100, 10000, 1 << 20}).Draw(t, "look"),
			GatherPoints:    1 + rapid.SampledFrom([]int{0, 100, 1000}).Draw(t, "gather"),
		}
		n, err := newNetwork(rapid.Uint64().Draw(t, "seed"), solvertest.ConfigsFor(c))
		require.NoError(t, err)
		n.StopAt, n.StopRank = time.Duration(
			rapid.IntRange(1, 60).Draw(t, "stop"),
		)*time.Millisecond, iterate.Rank(
			rapid.IntRange(0, peers-1).Draw(t, "rank"),
		)
		require.NoError(t, n.Run())
		o := n.Peers[0].Outcome()
		require.Contains(t, []iterate.Reason{iterate.Interrupted, iterate.Stagnated}, o.Reason)
		for r, q := range n.Peers {
			require.Equal(t, o.Sweeps, q.Outcome().Sweeps, "rank %d", r)
			require.Equal(t, o.Reason, q.Outcome().Reason, "rank %d", r)
		}
		e, err := verify.Evaluate(p, n.Assemble(p), nil)
		require.NoError(t, err)
		if c.Method.Name == problem.Multigrid && p.Symmetric() {
			require.LessOrEqual(t, e.RelativeResidual, 1.0)
		}
	})
}
