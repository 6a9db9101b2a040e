package simulate

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/p2pdc/p2pdc/internal/buddy"
	"github.com/p2pdc/p2pdc/simulate/cluster"
	"github.com/p2pdc/p2pdc/solver/iterate"
	"github.com/p2pdc/p2pdc/solver/problem"
	"github.com/stretchr/testify/require"
)

// exactly returns a run that keeps iterates often, and the result of the same run without copies and losses.
func exactly(t *testing.T, method string, machines int) (Config, *Result) {
	t.Helper()
	m := gigabit(machines)
	for i := range m.Hosts {
		m.Hosts[i].Relaxation = 3e4
	}
	run := runOf(t, m, membrane(9), iterate.Synchronous(), machines)
	run.Solver.Method.Name = method
	if method != problem.Multigrid {
		run.Solver.CheckEvery = 5
	}
	plain := played(t, run)
	run.Recover = &Recovery{Suspect: 2 * time.Millisecond, Spares: 100, Exact: true}
	run.Solver.KeepEvery = time.Nanosecond
	return run, plain
}

func exactMethods() []string {
	return []string{problem.Richardson, problem.SOR, problem.Multigrid}
}

// requireSame requires the bits, sweeps and residual of the undisturbed run, and losses after which no block is solved
// again.
func requireSame(t *testing.T, want, got *Result, losses int, what string) {
	t.Helper()
	require.Equal(t, want.U, got.U, what)
	require.Equal(t, want.Residual, got.Residual, what)
	for rank := range want.Ranks {
		require.Equal(t, want.Ranks[rank].Sweeps, got.Ranks[rank].Sweeps, "rank %d, %s", rank, what)
	}
	for _, n := range got.Staleness[1:] {
		require.Zero(t, n, "in lockstep no face is old; %s", what)
	}
	require.Len(t, got.Losses, losses, what)
	for _, l := range got.Losses {
		require.Empty(t, l.Method, what)
		require.Greater(t, l.Resumed, l.Noticed, what)
	}
}

// lossAt returns the loss of a rank, whose peer is killed or whose machine falls silent.
func lossAt(at time.Duration, rank int, killed bool) cluster.Event {
	return cluster.Event{At: at, Rank: rank, Killed: killed, Lost: !killed}
}

// A run that loses a peer at any time ends with the bits, the sweeps and the residual of the undisturbed run. The later
// the loss, the newer is the iterate from which it goes on.
func TestExactRecovery(t *testing.T) {
	times := 30
	if testing.Short() {
		times = 9
	}
	for _, method := range exactMethods() {
		t.Run(method, func(t *testing.T) {
			run, plain := exactly(t, method, 3)
			alone := played(t, run)
			requireSame(t, plain, alone, 0, "without a loss")
			resumed, newest := 0, iterate.Iteration(0)
			for i := range times {
				loss := lossAt(alone.Virtual*time.Duration(i+1)/time.Duration(times+1), i%3, i%2 == 0)
				r := played(t, run, loss)
				what := fmt.Sprintf("rank %d lost after %v of %v", loss.Rank, loss.At, alone.Virtual)
				requireSame(t, plain, r, 1, what)
				require.Greater(t, r.Virtual, alone.Virtual, what)
				require.GreaterOrEqual(t, r.Losses[0].From, newest, what)
				if newest = r.Losses[0].From; newest > 0 {
					resumed++
				}
			}
			require.Greater(t, resumed, times/2, "most runs go on from a kept iterate")
		})
	}
}

// A second loss may come at any time around the end of the first recovery, also while the iterate is kept again.
func TestExactRecoveryFromTwoLosses(t *testing.T) {
	for _, method := range exactMethods() {
		run, plain := exactly(t, method, 3)
		first := lossAt(plain.Virtual*3/4, 1, true)
		one := played(t, run, first).Losses[0]
		require.Positive(t, one.From)
		took := one.Resumed - one.Noticed
		for i := range 24 {
			second := lossAt(one.Noticed+took*time.Duration(i)/16, i%3, i%2 == 0)
			r := played(t, run, first, second)
			what := fmt.Sprintf("%s, rank %d %v after the first loss (%v)", method, second.Rank, second.At-first.At, took)
			requireSame(t, plain, r, 2, what)
			if second.At > one.Resumed {
				require.GreaterOrEqual(t, r.Losses[1].From, one.From, what)
			}
		}
	}
}

