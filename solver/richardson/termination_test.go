package richardson

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

func runOf(t require.TestingT, seed uint64, c problem.Config) *solvertest.Network {
	n, err := newNetwork(seed, solvertest.ConfigsFor(c))
	require.NoError(t, err)
	return n
}

func requireTrueResidual(t require.TestingT, n *solvertest.Network, c problem.Config) float64 {
	e, err := verify.Evaluate(c.Problem, n.Assemble(c.Problem), nil)
	require.NoError(t, err)
	for _, w := range workersOf(n) {
		require.Equal(t, e.RelativeResidual, w.Outcome().Residual)
	}
	return e.RelativeResidual
}

// A problem that u⁰ solves takes no sweep, in every scheme.
func TestSolvedAtTheStart(t *testing.T) {
	p := solvertest.Membrane([3]int{4, 4, 4}, 3)
	p.Obstacle = func(problem.Point) float64 { return -1 }
	for _, s := range []iterate.Scheme{iterate.Synchronous(), iterate.Asynchronous(), iterate.BoundedDelay(0),
		iterate.BoundedDelay(3)} {
		c := problem.Config{Problem: p, Partition: solvertest.SlabsOf(t, p, 3), Scheme: s, Tolerance: 1e-6}
		n := runOf(t, 1, c)
		require.NoError(t, n.Run())
		for _, w := range workersOf(n) {
			require.Equal(t, iterate.Outcome{Reason: iterate.Converged}, w.Outcome(), s.Name())
		}
	}
}

func TestMaxSweepsAreMadeExactly(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := solvertest.Membrane([3]int{6, 6, 6}, 3)
		s := rapid.SampledFrom([]iterate.Scheme{iterate.Synchronous(), iterate.Asynchronous(),
			iterate.BoundedDelay(0), iterate.BoundedDelay(3)}).
			Draw(t, "scheme")
		c := problem.Config{
			Problem:   p,
			Partition: solvertest.AnyPartition(t, p),
			Scheme:    s,
			MaxSweeps: iterate.Iteration(rapid.IntRange(1, 100).Draw(t, "max")),
		}
		n := runOf(t, rapid.Uint64().Draw(t, "seed"), c)
		if s.Asynchronous() {
			n.Loss = 0.3
		}
		require.NoError(t, n.Run())
		for _, w := range workersOf(n) {
			o := w.Outcome()
			require.Equal(t, iterate.ReachedSweeps, o.Reason)
			require.Equal(t, c.MaxSweeps, o.Sweeps)
			require.Equal(t, c.MaxSweeps, o.Iterate, "the answer is of everyone's last iterate")
		}
		requireTrueResidual(t, n, c)
	})
}

// Any peer may request the end at any time. All peers end for that reason, with a vector that has the residual that
// they report.
func TestAnyPeerMayRequestTheEnd(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := solvertest.Membrane([3]int{6, 6, 6}, 3)
		s := rapid.SampledFrom([]iterate.Scheme{iterate.Synchronous(), iterate.Asynchronous(),
			iterate.BoundedDelay(0), iterate.BoundedDelay(3)}).
			Draw(t, "scheme")
		c := problem.Config{Problem: p, Partition: solvertest.AnyPartition(t, p), Scheme: s}
		n := runOf(t, rapid.Uint64().Draw(t, "seed"), c)
		n.StopAt = time.Duration(rapid.IntRange(0, 20000).Draw(t, "at")) * time.Microsecond
		n.StopRank = iterate.Rank(rapid.IntRange(0, len(workersOf(n))-1).Draw(t, "rank"))
		require.NoError(t, n.Run())
		for _, w := range workersOf(n) {
			require.Equal(t, iterate.Interrupted, w.Outcome().Reason)
		}
		if s.Name() == "async" || s.Name() == "delay:3" {
			requireTrueResidual(t, n, c)
		} else {
			first := workersOf(n)[0].Outcome()
			for _, w := range workersOf(n) {
				require.Equal(t, first, w.Outcome(), "all stop at the same iterate")
			}
		}
	})
}

// The last faces of a run over a lossy channel are lost repeatedly, and still arrive in the end.
func TestLostLastFaces(t *testing.T) {
	p := solvertest.Membrane([3]int{4, 4, 9}, 3)
	for _, s := range []iterate.Scheme{iterate.BoundedDelay(0), iterate.BoundedDelay(1), iterate.BoundedDelay(5),
		iterate.Asynchronous()} {
		c := problem.Config{Problem: p, Partition: solvertest.SlabsOf(t, p, 3), Scheme: s, MaxSweeps: 40}
		n := runOf(t, 3, c)
		lost := map[[3]uint64]int{}
		n.Blackout = func(from, to iterate.Rank, label uint64, _ time.Duration) bool {
			key := [3]uint64{uint64(from), uint64(to), label}
			lost[key]++
			return label >= 37 && lost[key] < 200
		}
		require.NoError(t, n.Run(), s.Name())
		requireTrueResidual(t, n, c)
		for _, w := range workersOf(n) {
			require.Equal(t, iterate.Iteration(40), w.Outcome().Sweeps)
		}
	}
}

