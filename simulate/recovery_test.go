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

// undisturbed returns a run of eight machines, and its result without losses.
func undisturbed(t *testing.T, s iterate.Scheme, method string) (Config, *Result) {
	t.Helper()
	m := gigabit(8)
	for i := range m.Hosts {
		m.Hosts[i].Relaxation = 2e6
	}
	run := runOf(t, m, membrane(9), s, 8)
	run.Solver.Method.Name = method
	run.Recover = &Recovery{Suspect: 2 * time.Millisecond, Spares: 8}
	alone, err := Run(context.Background(), run)
	require.NoError(t, err)
	require.Empty(t, alone.Losses)
	return run, alone
}

// requireRecovered requires an answer within the tolerance, after few more sweeps, and the time of the losses only.
func requireRecovered(t *testing.T, run Config, alone, r *Result, losses int) {
	t.Helper()
	require.Equal(t, iterate.Converged, r.Reason)
	require.LessOrEqual(t, r.Residual, run.Solver.Tolerance)
	require.Len(t, r.Losses, losses)
	require.Equal(t, alone.Setup, r.Setup)
	least, extra := time.Duration(0), time.Duration(0)
	for _, l := range r.Losses {
		require.LessOrEqual(t, least, l.Noticed)
		require.NotEmpty(t, l.Method)
		require.Positive(t, l.Iterates)
		require.Less(t, l.Residual, 1e-2)
		require.NoError(t, l.Unbound)
		require.Positive(t, l.Repair)
		require.Less(t, l.Noticed+l.Repair, l.Resumed)
		least, extra = l.Noticed, extra+l.Resumed-l.Noticed+run.Recover.Suspect
	}
	require.Less(t, least, r.Virtual)
	require.GreaterOrEqual(t, r.Virtual, r.Losses[losses-1].Resumed)
	require.LessOrEqual(t, r.Virtual, alone.Virtual*5/4+extra)
	require.Greater(t, r.Sweeps(), alone.Sweeps()*3/4)
	require.Greater(t, r.Messages(), alone.Messages()*3/4)
	for _, k := range r.Ranks {
		require.Equal(t, r.Virtual, k.Relaxing+k.Protocol+k.Idle)
	}
}

// A run goes on after the loss of a machine, with few more sweeps, in every scheme and by every method.
func TestRecovery(t *testing.T) {
	for name, c := range map[string]struct {
		scheme iterate.Scheme
		method string
	}{
		"sync":      {iterate.Synchronous(), ""},
		"async":     {iterate.Asynchronous(), ""},
		"delay":     {iterate.BoundedDelay(2), ""},
		"hybrid":    {iterate.Hybrid([]int{0, 0, 0, 0, 1, 1, 1, 1}), ""},
		"sor":       {iterate.Synchronous(), problem.SOR},
		"multigrid": {iterate.Synchronous(), problem.Multigrid},
		"schwarz":   {iterate.Asynchronous(), problem.Schwarz},
	} {
		t.Run(name, func(t *testing.T) {
			run, alone := undisturbed(t, c.scheme, c.method)
			run.Model.Events = []cluster.Event{{At: alone.Virtual / 2, Rank: 5, Lost: true}}
			r, err := Run(context.Background(), run)
			require.NoError(t, err)
			requireRecovered(t, run, alone, r, 1)
			require.Equal(t, 5, r.Losses[0].Rank)
			require.Equal(t, alone.Virtual/2+run.Recover.Suspect, r.Losses[0].Noticed)
		})
	}
}

// Machines may be lost together and one after the other, also one that has replaced another. The result does not depend
// on the number of threads.
func TestRecoveryFromSeveralLosses(t *testing.T) {
	run, alone := undisturbed(t, iterate.Asynchronous(), "")
	lost := func(at time.Duration, rank int) {
		run.Model.Events = append(run.Model.Events, cluster.Event{At: at, Rank: rank, Lost: true})
	}
	lost(alone.Virtual/4, 2)
	lost(alone.Virtual/4+run.Recover.Suspect/2, 3)
	lost(alone.Virtual/4+2*run.Recover.Suspect, 2)
	r, err := Run(context.Background(), run)
	require.NoError(t, err)
	requireRecovered(t, run, alone, r, 3)
	for i, rank := range []int{2, 3, 2} {
		require.Equal(t, rank, r.Losses[i].Rank)
	}
	run.Threads = 1
	one, err := Run(context.Background(), run)
	require.NoError(t, err)
	require.Equal(t, one, r)
}

