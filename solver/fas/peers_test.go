package fas

import (
	"cmp"
	"math"
	"testing"
	"time"

	"github.com/p2pdc/p2pdc/internal/kernel"
	"github.com/p2pdc/p2pdc/internal/solvertest"
	"github.com/p2pdc/p2pdc/solver/iterate"
	"github.com/p2pdc/p2pdc/solver/problem"
	"github.com/stretchr/testify/require"
)

// world is a run in virtual time: a point takes a nanosecond, and latency is in units of a step.
type world struct {
	parts     [3]int
	scheme    iterate.Scheme
	latency   float64
	loss      float64
	slow      float64 // factor by which rank 0 is slower; 0: it is not
	seed      uint64
	tolerance float64           // 0: 1e-6
	most      iterate.Iteration // steps; 0: 120
}

// outcome holds the steps, the residual and the values of a run in virtual time.
type outcome struct {
	steps int     // of the slowest peer when the true residual first met the tolerance; 0: it did not
	work  float64 // of the busiest peer then, in equivalents
}

func (s world) run(t require.TestingT, p *problem.Problem) outcome {
	part, err := problem.GridOf(p.N, s.parts)
	require.NoError(t, err)
	if s.scheme == nil {
		s.scheme = iterate.Asynchronous()
	}
	c := problem.Config{Problem: p, Partition: part, Scheme: s.scheme, Tolerance: 1e-6, MaxSweeps: cmp.Or(s.most, 120),
		Method: problem.MethodConfig{Name: problem.FAS}, Repeat: time.Hour}
	if s.tolerance > 0 {
		c.Tolerance = s.tolerance
	}
	n, err := solvertest.NewNetwork(s.seed, Method{}.New, solvertest.ConfigsFor(c))
	require.NoError(t, err)
	var all []*peer
	step := 0
	for _, q := range n.Peers {
		w := q.(*peer)
		all = append(all, w)
		step = max(step, w.grids.downWork()+w.grids.upWork())
	}
	n.Segment, n.Loss = 1<<30, s.loss
	n.Jitter = time.Duration(2*s.latency*float64(step)) + 1
	n.PointTime = func(rank int, _ time.Duration) time.Duration {
		if rank == 0 && s.slow > 0 {
			return time.Duration(s.slow)
		}
		return 1
	}
	var o outcome
	box := problem.Box{Hi: c.Problem.N}
	whole, err := problem.Discretize(all[0].config.Problem, box)
	require.NoError(t, err)
	u := make([]float64, whole.Layout.Len())
	require.NoError(t, whole.FillReference(u))
	first := residualOf(t, whole, u)
	counted := iterate.Iteration(0)
	n.Observe = func() {
		sum, least := iterate.Iteration(0), iterate.Iteration(math.MaxInt64)
		for _, w := range all {
			sum, least = sum+w.Iterate, min(least, w.Iterate)
		}
		if o.steps > 0 || sum < counted+iterate.Iteration(len(all)) {
			return
		}
		counted = sum
		for _, w := range all {
			copyInto(u, whole.Layout, w, w.cur)
		}
		if residualOf(t, whole, u) <= c.Tolerance*first {
			o.steps = int(least)
			for _, w := range all {
				o.work = max(o.work, w.Spent)
			}
		}
	}
	n.Until = func() bool { return o.steps > 0 }
	require.NoError(t, n.Run())
	return o
}

// copyInto copies values of a peer's box to an array of the whole grid.
func copyInto(u []float64, l kernel.Layout, w *peer, src []float64) {
	for _, idx := range w.own.Each {
		x := w.own.Lo
		u[l.Index(idx[0]-1, idx[1]-1, idx[2]-1)] = src[w.ownPart.Index(idx[0]-1-x[0], idx[1]-1-x[1], idx[2]-1-x[2])]
	}
}

