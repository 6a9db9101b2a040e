package simulate

import (
	"context"
	"math"
	"testing"
	"time"

	"github.com/p2pdc/p2pdc/internal/virtual"
	"github.com/p2pdc/p2pdc/simulate/cluster"
	"github.com/p2pdc/p2pdc/solver/iterate"
	"github.com/p2pdc/p2pdc/solver/problem"
	"github.com/p2pdc/p2pdc/solver/richardson"
	"github.com/p2pdc/p2pdc/solver/verify"
	"github.com/stretchr/testify/require"
)

// A synchronous run on any number of machines meets the tolerance at the sweep at which a sequential
// method that checks every sweep does. The verdict comes later.
func TestMetSynchronous(t *testing.T) {
	p := membrane(15)
	every, err := richardson.SolveSequential(p, problem.Jacobi, 1e-6, 1, 1, 0)
	require.NoError(t, err)
	first := float64(every.Sweeps - 1) // the verdict takes effect a sweep later
	for _, machines := range []int{1, 8} {
		run := runOf(t, gigabit(max(machines, 2)), p, iterate.Synchronous(), machines)
		run.Evaluate = true
		r, err := Run(context.Background(), run)
		require.NoError(t, err)
		require.InDelta(t, first, r.Met.Sweeps, 1.5, "%d machines", machines)
		require.InDelta(t, first*r.Steady.Seconds(), r.Met.After.Seconds(), 2*r.Steady.Seconds(), "%d machines", machines)
		require.Greater(t, r.Virtual, r.Met.After+16*r.Steady)
	}
}

// One machine on a grid larger than its caches, where the solver by default does several sweeps in
// one pass.
func TestMetOfOneMachine(t *testing.T) {
	n := 64
	if testing.Short() {
		n = 40
	}
	play := func(judge bool) *Result {
		run := runOf(t, gigabit(2), membrane(n), iterate.Synchronous(), 1)
		run.Solver.Tolerance, run.Evaluate = 0.05, judge
		r, err := Run(context.Background(), run)
		require.NoError(t, err)
		require.InDelta(t, r.Virtual.Seconds(), r.Ranks[0].Sweeps*r.Steady.Seconds(), 1e-6)
		return r
	}
	without, with := play(false), play(true)
	require.Positive(t, with.Met.Sweeps)
	require.InDelta(t, with.Met.Sweeps*with.Steady.Seconds(), with.Met.After.Seconds(), 1.1*with.Steady.Seconds())
	with.Met = Met{}
	require.Equal(t, without, with)
}

// Evaluation changes nothing else of a run, and finds the same on any number of threads.
func TestEvaluateChangesNothing(t *testing.T) {
	play := func(judge bool, threads int) *Result {
		m := gigabit(8)
		costly(m, 2, false)
		m.Networks[0].Kind, m.Networks[0].Rate = cluster.IB, 1.25e9
		run := runOf(t, m, membrane(12), iterate.Asynchronous(), 8)
		run.Evaluate, run.Threads = judge, threads
		r, err := Run(context.Background(), run)
		require.NoError(t, err)
		return r
	}
	without := play(false, 1)
	with := play(true, 1)
	more := play(true, 2)
	require.Equal(t, with, more)
	require.Zero(t, without.Met)
	require.Positive(t, with.Met.After)
	require.LessOrEqual(t, with.Met.After, with.Virtual)
	with.Met = Met{}
	require.Equal(t, without, with)
}

// Levels on a straight line meet the tolerance where it crosses zero, and few evaluations find that.
func TestFewEvaluations(t *testing.T) {
	j := evaluation{start: 10}
	at, looks := time.Second, 0
	const end = 3456.78
	for ; j.met.After == 0; looks++ {
		j.add(at, 10*(1-at.Seconds()/end), at.Seconds())
		at += j.interval()
	}
	require.InDelta(t, end, j.met.After.Seconds(), 1e-6*end)
	require.InDelta(t, end, j.met.Sweeps, 1e-6*end)
	require.Less(t, looks, 100)
	j = evaluation{}
	j.add(time.Second, math.NaN(), 1)
	j.add(2*time.Second, math.Inf(-1), 2)
	require.Equal(t, Met{2 * time.Second, 2}, j.met)
}

// While a slow machine relaxes its block the level may stand still or rise. The next evaluation still comes before half the
// time that the run needs at the rate of its past.
func TestEvaluatesWhileTheLevelStandsStill(t *testing.T) {
	for _, second := range []float64{2, 2.5} {
		j := evaluation{start: 14}
		j.add(10*time.Second, 2, 100)
		j.add(10100*time.Millisecond, second, 101)
		require.LessOrEqual(t, j.interval().Seconds(), second/(14-second)*10.1/2*1.001)
	}
}

// Met is that of an evaluation of every few events, wherever the slow machine is and wherever the run ends.
func TestMetWithASlowMachine(t *testing.T) {
	defer func(every int) { watchEvery = every }(watchEvery)
	watchEvery = 8
	for _, c := range []struct {
		slow, n, scale int
		scheme         iterate.Scheme
	}{
		{0, 8, 8, iterate.Asynchronous()}, {7, 8, 8, iterate.Asynchronous()},
		{0, 8, 8, iterate.Synchronous()}, {3, 8, 4, iterate.Asynchronous()},
	} {
		m := gigabit(8)
		for i := range m.Hosts {
			m.Hosts[i].Relaxation = 2e7
		}
		m.Hosts[c.slow].Slow = 5
		run := runOf(t, m, membrane(c.n), c.scheme, 8)
		run.Evaluate, run.Scale = true, c.scale
		u := make([]float64, run.Solver.Problem.Points())
		var first time.Duration
		run.Watch = func(p Progress) {
			if first > 0 || p.Virtual == 0 {
				return
			}
			p.Blocks(func(box problem.Box, values func([]float64, problem.Box)) {
				part := make([]float64, box.Points())
				values(part, box)
				virtual.Place(u, run.Solver.Problem.N, box, part)
			})
			v, err := verify.Evaluate(run.Solver.Problem, u, nil)
			require.NoError(t, err)
			if v.RelativeResidual <= run.Solver.Tolerance {
				first = p.Virtual
			}
		}
		r, err := Run(context.Background(), run)
		require.NoError(t, err)
		require.InEpsilon(t, first.Seconds(), r.Met.After.Seconds(), 0.03, "%+v", c)
	}
}
