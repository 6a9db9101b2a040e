package simulate

import (
	"context"
	"testing"
	"time"

	"github.com/p2pdc/p2pdc/simulate/cluster"
	"github.com/p2pdc/p2pdc/solver/iterate"
	"github.com/p2pdc/p2pdc/solver/problem"
	"github.com/stretchr/testify/require"
)

// played returns the result of a run with these events.
func played(t *testing.T, run Config, events ...cluster.Event) *Result {
	t.Helper()
	m := *run.Model
	m.Events = events
	run.Model = &m
	r, err := Run(context.Background(), run)
	require.NoError(t, err)
	require.Equal(t, iterate.Converged, r.Reason)
	require.LessOrEqual(t, r.Residual, run.Solver.Tolerance)
	return r
}

// Asynchronous survivors go on with old values while a peer is replaced. In lockstep they wait.
func TestSurvivorsDuringARecovery(t *testing.T) {
	for _, s := range []iterate.Scheme{iterate.Synchronous(), iterate.Asynchronous()} {
		run, alone := undisturbed(t, s, "")
		run.Recover.Spares = 0 // a new process takes longer than the whole run
		var err error
		run.Solver.Partition, err = problem.Slabs(run.Solver.Problem.N, 8, nil)
		require.NoError(t, err)
		r := played(t, run, cluster.Event{At: alone.Virtual / 2, Rank: 0, Lost: true})
		require.Greater(t, r.Losses[0].Resumed-r.Losses[0].Noticed, startTime)
		idle := float64(r.Ranks[7].Idle) / float64(r.Virtual)
		require.Equal(t, s.Lockstep(), idle > 0.5, "rank 7 is idle for %.2f of the run", idle)
		if !s.Lockstep() {
			require.Less(t, idle, 0.05)
		}
		// Peers in lockstep stop when they know of the loss, also those that are far from it.
		r = played(t, run, cluster.Event{At: alone.Virtual / 2, Rank: 0, Killed: true})
		require.Equal(t, s.Lockstep(), r.Ranks[7].Sweeps < r.Ranks[0].Sweeps+3)
	}
}

// A spare process saves the time to start one. There are as many as the run says.
func TestSpares(t *testing.T) {
	run, alone := undisturbed(t, iterate.Synchronous(), "")
	run.Recover.Spares = 1
	r := played(t, run, cluster.Event{At: alone.Virtual / 4, Rank: 1, Lost: true},
		cluster.Event{At: alone.Virtual * 3 / 4, Rank: 4, Lost: true})
	require.Len(t, r.Losses, 2)
	require.True(t, r.Losses[0].Spare)
	require.False(t, r.Losses[1].Spare)
	took := func(l Loss) time.Duration { return l.Resumed - l.Noticed }
	require.InEpsilon(t, took(r.Losses[0])+startTime, took(r.Losses[1]), 0.1)
}

// The death of a peer is noticed at once, because its machine closes its connection to the launcher. A run that does not
// recover fails with the name of the peer.
func TestKilledPeer(t *testing.T) {
	for _, s := range []iterate.Scheme{iterate.Synchronous(), iterate.Asynchronous()} {
		run, alone := undisturbed(t, s, "")
		death := cluster.Event{At: alone.Virtual / 2, Rank: 5, Killed: true}
		r := played(t, run, death)
		requireRecovered(t, run, alone, r, 1)
		require.True(t, r.Losses[0].Killed)
		require.Equal(t, death.At+run.Model.Networks[0].Latency, r.Losses[0].Noticed)
		run.Recover, run.Model.Events = nil, []cluster.Event{death}
		r, err := Run(context.Background(), run)
		require.ErrorContains(t, err, "rank 5 was killed")
		require.Equal(t, death.At+run.Model.Networks[0].Latency, r.Virtual)
	}
}

