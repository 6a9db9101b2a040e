package simulate

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/p2pdc/p2pdc/simulate/cluster"
	"github.com/p2pdc/p2pdc/solver/iterate"
	"github.com/p2pdc/p2pdc/solver/problem"
)

// uneven returns a run of parts on machines of which the second is five times slower than the others.
func uneven(t testing.TB, machines, parts, n int, s iterate.Scheme, method string) Config {
	t.Helper()
	m := gigabit(machines)
	for i := range m.Hosts {
		m.Hosts[i].Relaxation = 1e4
	}
	m.Hosts[1].Slow = 5
	run := runOf(t, m, membrane(n), s, machines*parts)
	run.Solver.Method.Name = method
	run.Parts, run.Recover = parts, &Recovery{}
	return run
}

// balanced returns the results of a run without moves and with them.
func balanced(t *testing.T, run Config, events ...cluster.Event) (plain, moved *Result) {
	t.Helper()
	plain = played(t, run, events...)
	require.Empty(t, plain.Moves)
	run.Balance = true
	return plain, played(t, run, events...)
}

// requireMoves requires moves, all after which all ranks relax again soon.
func requireMoves(t *testing.T, r *Result) {
	t.Helper()
	require.NotEmpty(t, r.Moves)
	for _, m := range r.Moves {
		require.NotEqual(t, m.From, m.To)
		require.Greater(t, m.Resumed, m.At)
		require.Less(t, m.Resumed-m.At, 10*time.Millisecond)
	}
	require.Equal(t, 1, r.Moves[0].From, "the slow host gives")
	for _, k := range r.Ranks {
		require.Equal(t, r.Virtual, k.Relaxing+k.Protocol+k.Idle)
	}
}

// Parts move from a slow host, in every scheme and by every method, and the run ends sooner.
func TestMoves(t *testing.T) {
	for name, c := range map[string]struct {
		scheme iterate.Scheme
		method string
	}{
		"sync":      {iterate.Synchronous(), ""},
		"async":     {iterate.Asynchronous(), ""},
		"delay":     {iterate.BoundedDelay(2), ""},
		"hybrid":    {iterate.Hybrid([]int{0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1}), ""},
		"sor":       {iterate.Synchronous(), problem.SOR},
		"multigrid": {iterate.Synchronous(), problem.Multigrid},
		"schwarz":   {iterate.Asynchronous(), problem.Schwarz},
	} {
		t.Run(name, func(t *testing.T) {
			plain, r := balanced(t, uneven(t, 4, 3, 9, c.scheme, c.method))
			requireMoves(t, r)
			t.Logf("%v, balanced %v, %d moves", plain.Virtual, r.Virtual, len(r.Moves))
			require.Less(t, r.Virtual, plain.Virtual*3/4)
		})
	}
}

// The values of a part go with it: a run needs no more sweeps than without the move, even late in the run.
func TestValuesMoveWithTheirPart(t *testing.T) {
	run := uneven(t, 4, 3, 9, iterate.Synchronous(), "")
	run.Model.Hosts[1].Slow, run.Evaluate = 0, true
	late := cluster.Event{At: played(t, run).Virtual / 2, Rank: 1, Slow: 20}
	plain, r := balanced(t, run, late)
	requireMoves(t, r)
	require.Greater(t, r.Moves[0].At, late.At)
	require.InEpsilon(t, plain.Met.Sweeps, r.Met.Sweeps, 0.03)
	require.Less(t, r.Virtual, plain.Virtual)
}

// With Recovery.Exact a run keeps its bits and sweeps through moves. So does a run of time steps.
func TestMovesKeepBits(t *testing.T) {
	for _, method := range exactMethods() {
		run := uneven(t, 4, 3, 9, iterate.Synchronous(), method)
		if method != problem.Multigrid {
			run.Solver.CheckEvery = 5
		}
		plain := played(t, run)
		run.Balance, run.Recover.Exact, run.Solver.KeepEvery = true, true, 50*time.Millisecond
		r := played(t, run)
		requireMoves(t, r)
		requireSame(t, plain, r, 0, method)
		require.Less(t, r.Virtual, plain.Virtual*9/10, method)
	}
	run := uneven(t, 3, 3, 9, iterate.Synchronous(), "")
	run.Solver.Problem, run.Solver.Reconfigure = drum(9, 4), true
	plain, r := balanced(t, run)
	requireMoves(t, r)
	requireSteps(t, run, r)
	require.Equal(t, plain.U, r.U)
	require.Less(t, r.Virtual, plain.Virtual)
}