// The machine of a lost peer has no copies any more. Its new process has one when the iterate has been kept again.
func TestLossWhileIterateIsKeptAgain(t *testing.T) {
	run, plain := exactly(t, problem.Richardson, 3)
	run.Model.Networks[0].Rate = 1e6 // a copy takes some 2 ms
	first := lossAt(plain.Virtual*3/4, 1, true)
	one := played(t, run, first).Losses[0]
	require.Positive(t, one.From)
	for rank, from := range []iterate.Iteration{0, one.From, one.From} { // rank 1 is the buddy of rank 0
		r := played(t, run, first, lossAt(one.Resumed-2*time.Millisecond, rank, true))
		requireSame(t, plain, r, 2, fmt.Sprint("rank ", rank))
		require.Equal(t, one.From, r.Losses[0].From)
		require.Equal(t, from, r.Losses[1].From, "rank %d", rank)
		require.Equal(t, one.Resumed-2*time.Millisecond+run.Model.Networks[0].Latency, r.Losses[1].Noticed)
	}
}

// A run begins again if a peer and its buddy, or all peers, are lost at once.
func TestLossOfBothCopies(t *testing.T) {
	for _, method := range exactMethods() {
		run, plain := exactly(t, method, 4)
		lost := func(ranks ...int) iterate.Iteration {
			var events []cluster.Event
			for _, rank := range ranks {
				events = append(events, lossAt(plain.Virtual*3/4, rank, true))
			}
			r := played(t, run, events...)
			requireSame(t, plain, r, len(ranks), fmt.Sprint(method, ranks))
			return r.Losses[0].From
		}
		require.Equal(t, []iterate.Rank{1, 2, 3, 0}, buddy.Of([]string{"a", "b", "c", "d"}))
		require.Zero(t, lost(0, 1))
		require.Zero(t, lost(3, 0))
		require.Zero(t, lost(0, 1, 2, 3))
		require.Positive(t, lost(0, 2))
		require.Positive(t, lost(1, 3))
	}
}

// A copy that is under way when its sender is killed or falls silent is not stored.
func TestLossDuringACopy(t *testing.T) {
	run, plain := exactly(t, problem.Richardson, 3)
	run.Model.Networks[0].Rate = 1e6 // a copy takes some 2 ms
	run.Recover.Suspect = 5 * time.Millisecond
	from := func(at time.Duration, killed bool) iterate.Iteration {
		r := played(t, run, lossAt(at, 1, killed))
		requireSame(t, plain, r, 1, at.String())
		return r.Losses[0].From
	}
	// stored returns when the first copy of rank 1 is stored.
	stored := func(killed bool) time.Duration {
		lo, hi := time.Duration(0), plain.Virtual/2
		for hi-lo > time.Microsecond {
			if at := (lo + hi) / 2; from(at, killed) == 0 {
				lo = at
			} else {
				hi = at
			}
		}
		return hi
	}
	require.InDelta(t, stored(true), stored(false), float64(2*time.Microsecond))
}

// A copy arrives late if its sender or its receiver is silent meanwhile. The peers wait for it.
func TestSilenceDuringACopy(t *testing.T) {
	run, plain := exactly(t, problem.Richardson, 3)
	run.Model.Networks[0].Rate = 1e5 // a copy takes some 20 ms
	run.Recover.Suspect = time.Second
	for i := range 8 {
		at := plain.Virtual * time.Duration(i+1) / 100
		silent := cluster.Event{At: at, Until: at + 100*time.Millisecond, Rank: i % 3, Lost: true}
		requireSame(t, plain, played(t, run, silent), 0, at.String())
	}
}

