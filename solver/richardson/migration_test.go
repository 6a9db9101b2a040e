package richardson

import (
	"slices"
	"testing"
	"time"

	"github.com/p2pdc/p2pdc/internal/kernel"
	"github.com/p2pdc/p2pdc/internal/solvertest"
	"github.com/p2pdc/p2pdc/solver/iterate"
	"github.com/p2pdc/p2pdc/solver/problem"
	"github.com/p2pdc/p2pdc/solver/verify"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// wideProblem draws a problem whose slabs can have fewer points than a padded row needs,
// or more, so that moves cross that number: in one dimension the layout depends on it.
func wideProblem(t *rapid.T) *problem.Problem {
	dim := rapid.SampledFrom([]int{1, 1, 1, 2, 3}).Draw(t, "dimension")
	n := [3]int{1, 1, 1}
	for a, most := range [][]int{{150}, {40, 48}, {36, 4, 16}}[dim-1] {
		n[a] = rapid.IntRange(most/3, most).Draw(t, "n")
	}
	return solvertest.AnyProblemOf(t, dim, n)
}

// wideSlabs cuts along the slowest axis, anywhere.
func wideSlabs(t *rapid.T, p *problem.Problem) problem.Partition {
	slow := p.Dimension - 1
	n := p.N[slow]
	cuts := []int{0, n}
	for range rapid.IntRange(1, min(4, n-1)).Draw(t, "cuts") {
		cuts = append(cuts, rapid.IntRange(1, n-1).Draw(t, "cut"))
	}
	slices.Sort(cuts)
	part := problem.Partition{Cuts: [3][]int{{0, p.N[0]}, {0, p.N[1]}, {0, p.N[2]}}}
	part.Cuts[slow] = slices.Compact(cuts)
	return part
}

// crossingsOf counts the peers of a 1-D run whose share crossed the number of points from
// which on rows are padded.
func crossingsOf(p *problem.Problem, part problem.Partition, n *solvertest.Network) (count int) {
	for r, w := range workersOf(n) {
		if p.Dimension == 1 && originOf(part.Box(iterate.Rank(r))) != originOf(w.Box()) {
			count++
		}
	}
	return count
}

func originOf(b problem.Box) int {
	l, err := kernel.NewLayout(1, b.Size())
	if err != nil {
		panic(err)
	}
	return l.Origin
}

// requireCover requires that the boxes cover the slowest axis exactly, in the order of
// the ranks, and returns how many planes have moved.
func requireCover(t require.TestingT, n *solvertest.Network, c problem.Config) (planes int) {
	slow, at := c.Problem.Dimension-1, 0
	given, taken := 0, 0
	for r, w := range workersOf(n) {
		b := w.Box()
		require.Equal(t, at, b.Lo[slow], "rank %d", r)
		require.Greater(t, b.Hi[slow], at, "rank %d", r)
		require.LessOrEqual(t, b.Hi[slow]-at, MostPlanes(&c, iterate.Rank(r)), "rank %d", r)
		at = b.Hi[slow]
		o := w.Outcome()
		given, taken = given+o.PlanesSent, taken+o.PlanesReceived
	}
	require.Equal(t, c.Problem.N[slow], at)
	require.Equal(t, given, taken)
	return given
}

// still returns an outcome without the counts of moves.
func still(o iterate.Outcome) iterate.Outcome {
	o.Moves, o.PlanesSent, o.PlanesReceived, o.Work = 0, 0, 0, 0
	return o
}

// Planes move during the run. Its bits and the number of its sweeps are those of the sequential method.
func TestMovesInLockstepKeepTheBits(t *testing.T) {
	checkMovesInLockstep(t, solvertest.AnyProblem, anySlabs, 0)
}

// The same with moves that change the layout of arrays.
func TestMovesInLockstepKeepTheBitsOfAnySize(t *testing.T) {
	checkMovesInLockstep(t, wideProblem, wideSlabs, 1)
}

// checkMovesInLockstep draws runs until planes have moved and as many shares have crossed the sizes of layouts.
func checkMovesInLockstep(
	t *testing.T,
	prob func(*rapid.T) *problem.Problem,
	slabs func(*rapid.T, *problem.Problem) problem.Partition,
	crossings int,
) {
	moved, crossed := 0, 0
	covered := func() bool { return moved > 0 && crossed >= crossings }
	solvertest.CheckUntil(t, covered, func(t *rapid.T) {
		p := prob(t)
		c := problem.Config{
			Problem: p, Partition: slabs(t, p), Balance: true, BalanceWindow: 1, Executor: solvertest.Backwards{},
			Scheme: rapid.SampledFrom([]iterate.Scheme{iterate.Synchronous(), iterate.BoundedDelay(0)}).
				Draw(t, "scheme"),
			Tolerance:  rapid.SampledFrom([]float64{1e-2, 1e-4}).Draw(t, "tolerance"),
			CheckEvery: iterate.Iteration(rapid.IntRange(0, 9).Draw(t, "every")),
			MaxSweeps:  iterate.Iteration(rapid.SampledFrom([]int{30, 60, 200, 400}).Draw(t, "max")),
		}
		want, err := SolveSequential(p, problem.Jacobi, c.Tolerance, c.CheckEvery, c.Lag, c.MaxSweeps)
		require.NoError(t, err)
		agreement := time.Duration(rapid.SampledFrom([]int{0, 1, 20}).Draw(t, "agreement")) * time.Millisecond
		if agreement > iterate.DefaultRepeat {
			c.Repeat = 2 * agreement // what is repeated while agreements travel would be most of the run
		}
		n, err := newNetwork(rapid.Uint64().Draw(t, "seed"), solvertest.ConfigsFor(c))
		require.NoError(t, err)
		n.PointTime = speeds(t, len(workersOf(n)))
		n.Jitter = time.Duration(rapid.SampledFrom([]int{5, 200, 2000}).Draw(t, "jitter")) * time.Microsecond
		n.AgreeDelay = agreement
		if c.Scheme.Asynchronous() {
			n.Loss, n.Duplicate = rapid.Float64Range(0, 0.4).Draw(t, "loss"), 0.1
		}
		require.NoError(t, n.Run())
		for r, w := range workersOf(n) {
			require.Equal(
				t,
				iterate.Outcome{
					Reason:   want.Reason,
					Sweeps:   want.Sweeps,
					Iterate:  want.Sweeps,
					Residual: want.Residual,
				},
				still(w.Outcome()),
				"rank %d",
				r,
			)
		}
		solvertest.RequireSameBits(t, want.U, n.Assemble(p))
		moved += requireCover(t, n, c)
		crossed += crossingsOf(p, c.Partition, n)
	})
	t.Logf("%d planes moved, %d shares crossed the size of a layout", moved, crossed)
}

// fastWideProblem draws a problem that takes some hundred sweeps, whatever the size.
func fastWideProblem(t *rapid.T) *problem.Problem {
	p := wideProblem(t)
	p.Reaction.Value += 50
	return p
}

// Planes move at any time. The answer covers the grid exactly, and its residual is the agreed one.
func TestMovesInAsynchronousRuns(t *testing.T) {
	checkMovesInAsynchronousRuns(t, solvertest.AnyProblem, anySlabs, 0)
}

// The same with moves that change the layout of arrays.
func TestMovesInAsynchronousRunsOfAnySize(t *testing.T) {
	checkMovesInAsynchronousRuns(t, fastWideProblem, wideSlabs, 1)
}

// checkMovesInAsynchronousRuns draws as many runs as checkMovesInLockstep.
func checkMovesInAsynchronousRuns(
	t *testing.T,
	prob func(*rapid.T) *problem.Problem,
	slabs func(*rapid.T, *problem.Problem) problem.Partition,
	crossings int,
) {
	moved, crossed := 0, 0
	covered := func() bool { return moved > 0 && crossed >= crossings }
	solvertest.CheckUntil(t, covered, func(t *rapid.T) {
		p := prob(t)
		c := problem.Config{
			Problem: p, Partition: slabs(t, p), Balance: true, BalanceWindow: 1, Tolerance: 1e-4,
			Scheme: rapid.SampledFrom([]iterate.Scheme{iterate.Asynchronous(), iterate.BoundedDelay(1),
				iterate.BoundedDelay(4)}).
				Draw(t, "scheme"),
			CheckEvery: iterate.Iteration(rapid.IntRange(1, 9).Draw(t, "every")),
			Order:      rapid.SampledFrom([]problem.Order{problem.Jacobi, problem.InTurn}).Draw(t, "order"),
		}
		if peers := c.Partition.Peers(); rapid.IntRange(0, 2).Draw(t, "hybrid") == 0 {
			c.Scheme = iterate.Hybrid(problem.Clusters(c.Partition, rapid.IntRange(1, peers).Draw(t, "clusters")))
			c.Order = problem.Jacobi
		}
		n, err := newNetwork(rapid.Uint64().Draw(t, "seed"), solvertest.ConfigsFor(c))
		require.NoError(t, err)
		n.PointTime = speeds(t, len(workersOf(n)))
		n.Loss, n.Duplicate = rapid.Float64Range(0, 0.4).Draw(t, "loss"), 0.1
		n.Jitter = time.Duration(rapid.SampledFrom([]int{5, 200, 2000}).Draw(t, "jitter")) * time.Microsecond
		n.AgreeDelay = time.Duration(rapid.SampledFrom([]int{0, 1}).Draw(t, "agreement")) * time.Millisecond
		require.NoError(t, n.Run())
		moved += requireCover(t, n, c)
		crossed += crossingsOf(p, c.Partition, n)
		e, err := verify.Evaluate(p, n.Assemble(p), nil)
		require.NoError(t, err)
		for _, w := range workersOf(n) {
			require.Equal(t, iterate.Converged, w.Outcome().Reason)
			if !c.Scheme.Lockstep() {
				require.Equal(t, e.RelativeResidual, w.Outcome().Residual, "what was agreed is what is true")
			}
		}
		require.LessOrEqual(t, e.RelativeResidual, c.Tolerance)
	})
	t.Logf("%d planes moved, %d shares crossed the size of a layout", moved, crossed)
}

// The values at the start of a time step move with the planes.
func TestMovesInTimeSteps(t *testing.T) {
	checkMovesInTimeSteps(t, solvertest.AnyProblem, anySlabs, 0)
}

// The same with moves that change the layout of arrays.
func TestMovesInTimeStepsOfAnySize(t *testing.T) {
	checkMovesInTimeSteps(t, fastWideProblem, wideSlabs, 1)
}

// checkMovesInTimeSteps draws as many runs as checkMovesInLockstep.
func checkMovesInTimeSteps(
	t *testing.T,
	prob func(*rapid.T) *problem.Problem,
	slabs func(*rapid.T, *problem.Problem) problem.Partition,
	crossings int,
) {
	moved, crossed := 0, 0
	covered := func() bool { return moved > 0 && crossed >= crossings }
	solvertest.CheckUntil(t, covered, func(t *rapid.T) {
		p := solvertest.Evolve(t, prob(t))
		c := steppingOf(
			t,
			p,
			slabs(t, p),
			func(problem.Partition) iterate.Scheme { return iterate.Synchronous() },
		)
		c.Balance, c.BalanceWindow = true, 1
		peers := c.Partition.Peers()
		c.Scheme = rapid.SampledFrom([]iterate.Scheme{
			iterate.Synchronous(), iterate.BoundedDelay(0), iterate.Asynchronous(), iterate.BoundedDelay(2),
			iterate.Hybrid(problem.Clusters(c.Partition, (peers+1)/2)),
		}).Draw(t, "scheme")
		pace, seed := speeds(t, peers), rapid.Uint64().Draw(t, "seed")
		tune := func(n *solvertest.Network) {
			n.PointTime = pace
			n.Jitter = 20 * time.Microsecond
		}
		n := checkSteps(t, c, seed, rapid.Float64Range(0, 0.3).Draw(t, "loss"), tune)
		if c.Scheme.Lockstep() {
			want, err := SolveSequential(c.Problem, problem.Jacobi, c.Tolerance, c.CheckEvery, c.Lag, 0)
			require.NoError(t, err)
			require.Equal(t, want.Steps, n.Steps[0])
			solvertest.RequireSameBits(t, want.U, n.Assemble(c.Problem))
		}
		moved += requireCover(t, n, c)
		crossed += crossingsOf(c.Problem, c.Partition, n)
	})
	t.Logf("%d planes moved, %d shares crossed the size of a layout", moved, crossed)
}

// aside runs slabs of a cube of n points per axis by peers with the given costs per point, and returns the virtual
// time and the network.
func aside(
	t require.TestingT,
	s iterate.Scheme,
	n, peers int,
	balance bool,
	cost func(rank int, now time.Duration) time.Duration,
) (time.Duration, *solvertest.Network, problem.Config) {
	p := solvertest.Membrane([3]int{8, 8, n}, 3)
	c := problem.Config{
		Problem:       p,
		Partition:     solvertest.SlabsOf(t, p, peers),
		Scheme:        s,
		Tolerance:     1e-6,
		Balance:       balance,
		BalanceWindow: 5 * time.Millisecond,
	}
	net, err := newNetwork(5, solvertest.ConfigsFor(c))
	require.NoError(t, err)
	net.PointTime, net.Jitter = cost, 20*time.Microsecond
	require.NoError(t, net.Run())
	return net.Now, net, c
}

// A slow peer ends with fewer planes, and the run ends sooner. Planes also move when a fast peer becomes ten times
// slower during the run.
func TestPlanesFollowTheSpeeds(t *testing.T) {
	slow := func(rank int, _ time.Duration) time.Duration {
		if rank == 2 {
			return 5 * time.Microsecond
		}
		return time.Microsecond
	}
	for _, s := range []iterate.Scheme{iterate.Synchronous(), iterate.Asynchronous()} {
		t.Run(s.Name(), func(t *testing.T) {
			plain, _, _ := aside(t, s, 32, 4, false, slow)
			moved, n, c := aside(t, s, 32, 4, true, slow)
			requireCover(t, n, c)
			t.Logf(
				"one of four 5 times slower: %v without, %v with %d planes moved",
				plain,
				moved,
				requireCover(t, n, c),
			)
			require.Less(t, moved.Seconds(), 0.6*plain.Seconds())
			require.LessOrEqual(t, workersOf(n)[2].planes(), 4)

			even, _, _ := aside(t, s, 32, 4, false, func(int, time.Duration) time.Duration { return time.Microsecond })
			change := even / 4
			later := func(rank int, now time.Duration) time.Duration {
				if rank == 1 && now > change {
					return 10 * time.Microsecond
				}
				return time.Microsecond
			}
			plain, _, _ = aside(t, s, 32, 4, false, later)
			moved, n, c = aside(t, s, 32, 4, true, later)
			t.Logf(
				"one of four 10 times slower from %v on: %v without, %v with %d planes moved",
				change,
				plain,
				moved,
				requireCover(t, n, c),
			)
			require.Less(t, moved.Seconds(), 0.6*plain.Seconds())
			require.LessOrEqual(t, workersOf(n)[1].planes(), 2)
		})
	}
}

// Peers of equal speed with noise keep their planes.
func TestEqualPeersKeepTheirPlanes(t *testing.T) {
	for _, s := range []iterate.Scheme{iterate.Synchronous(), iterate.Asynchronous()} {
		noise := func(rank int, now time.Duration) time.Duration {
			return time.Microsecond + time.Duration((uint64(now)*2654435761>>7+uint64(rank))%100)
		}
		_, n, c := aside(t, s, 30, 4, true, noise)
		require.Zero(t, requireCover(t, n, c), s.Name())
	}
}