// The result of a run with moves depends on its seed only, not on the number of threads.
func TestMovesOnThreads(t *testing.T) {
	run := uneven(t, 4, 3, 9, iterate.Asynchronous(), "")
	costly(run.Model, 2, false)
	run.Balance, run.Threads = true, 1
	one := played(t, run)
	requireMoves(t, one)
	run.Threads = 2
	require.Equal(t, one, played(t, run))
	run.Seed = 2
	require.NotEqual(t, one.Virtual, played(t, run).Virtual)
}

// A loss while hosts are asked for peers comes first: the parts stay, and move later. Losses after moves concern the
// parts that a machine has then.
func TestLossesAndMoves(t *testing.T) {
	run := uneven(t, 4, 3, 9, iterate.Synchronous(), "")
	run.Balance = true
	alone := played(t, run)
	requireMoves(t, alone)
	first := alone.Moves[0]
	hosts := make([]int, len(alone.Ranks))
	for rank := range hosts {
		hosts[rank] = rank / 3
	}
	for _, m := range alone.Moves {
		hosts[m.Rank] = m.To
	}
	for _, at := range []time.Duration{first.At - time.Microsecond, first.At + time.Microsecond} {
		r := played(t, run, lossAt(at, 2, true))
		requireMoves(t, r)
		require.Len(t, r.Losses, 3)
		require.Greater(t, r.Moves[0].At, r.Losses[0].Resumed)
	}
	later := alone.Virtual * 3 / 4
	early := played(t, run, lossAt(first.At/4, first.To, true),
		cluster.Event{At: later, Until: later + time.Millisecond, Apart: []int{0}})
	requireMoves(t, early)
	require.True(t, slices.ContainsFunc(early.Moves, func(m Move) bool { return m.To == first.To }))
	require.Len(t, early.Losses, 3, "the loss of a machine is over for parts that come later")
	r := played(t, run, lossAt(alone.Virtual*3/4, first.To, true))
	var lost, want []int
	for _, l := range r.Losses {
		lost = append(lost, l.Rank)
	}
	for rank, host := range hosts {
		if host == first.To {
			want = append(want, rank)
		}
	}
	require.Equal(t, want, lost)
}

// Copies of parts that have moved are on other machines than the parts, so that the loss of any machine is survived.
func TestBuddiesOfMovedParts(t *testing.T) {
	run := uneven(t, 4, 3, 9, iterate.Synchronous(), "")
	run.Solver.CheckEvery = 5
	plain := played(t, run)
	run.Balance, run.Recover.Exact, run.Solver.KeepEvery = true, true, 50*time.Millisecond
	moved := played(t, run)
	for machine := range 4 {
		r := played(t, run, lossAt(moved.Virtual*3/4, machine, true))
		requireMoves(t, r)
		require.Less(t, r.Moves[0].At, r.Losses[0].Noticed)
		for _, l := range r.Losses {
			require.Equal(t, machine, l.Host)
			require.Positive(t, l.From, "machine %d", machine)
		}
		require.Equal(t, plain.U, r.U)
	}
}