// The peers wait for copies for a few percent of the time, also on a slow network.
func TestCostOfCopies(t *testing.T) {
	for _, method := range exactMethods() {
		run, _ := exactly(t, method, 3)
		run.Model.Networks[0].Rate = 1e6 // a copy takes some 2 ms
		kept := played(t, run)
		run.Recover, run.Solver.KeepEvery = nil, 0
		plain := played(t, run)
		t.Logf("%s: %v without copies, %v with", method, plain.Virtual, kept.Virtual)
		require.Greater(t, kept.Virtual, plain.Virtual, method)
		require.LessOrEqual(t, float64(kept.Virtual), 1.03*float64(plain.Virtual), method)
	}
}

// The peers wait for the time that the copies take on the network. One iterate is kept here.
func TestCopiesOnASlowNetwork(t *testing.T) {
	extra := func(rate float64) time.Duration {
		run, _ := exactly(t, problem.Richardson, 3)
		run.Model.Networks[0].Rate = rate
		run.Recover.Exact, run.Solver.KeepEvery = false, 0
		plain := played(t, run)
		run.Recover.Exact, run.Solver.KeepEvery = true, plain.Virtual/2
		return played(t, run).Virtual - plain.Virtual
	}
	copied := seconds(8 * 9 * 9 * 3 / 1e6)
	fast, slow := extra(125e6), extra(1e6)
	require.Greater(t, fast, 40*time.Microsecond, "a round trip to the buddy")
	require.Less(t, fast, time.Millisecond)
	require.Greater(t, slow, copied)
	require.Less(t, slow, copied*2)
}

// A copy takes the time of the slowest line to the buddy. All peers copy at once.
func TestTimesOfCopies(t *testing.T) {
	run, _ := exactly(t, problem.Richardson, 4)
	block := func(points int, rate float64) time.Duration { return seconds(8 * float64(points) / rate) }
	points := run.Solver.Partition.Box(0).Points()
	times := func(change func(m *cluster.Model)) []time.Duration {
		r := run
		r.Model = gigabit(4)
		change(r.Model)
		require.NoError(t, r.complete())
		r.resumed.copies = newCopies(&r)
		e, err := newEngine(&r)
		require.NoError(t, err)
		e.pool.close()
		return e.copyTimes
	}
	near := func(want, got time.Duration) {
		t.Helper()
		require.InDelta(t, float64(want), float64(got), 1)
	}
	near(block(points, 125e6), times(func(*cluster.Model) {})[0])
	all := run.Solver.Problem.Points()
	near(block(all, 200e6), times(func(m *cluster.Model) { m.Networks[0].Backplane = 200e6 })[0])
	near(block(points, 1e6), times(func(m *cluster.Model) {
		m.Networks[0].Shaper = cluster.Shaper{Rate: 1e6, Burst: 1e5, Queue: 1e6}
	})[0])
	slow := times(func(m *cluster.Model) { // rank 1 is the buddy of rank 0
		m.Networks = append(m.Networks, m.Networks[0])
		m.Networks[1].Rate = 1e6
		m.Hosts[1].Network = 1
	})
	near(block(points, 1e6), slow[0])
	near(block(run.Solver.Partition.Box(2).Points(), 125e6), slow[2])
	wide := times(func(m *cluster.Model) { // ranks 2 and 3 are on another site
		split(t, m, cluster.WANLink{Rate: 1e6, Latency: time.Millisecond, Queue: 1e6})
		for rank := range m.Hosts {
			m.Hosts[rank].Machine = 1 + rank/2
		}
	})
	near(block(points+run.Solver.Partition.Box(1).Points(), 1e6), wide[0]) // those of ranks 0 and 1 share the link
}

// Without Solver.KeepEvery the first iterate is kept after the time of the program, which grows with the blocks of the
// full grid. A run that is lost before begins again.
func TestFirstKeptIterate(t *testing.T) {
	run, plain := exactly(t, problem.Richardson, 3)
	run.Solver.KeepEvery = 0
	require.Equal(t, buddy.KeepEvery(9*9*3), newCopies(&run).every)
	for at, kept := range map[time.Duration]bool{240 * time.Millisecond: false, plain.Virtual * 9 / 10: true} {
		r := played(t, run, lossAt(at, 2, true))
		requireSame(t, plain, r, 1, at.String())
		require.Equal(t, kept, r.Losses[0].From > 0)
	}
	run.Scale = 4
	require.Equal(t, buddy.KeepEvery(64*9*9*3), newCopies(&run).every)
}