// From some time on all halos are lost. An asynchronous run still ends, and never with a tolerance that it does not
// meet: estimates of the peers become arbitrarily small while the residual of the assembled vector does not.
func TestNoFalseTermination(t *testing.T) {
	p := solvertest.Membrane([3]int{5, 5, 12}, 3)
	seeds := uint64(20)
	if testing.Short() {
		seeds = 6
	}
	for seed := range seeds {
		c := problem.Config{
			Problem:    p,
			Partition:  solvertest.SlabsOf(t, p, 4),
			Scheme:     iterate.Asynchronous(),
			Tolerance:  1e-5,
			MaxSweeps:  3000,
			CheckEvery: 4,
		}
		n := runOf(t, seed, c)
		dark := time.Duration(seed) * time.Millisecond
		n.Blackout = func(_, _ iterate.Rank, _ uint64, now time.Duration) bool { return now > dark }
		failed := 0
		n.Observe = func() {
			failed = max(failed, workersOf(n)[0].Outcome().Snapshots)
		}
		require.NoError(t, n.Run())
		rel := requireTrueResidual(t, n, c)
		for _, w := range workersOf(n) {
			o := w.Outcome()
			require.Equal(t, o.Reason == iterate.Converged, rel <= c.Tolerance)
			require.Contains(t, []iterate.Reason{iterate.Converged, iterate.ReachedSweeps}, o.Reason)
		}
		require.Greater(t, failed, 1, "the peers' own guesses must have misled the root at least once")
		require.Less(t, failed, 60, "snapshots that fail stay rare")
	}
}

// A peer of an asynchronous run sends a bounded number of messages to its parent.
func TestAgreementStaysRare(t *testing.T) {
	p := solvertest.Membrane([3]int{8, 8, 8}, 3)
	c := problem.Config{
		Problem:   p,
		Partition: solvertest.SlabsOf(t, p, 4),
		Scheme:    iterate.Asynchronous(),
		Tolerance: 1e-8,
	}
	n := runOf(t, 5, c)
	require.NoError(t, n.Run())
	sweeps := 0
	for _, w := range workersOf(n) {
		sweeps += int(w.Outcome().Sweeps)
	}
	require.Less(t, n.AgreeSent, sweeps/4)
	require.Less(t, n.AgreeSent, 1000)
}

// Relaxation k of a bounded-delay run never reads an iterate older than k − s.
func TestBoundedDelayIsBounded(t *testing.T) {
	for _, s := range []int{0, 1, 3} {
		p := solvertest.Membrane([3]int{4, 4, 9}, 3)
		c := problem.Config{
			Problem:   p,
			Partition: solvertest.SlabsOf(t, p, 3),
			Scheme:    iterate.BoundedDelay(s),
			MaxSweeps: 200,
		}
		n := runOf(t, 9, c)
		n.Loss = 0.3
		widest := 0
		n.Observe = func() {
			for i := 1; i < len(workersOf(n)); i++ {
				a, b := workersOf(n)[i], workersOf(n)[i-1]
				widest = max(widest, int(a.Iterate)-made(b), int(b.Iterate)-made(a))
			}
		}
		require.NoError(t, n.Run())
		require.LessOrEqual(t, widest, s+1)
		require.Positive(t, widest)
		if s > 0 {
			require.Greater(t, widest, 1, "the freedom is used")
		}
	}
}

// made is the newest iterate whose faces may have left.
func made(w *worker) int {
	if w.pass.sweeping() {
		return int(w.Iterate) + 1
	}
	return int(w.Iterate)
}

// A run that diverges ends with the reason Diverged.
func TestDivergenceEnds(t *testing.T) {
	p := solvertest.Membrane([3]int{9, 1, 1}, 1)
	p.Obstacle, p.Source.Value = nil, 1
	p.Velocity[0].Value = 4000
	require.NotEmpty(t, p.Warnings())
	for _, s := range []iterate.Scheme{iterate.Synchronous(), iterate.Asynchronous()} {
		n := runOf(t, 1, problem.Config{Problem: p, Partition: solvertest.SlabsOf(t, p, 3), Scheme: s, Tolerance: 1e-6})
		require.NoError(t, n.Run())
		for _, w := range workersOf(n) {
			require.Equal(t, iterate.Diverged, w.Outcome().Reason)
		}
	}
}