// TestStepsDependOnTheLatencyOnly checks that the steps to a tolerance grow neither with the peers nor with the grid, and
// with latency by a few per latency. Every remedy in the package has a bound here that it needs.
func TestStepsDependOnTheLatencyOnly(t *testing.T) {
	for _, parts := range [][3]int{{1, 1, 2}, {2, 2, 2}, {3, 3, 3}} {
		if testing.Short() && parts != [3]int{2, 2, 2} {
			continue
		}
		for name, make := range shapes {
			p := make(31)
			for _, c := range []struct {
				what string
				run  world
				most int
			}{
				{"latency 0.1", world{latency: .1}, 10},
				{"latency 1", world{latency: 1}, 14},
				{"latency 5", world{latency: 5}, 31},
				{"lockstep", world{latency: .1, scheme: iterate.Synchronous()}, 7},
				{"one peer 5 times slower", world{latency: .1, slow: 5}, 7},
				{"a third of the messages lost", world{latency: .5, loss: .3}, 18},
			} {
				c.run.parts = parts
				o := c.run.run(t, p)
				require.NotZero(t, o.steps, "%s, %v, %s: not converged", name, parts, c.what)
				require.LessOrEqual(t, o.steps, c.most, "%s, %v, %s", name, parts, c.what)
			}
		}
	}
}

// TestTheAnswerIsTheSolution checks that neither staleness nor the rounding of messages leaves an error behind: far below
// the tolerances of use, too, the residual of all peers together falls.
func TestTheAnswerIsTheSolution(t *testing.T) {
	for _, latency := range []float64{.1, 3} {
		for _, tolerance := range []float64{1e-11, singleFrom} {
			o := world{parts: [3]int{2, 2, 2}, latency: latency, tolerance: tolerance}.run(t, hill(31))
			require.NotZero(t, o.steps, "latency %v, tolerance %v", latency, tolerance)
		}
	}
}

// TestLockstepHasTheSameBits checks that a run in lockstep depends neither on delays nor on losses nor on the order in
// which chunks are computed.
func TestLockstepHasTheSameBits(t *testing.T) {
	var want []float64
	for seed, s := range []iterate.Scheme{iterate.Synchronous(), iterate.Synchronous(), iterate.BoundedDelay(0)} {
		p := off(15)
		part, err := problem.GridOf(p.N, [3]int{2, 1, 2})
		require.NoError(t, err)
		c := problem.Config{Problem: p, Partition: part, Scheme: s, Tolerance: 1e-7}
		if seed == 1 {
			c.Executor = solvertest.Backwards{}
		}
		n, err := solvertest.NewNetwork(uint64(seed), Method{}.New, solvertest.ConfigsFor(c))
		require.NoError(t, err)
		if s.Asynchronous() {
			n.Loss = 0.3
		}
		require.NoError(t, n.Run())
		got := n.Assemble(p)
		if want == nil {
			want = got
		}
		solvertest.RequireSameBits(t, want, got)
	}
}

// TestTheFirstStepsWaitForNoVerdict checks that peers far from each other relax while the residual of the starting vector is
// still on its way.
func TestTheFirstStepsWaitForNoVerdict(t *testing.T) {
	p := hill(31)
	part, err := problem.GridOf(p.N, [3]int{1, 1, 2})
	require.NoError(t, err)
	c := problem.Config{Problem: p, Partition: part, Scheme: iterate.Asynchronous(), Tolerance: 1e-6}
	n, err := solvertest.NewNetwork(1, Method{}.New, solvertest.ConfigsFor(c))
	require.NoError(t, err)
	n.Segment, n.Jitter = 1<<30, time.Duration(20*p.Points())
	n.PointTime = func(int, time.Duration) time.Duration { return 1 }
	early := iterate.Iteration(0)
	n.Observe = func() {
		w := n.Peers[0].(*peer)
		if math.IsNaN(w.Outcome().Residual) {
			early = max(early, w.Iterate)
		}
	}
	require.NoError(t, n.Run())
	require.Positive(t, early)
	require.Equal(t, iterate.Converged, n.Peers[0].Outcome().Reason)
}