// A machine that joins takes parts of the others, and one that leaves gives all its own, also without Balance.
func TestMachinesThatJoinAndLeave(t *testing.T) {
	for _, s := range []iterate.Scheme{iterate.Synchronous(), iterate.Asynchronous()} {
		run := uneven(t, 3, 4, 12, s, "") // boxes of one size
		run.Model = gigabit(5)
		for i := range run.Model.Hosts {
			run.Model.Hosts[i].Relaxation = 2e3
		}
		plain := played(t, run)
		at := plain.Virtual / 5
		run.Joins, run.Leaves = []time.Duration{at, 2 * at}, []Leave{{1, at * 3 / 2}}
		r := played(t, run)
		hosts := make([]int, 12)
		for rank := range hosts {
			hosts[rank] = rank / 4
		}
		for _, m := range r.Moves {
			require.Equal(t, hosts[m.Rank], m.From)
			require.False(t, m.To == 3 && m.At < at || m.To == 4 && m.At < 2*at || m.To == 1 && m.At > at*3/2, "%+v", m)
			hosts[m.Rank] = m.To
		}
		parts := make([]int, 5)
		for _, h := range hosts {
			parts[h]++
		}
		require.Equal(t, []int{3, 0, 3, 3, 3}, parts, "%v: %+v", s, r.Moves)
		require.Less(t, r.Virtual, plain.Virtual*21/20)
		require.Len(t, r.Ranks, 12)
	}
}

// A fast machine that joins slow ones takes nearly all parts soon. In lockstep it relaxes a hundredth of the time before.
func TestFastMachineJoinsSlowOnes(t *testing.T) {
	for _, s := range []iterate.Scheme{iterate.Synchronous(), iterate.Asynchronous()} {
		run := uneven(t, 2, 4, 9, s, "")
		run.Model = gigabit(3)
		for i := range run.Model.Hosts {
			run.Model.Hosts[i].Relaxation = 3e4
		}
		run.Model.Hosts[0].Slow, run.Model.Hosts[1].Slow = 30, 30
		plain := played(t, run)
		run.Balance, run.Joins = true, []time.Duration{0}
		r := played(t, run)
		require.Len(t, r.Moves, 8)
		t.Logf("%v, balanced %v, last move at %v", plain.Virtual, r.Virtual, r.Moves[7].At)
		require.Less(t, r.Moves[7].Resumed, 5*time.Second)
		require.Less(t, r.Virtual, plain.Virtual/3)
	}
}

// A host has a peer for a part after it has been asked and the peer has connected.
func TestPartsWaitForTheirHost(t *testing.T) {
	run := uneven(t, 4, 3, 9, iterate.Asynchronous(), "")
	run.Balance = true
	near := played(t, run).Moves[0].At
	run.Model.Networks[0].Latency = 50 * time.Millisecond
	require.Greater(t, played(t, run).Moves[0].At-near, 7*run.Model.Networks[0].Latency)
}

// After a move parts rest, the longer the more it has cost.
func TestRestAfterMoves(t *testing.T) {
	run := uneven(t, 4, 3, 9, iterate.Synchronous(), "")
	run.Model.Networks[0].Rate, run.Balance = 2e4, true
	first := played(t, run).Moves[0]
	r := played(t, run, cluster.Event{At: first.Resumed + time.Millisecond, Rank: 2, Slow: 5})
	cost := first.Resumed - first.At
	require.Greater(t, cost, 100*time.Millisecond)
	second := r.Moves[len(r.Moves)-1]
	require.Equal(t, 2, second.From)
	require.GreaterOrEqual(t, second.At, first.Resumed+10*cost)
}

// A part that moves from one machine to another takes the time of its values on the launcher's line, once from the one
// and once to the other.
func TestTimeOfAMove(t *testing.T) {
	took := func(scale int) (pause time.Duration, points int) {
		run := uneven(t, 4, 3, 9, iterate.Synchronous(), "")
		run.Balance, run.Scale = true, scale
		r := played(t, run)
		for _, m := range r.Moves {
			if m.At == r.Moves[0].At {
				points += run.Solver.Partition.Box(iterate.Rank(m.Rank)).Points()
			}
		}
		return r.Moves[0].Resumed - r.Moves[0].At, points
	}
	near, _ := took(1)
	far, points := took(4)
	values := 2 * 8 * 63 * float64(points)
	require.Greater(t, far-near, seconds(values/125e6))
	require.Less(t, far-near, seconds(1.3*values/125e6), "the rest is that of the first faces")
}