// A loss during a recovery prolongs it. What has been repaired before is kept.
func TestLossDuringARecovery(t *testing.T) {
	for _, s := range []iterate.Scheme{iterate.Synchronous(), iterate.Asynchronous()} {
		for name, second := range map[string]int{"another peer": 2, "the replacement": 5} {
			t.Run(s.Name()+", "+name, func(t *testing.T) {
				run, alone := undisturbed(t, s, "")
				first := cluster.Event{At: alone.Virtual / 2, Rank: 5, Lost: true}
				one := played(t, run, first).Losses[0]
				gap := one.Resumed - one.Noticed
				r := played(t, run, first, cluster.Event{At: one.Noticed + gap*9/10, Rank: second, Lost: true})
				require.Len(t, r.Losses, 2)
				a, b := r.Losses[0], r.Losses[1]
				require.Equal(t, []int{5, second}, []int{a.Rank, b.Rank})
				require.Equal(t, one.Noticed, a.Noticed)
				require.Equal(t, one.Noticed+gap*9/10+run.Recover.Suspect, b.Noticed)
				require.Equal(t, a.Resumed, b.Resumed, "there is one recovery")
				require.Greater(t, b.Resumed, b.Noticed+b.Repair)
				if second != 5 {
					require.Equal(t, one.Residual, a.Residual, "the block of rank 5 is repaired once")
				}
			})
		}
	}
}

// The next epoch waits for a machine that is silent for a while, because all ranks connect for it.
func TestSilenceDuringARecovery(t *testing.T) {
	run, alone := undisturbed(t, iterate.Asynchronous(), "")
	first := cluster.Event{At: alone.Virtual / 2, Rank: 5, Lost: true}
	one := played(t, run, first).Losses[0]
	for name, from := range map[string]time.Duration{
		"before the repair": one.Noticed - run.Recover.Suspect/8, "after it": one.Resumed - one.Repair/8,
	} {
		r := played(t, run, first, cluster.Event{At: from, Until: from + run.Recover.Suspect*3/4, Rank: 2, Lost: true})
		require.Len(t, r.Losses, 1, name)
		least := from + run.Recover.Suspect*3/4
		if name == "before the repair" {
			least += r.Losses[0].Repair
		}
		require.GreaterOrEqual(t, r.Losses[0].Resumed, least, name)
		require.Less(t, r.Losses[0].Resumed, from+run.Recover.Suspect*3/4+one.Resumed-one.Noticed+1, name)
	}
}

// A run ends if nobody has values any more.
func TestNobodyHasValues(t *testing.T) {
	run, alone := undisturbed(t, iterate.Asynchronous(), "")
	for rank := range 8 {
		run.Model.Events = append(run.Model.Events, cluster.Event{At: alone.Virtual / 2, Rank: rank, Lost: true})
	}
	_, err := Run(context.Background(), run)
	require.ErrorContains(t, err, "the last machine is lost")
	run.Model.Events = []cluster.Event{{At: alone.Virtual / 2, Rank: 1, Killed: true}}
	for rank := range 8 {
		e := cluster.Event{At: alone.Virtual/2 + 2*run.Model.Networks[0].Latency, Rank: rank, Lost: true}
		run.Model.Events = append(run.Model.Events, e)
	}
	r, err := Run(context.Background(), run)
	require.ErrorContains(t, err, "the last machine is lost")
	require.Len(t, r.Losses, 1)
	require.Empty(t, r.Losses[0].Method, "it has not been repaired yet")
}

// A verdict does not count if a peer is lost before all know it.
func TestLossAfterTheVerdict(t *testing.T) {
	for _, s := range []iterate.Scheme{iterate.Synchronous(), iterate.Asynchronous()} {
		run, alone := undisturbed(t, s, "")
		r := played(t, run, cluster.Event{At: alone.Virtual - 1, Rank: 0, Lost: true})
		require.Len(t, r.Losses, 1)
		require.Positive(t, r.Losses[0].Resumed)
		require.Greater(t, r.Virtual, alone.Virtual+run.Recover.Suspect)
		r = played(t, run, cluster.Event{At: alone.Virtual - 1, Rank: 0, Killed: true})
		require.Len(t, r.Losses, 1)
		require.Greater(t, r.Virtual, r.Losses[0].Noticed)
		require.Positive(t, r.Losses[0].Resumed)
	}
}