// A machine that returns before it is given up is not lost. Slow times of other machines go on after a loss, those of
// the lost machine end with it.
func TestEventsAroundALoss(t *testing.T) {
	run, alone := undisturbed(t, iterate.Asynchronous(), "")
	half := alone.Virtual / 2
	run.Model.Events = []cluster.Event{{At: half, Until: half + run.Recover.Suspect/2, Rank: 1, Lost: true}}
	r, err := Run(context.Background(), run)
	require.NoError(t, err)
	require.Empty(t, r.Losses)
	require.LessOrEqual(t, r.Residual, run.Solver.Tolerance)

	rate := func(slow int, until time.Duration) float64 {
		run.Model.Events = []cluster.Event{
			{At: half / 2, Until: until, Rank: slow, Slow: 20}, {At: half, Rank: 1, Lost: true},
		}
		r, err := Run(context.Background(), run)
		require.NoError(t, err)
		require.Len(t, r.Losses, 1)
		return r.Ranks[slow].Sweeps / r.Ranks[6].Sweeps
	}
	slow := rate(2, 0)
	require.Greater(t, rate(2, half), 4*slow, "it is over before the loss is noticed")
	require.Greater(t, rate(1, 0), 4*slow, "the machine has been replaced")
}

// Bounds and evaluations count from the first relaxation of the run.
func TestTimesOfARecoveredRun(t *testing.T) {
	run, alone := undisturbed(t, iterate.Synchronous(), "")
	run.Evaluate = true
	whole, err := Run(context.Background(), run)
	require.NoError(t, err)
	run.Model.Events = []cluster.Event{{At: alone.Virtual / 2, Rank: 7, Lost: true}}
	r, err := Run(context.Background(), run)
	require.NoError(t, err)
	gap := r.Losses[0].Resumed - alone.Virtual/2
	require.InEpsilon(t, whole.Met.After+gap, r.Met.After, 0.1)
	require.InEpsilon(t, whole.Met.Sweeps, r.Met.Sweeps, 0.1)
	run.Until = r.Losses[0].Resumed + 100*time.Microsecond
	r, err = Run(context.Background(), run)
	require.NoError(t, err)
	require.Equal(t, iterate.ReachedTime, r.Reason)
	require.Equal(t, run.Until, r.Virtual)
}

// The protocol may notice a loss before the machine is given up.
func TestProtocolNoticesALoss(t *testing.T) {
	run, alone := undisturbed(t, iterate.Synchronous(), "")
	run.Recover.Suspect = 24 * time.Hour
	run.Model.Events = []cluster.Event{{At: alone.Virtual / 2, Rank: 7, Lost: true}}
	r, err := Run(context.Background(), run)
	require.NoError(t, err)
	require.Len(t, r.Losses, 1)
	require.Less(t, r.Losses[0].Noticed, time.Hour)
	require.LessOrEqual(t, r.Residual, run.Solver.Tolerance)
}

// The time to solve a hole grows with the grid that a coarse one stands for.
func TestRepairOfAScaledGrid(t *testing.T) {
	run, alone := undisturbed(t, iterate.Synchronous(), "")
	run.Model.Events = []cluster.Event{{At: alone.Virtual / 2, Rank: 0, Lost: true}}
	r, err := Run(context.Background(), run)
	require.NoError(t, err)
	run.Scale = 4
	scaled, err := Run(context.Background(), run)
	require.NoError(t, err)
	require.Len(t, scaled.Losses, 1)
	require.InEpsilon(t, 4*4*4*r.Losses[0].Repair, scaled.Losses[0].Repair, 0.3)
}

func TestRecoveryIsRefused(t *testing.T) {
	run, _ := undisturbed(t, iterate.Synchronous(), "")
	run.Recover.Suspect = -1
	_, err := Run(context.Background(), run)
	require.ErrorContains(t, err, "of silence")
	run.Recover.Suspect, run.Sweeps = 0, 5
	_, err = Run(context.Background(), run)
	require.ErrorContains(t, err, "without Config.Sweeps")
	run.Sweeps, run.Recover.Spares = 0, -1
	_, err = Run(context.Background(), run)
	require.ErrorContains(t, err, "-1 spare processes")
	run.Recover.Spares, run.Solver.Balance = 0, true
	_, err = Run(context.Background(), run)
	require.ErrorContains(t, err, "moves planes")
}

// SOR goes on with the relaxation factor that it has found, not with the one that it began with.
func TestRecoveryKeepsTheRelaxationFactor(t *testing.T) {
	run := runOf(t, gigabit(4), membrane(47), iterate.Synchronous(), 4)
	run.Solver.Method.Name, run.Solver.Omega = problem.SOR, 1.5
	run.Recover = &Recovery{Suspect: 2 * time.Millisecond}
	alone, err := Run(context.Background(), run)
	require.NoError(t, err)
	run.Model.Events = []cluster.Event{{At: alone.Virtual * 2 / 3, Rank: 1, Killed: true}}
	r, err := Run(context.Background(), run)
	require.NoError(t, err)
	require.Equal(t, iterate.Converged, r.Reason)
	require.Len(t, r.Losses, 1)
	require.LessOrEqual(t, r.Sweeps(), 1.1*alone.Sweeps())
	t.Logf("%.0f sweeps after a loss; %.0f without", r.Sweeps(), alone.Sweeps())
}