// Ranks that share a machine have their buddies on another one.
func TestBuddiesOfSharedMachines(t *testing.T) {
	run, _ := exactly(t, problem.Richardson, 4)
	for rank := range 4 {
		run.Model.Hosts[rank].Machine = 1 + rank/2
	}
	require.Equal(t, []iterate.Rank{2, 3, 0, 1}, newCopies(&run).buddies)
}

// A coarse grid that stands for a finer one has the same bits after a loss, and copies of the fine grid's size.
func TestExactRecoveryOfAScaledGrid(t *testing.T) {
	run, _ := exactly(t, problem.Multigrid, 3)
	run.Scale, run.Recover.Exact, run.Solver.KeepEvery = 4, false, 0
	plain := played(t, run)
	run.Recover.Exact, run.Solver.KeepEvery = true, time.Nanosecond
	r := played(t, run, lossAt(plain.Virtual/2, 1, true))
	requireSame(t, plain, r, 1, "scaled")
	require.Positive(t, r.Losses[0].From)
	copied := seconds(8 * 64 * 9 * 9 * 3 / 125e6) // to the launcher, to the new peer, and to the buddies again
	require.Greater(t, r.Losses[0].Resumed-r.Losses[0].Noticed, 3*copied)
	require.Less(t, r.Losses[0].Resumed-r.Losses[0].Noticed, 5*copied)
}

// The result does not depend on the number of threads.
func TestExactRecoveryOnThreads(t *testing.T) {
	run, plain := exactly(t, problem.Richardson, 27)
	run.Evaluate = true
	var all []*Result
	for _, threads := range []int{1, 4} {
		run.Threads = threads
		all = append(all, played(t, run, lossAt(plain.Virtual/2, 5, true), lossAt(plain.Virtual*2/3, 14, false)))
	}
	requireSame(t, plain, all[0], 2, "27 ranks")
	require.Equal(t, all[0], all[1])
	require.Less(t, all[0].Met.Sweeps, plain.Sweeps(), "sweeps that are done again do not count")
}

// A run that ends during the recovery says so.
func TestEndDuringExactRecovery(t *testing.T) {
	run, plain := exactly(t, problem.Richardson, 3)
	run.Recover.Spares = 0
	run.Model.Events = []cluster.Event{lossAt(plain.Virtual*3/4, 1, true)}
	run.Until = plain.Virtual*3/4 + time.Millisecond
	r, err := Run(context.Background(), run)
	require.NoError(t, err)
	require.Equal(t, iterate.ReachedTime, r.Reason)
	require.Len(t, r.Losses, 1)
	require.Zero(t, r.Losses[0].Resumed)
	require.Zero(t, r.Losses[0].From)
}

// A time step begins again after a loss, which is exact in every scheme without copies.
func TestExactRecoveryOfTimeSteps(t *testing.T) {
	for _, s := range []iterate.Scheme{iterate.Synchronous(), iterate.Asynchronous()} {
		run := stepping(t, s)
		alone := played(t, run)
		loss := lossAt(alone.Virtual/2, 1, true)
		local := played(t, run, loss)
		run.Recover.Exact = true
		require.Equal(t, local, played(t, run, loss))
		if s.Lockstep() {
			require.Equal(t, alone.U, local.U)
		}
	}
}

func TestExactRecoveryIsRefused(t *testing.T) {
	run, _ := exactly(t, problem.Richardson, 3)
	run.Solver.Scheme = iterate.Asynchronous()
	_, err := Run(context.Background(), run)
	require.ErrorContains(t, err, "does not support method richardson with scheme async")
	run.Solver.Scheme, run.Solver.Method.Name = iterate.Synchronous(), problem.Schwarz
	_, err = Run(context.Background(), run)
	require.ErrorContains(t, err, "does not support method schwarz with scheme sync")
	run.Recover.Exact = false
	_, err = Run(context.Background(), run)
	require.ErrorContains(t, err, "only with Recovery.Exact")
	run.Solver.KeepEvery, run.Recover.Exact = -1, true
	_, err = Run(context.Background(), run)
	require.ErrorContains(t, err, "must not be negative")
}
