package simulate

import (
	"context"
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/p2pdc/p2pdc/simulate/cluster"
	"github.com/p2pdc/p2pdc/solver/iterate"
	"github.com/p2pdc/p2pdc/solver/problem"
	"github.com/p2pdc/p2pdc/solver/richardson"
	"github.com/stretchr/testify/require"
)

// drum is a membrane under a load and above an obstacle that change with time, in steps.
func drum(n, steps int) *problem.Problem {
	still := membrane(n)
	at := func(t float64) *problem.Problem {
		p := *still
		p.Source = problem.Coefficient{Of: func(x problem.Point) float64 { return 40 * t * x[0] }}
		p.Obstacle = func(x problem.Point) float64 { return still.Obstacle(x) - t*x[1] }
		return &p
	}
	p := *at(0)
	p.Evolution = &problem.Evolution{End: 0.5, Steps: steps, At: at}
	return &p
}

// stepping returns a run of several time steps on three machines.
func stepping(t *testing.T, s iterate.Scheme) Config {
	t.Helper()
	run := runOf(t, gigabit(3), drum(9, 4), s, 3)
	for i := range run.Model.Hosts {
		run.Model.Hosts[i].Relaxation = 2e6
	}
	run.Solver.Reconfigure = true
	run.Recover = &Recovery{Suspect: 2 * time.Millisecond, Spares: 8}
	return run
}

// requireSteps requires that every step is complete and meets the tolerance.
func requireSteps(t *testing.T, run Config, r *Result) {
	t.Helper()
	require.Equal(t, iterate.Converged, r.Reason)
	require.Len(t, r.Steps, run.Solver.Problem.Steps())
	last := time.Duration(0)
	for i, s := range r.Steps {
		require.Equal(t, i+1, s.Step)
		require.Greater(t, s.Ended, last)
		require.Positive(t, s.Sweeps)
		require.LessOrEqual(t, s.Residual, run.Solver.Tolerance)
		last = s.Ended
	}
	require.LessOrEqual(t, last, r.Virtual)
	require.LessOrEqual(t, r.Residual, run.Solver.Tolerance)
	for _, k := range r.Ranks {
		require.Equal(t, r.Virtual, k.Relaxing+k.Protocol+k.Idle)
	}
}

// In lockstep, time steps give the bits and the sweeps of the sequential method. Out of lockstep every step meets the
// tolerance, and the residual is that of the worst step.
func TestTimeSteps(t *testing.T) {
	for _, s := range []iterate.Scheme{iterate.Synchronous(), iterate.Asynchronous()} {
		run := stepping(t, s)
		r, err := Run(context.Background(), run)
		require.NoError(t, err)
		requireSteps(t, run, r)
		want, err := richardson.SolveSequential(run.Solver.Problem, problem.Jacobi, run.Solver.Tolerance, 0, 0, 0)
		require.NoError(t, err)
		if s.Lockstep() {
			require.Equal(t, want.U, r.U)
			require.InEpsilon(t, float64(want.Sweeps), r.Sweeps(), 0.01)
			for i, step := range r.Steps {
				require.EqualValues(t, want.Steps[i].Sweeps, step.Sweeps)
				require.Equal(t, want.Steps[i].Residual, step.Residual)
			}
			continue
		}
		worst := 0.0
		for _, step := range r.Steps {
			worst = max(worst, step.Residual)
		}
		require.Greater(t, worst, r.Steps[3].Residual)
		require.InEpsilon(t, worst, r.Residual, 1e-6)
	}
}

// A neighbour may be a time step ahead. Its newest face is not old then.
func TestFacesOfTheNextStepAreNotOld(t *testing.T) {
	m := gigabit(4)
	for i := range m.Hosts {
		m.Hosts[i].Relaxation = 4e6
	}
	split(t, m, cluster.WANLink{Rate: 125e6, Latency: 100 * time.Microsecond, Queue: 1 << 20})
	run := runOf(t, m, drum(9, 4), iterate.Synchronous(), 4)
	var err error
	run.Solver.Partition, err = problem.Slabs(run.Solver.Problem.N, 4, nil)
	require.NoError(t, err)
	r, err := Run(context.Background(), run)
	require.NoError(t, err)
	for age, faces := range r.Staleness {
		require.Equal(t, age == 0, faces > 0, "%d faces of age %d", faces, age)
	}
}

// instants are in several steps of a run, at their beginnings and later, as shares of its time.
var instants = []float64{0.02, 0.15, 0.3, 0.45, 0.6, 0.75, 0.97}

// A loss in a time step begins that step again, whichever rank is lost, and whenever. Complete steps are kept. In
// lockstep the answer has the same bits.
func TestLossInATimeStep(t *testing.T) {
	for _, s := range []iterate.Scheme{iterate.Synchronous(), iterate.Asynchronous()} {
		run := stepping(t, s)
		alone, err := Run(context.Background(), run)
		require.NoError(t, err)
		oracle, err := richardson.SolveSequential(run.Solver.Problem, problem.Jacobi, run.Solver.Tolerance, 0, 0, 0)
		require.NoError(t, err)
		for rank := range 3 {
			for i, part := range instants {
				if testing.Short() && i%3 != rank {
					continue
				}
				at := time.Duration(part * float64(alone.Virtual))
				t.Run(fmt.Sprintf("%s, rank %d at %v", s.Name(), rank, at), func(t *testing.T) {
					r := played(t, run, cluster.Event{At: at, Rank: rank, Killed: true})
					requireSteps(t, run, r)
					require.Len(t, r.Losses, 1)
					l := r.Losses[0]
					want := Loss{Rank: rank, Host: rank, Killed: true, Noticed: l.Noticed, Spare: true, Resumed: l.Resumed}
					require.Equal(t, want, l, "no block was repaired")
					require.GreaterOrEqual(t, l.Noticed, at)
					require.Less(t, l.Resumed-l.Noticed, time.Millisecond)
					requireRestarted(t, alone, r, l)
					if s.Lockstep() {
						require.Equal(t, oracle.U, r.U)
						require.InDelta(t, alone.Virtual+l.Resumed-r.began(l), r.Virtual, float64(time.Millisecond))
					}
				})
			}
		}
	}
}

// began returns when the step began in which a peer was lost.
func (r *Result) began(l Loss) (at time.Duration) {
	for _, s := range r.Steps {
		if s.Ended < l.Noticed {
			at = s.Ended
		}
	}
	return at
}

// requireRestarted requires that the steps before a loss are those of the run without it, and that the next one began
// after the recovery.
func requireRestarted(t *testing.T, alone, r *Result, l Loss) {
	t.Helper()
	for i, s := range r.Steps {
		if s.Ended < l.Noticed {
			require.Equal(t, alone.Steps[i], s)
			continue
		}
		took := s.Ended - l.Resumed
		would := alone.Steps[i].Ended - r.began(l)
		require.InEpsilon(t, would, took, 0.1, "step %d", s.Step)
		return
	}
	require.Fail(t, "no step was restarted")
}

// The launcher has a step when every rank has sent it its block. If a peer is lost before, the step begins again,
// although the ranks have ended it.
func TestLossWhileBlocksAreSent(t *testing.T) {
	for _, s := range []iterate.Scheme{iterate.Synchronous(), iterate.Asynchronous()} {
		run := stepping(t, s)
		run.Scale = 8 // so that the blocks take long, but less than a new process takes to start
		run.Recover.Spares = 0
		for i := range run.Model.Hosts {
			run.Model.Hosts[i].Relaxation = 1e9
		}
		alone, err := Run(context.Background(), run)
		require.NoError(t, err)
		second := alone.Steps[1].Ended
		sending := seconds(8 * 512 * 2 * 243 / run.Model.Networks[0].Rate)
		for rank := range 3 {
			if testing.Short() && rank == 1 {
				continue // as rank 2, it is not on the launcher's machine
			}
			r := played(t, run, cluster.Event{At: second + sending/2, Rank: rank, Killed: true})
			requireSteps(t, run, r)
			require.Equal(t, alone.Steps[0], r.Steps[0])
			require.Greater(t, r.Steps[1].Ended, r.Losses[0].Resumed, "rank %d", rank)
			r = played(t, run, cluster.Event{At: second + sending*11/10, Rank: rank, Killed: true})
			requireSteps(t, run, r)
			require.Equal(t, alone.Steps[1], r.Steps[1])
		}
	}
}

// The start of the step takes its time on the launcher's line: to all ranks but rank 0, which is on the same machine.
func TestSendingTheStartOfAStep(t *testing.T) {
	run := stepping(t, iterate.Synchronous())
	gap := func(scale int) time.Duration {
		run.Scale = scale
		alone, err := Run(context.Background(), run)
		require.NoError(t, err)
		l := played(t, run, cluster.Event{At: alone.Virtual / 2, Rank: 1, Killed: true}).Losses[0]
		return l.Resumed - l.Noticed - alone.Setup // ranks connect, and exchange faces of the start
	}
	more := seconds(8 * (512 - 1) * 2 * 243 / run.Model.Networks[0].Rate)
	require.InEpsilon(t, more, gap(8)-gap(1), 0.03)
	slow := gap(1)
	run.Recover.Spares = 0
	require.InEpsilon(t, startTime, gap(1)-slow, 0.01)
}

// A rank ends no step before it has sent its block of the step before.
func TestStepsWaitForTheirBlocks(t *testing.T) {
	run := stepping(t, iterate.Synchronous())
	run.Solver.Problem = drum(9, 12)
	run.Solver.Tolerance, run.Solver.CheckEvery = 0.05, 1
	run.Scale = 8 // a block is much longer than a face
	for i := range run.Model.Hosts {
		run.Model.Hosts[i].Relaxation = 1e12
	}
	r, err := Run(context.Background(), run)
	require.NoError(t, err)
	requireSteps(t, run, r)
	sending := seconds(8 * 512 * 2 * 243 / run.Model.Networks[0].Rate)
	for i, s := range r.Steps[2:] {
		require.GreaterOrEqual(t, s.Ended, time.Duration(i+1)*sending, "step %d", s.Step)
	}
	require.Less(t, r.Virtual, 12*sending)
}

// Peers may be lost in several steps, during a recovery, and all at once: the launcher has the start of the step.
func TestSeveralLossesInTimeSteps(t *testing.T) {
	for _, s := range []iterate.Scheme{iterate.Synchronous(), iterate.Asynchronous()} {
		run := stepping(t, s)
		alone, err := Run(context.Background(), run)
		require.NoError(t, err)
		half := alone.Virtual / 2
		one := played(t, run, cluster.Event{At: half, Rank: 1, Killed: true}).Losses[0]
		recovering := one.Noticed + (one.Resumed-one.Noticed)/4
		killed := func(at time.Duration, rank int) cluster.Event { return cluster.Event{At: at, Rank: rank, Killed: true} }
		silent := func(at time.Duration, rank int) cluster.Event { return cluster.Event{At: at, Rank: rank, Lost: true} }
		for name, events := range map[string][]cluster.Event{
			"in two steps":       {killed(half/2, 1), killed(half*3/2, 1)},
			"in one step":        {killed(half, 2), killed(half*11/10, 1)},
			"during a recovery":  {killed(half, 1), killed(recovering, 2)},
			"the replacement":    {killed(half, 1), killed(recovering, 1)},
			"all":                {killed(half, 0), killed(half, 1), killed(half, 2)},
			"all, silently":      {silent(half, 0), silent(half, 1), silent(half, 2)},
			"killed, and silent": {killed(half/2, 0), silent(half, 0)},
			"at once, two ranks": {killed(half, 0), silent(half, 2)},
		} {
			t.Run(s.Name()+", "+name, func(t *testing.T) {
				r := played(t, run, events...)
				requireSteps(t, run, r)
				require.Len(t, r.Losses, len(events))
				for _, l := range r.Losses {
					require.Greater(t, l.Resumed, l.Noticed)
				}
				if s.Lockstep() {
					require.Equal(t, alone.U, r.U)
				}
				run := run
				run.Threads = 1
				require.Equal(t, r, played(t, run, events...), "with one thread")
			})
		}
	}
}

// The bound on sweeps is that of every step, also of one that begins again.
func TestBoundOnSweepsOfEveryStep(t *testing.T) {
	run := stepping(t, iterate.Synchronous())
	alone, err := Run(context.Background(), run)
	require.NoError(t, err)
	for _, s := range alone.Steps {
		run.Solver.MaxSweeps = max(run.Solver.MaxSweeps, iterate.Iteration(s.Sweeps))
	}
	r := played(t, run, cluster.Event{At: alone.Steps[3].Ended * 19 / 20, Rank: 1, Killed: true})
	requireSteps(t, run, r)
	require.Equal(t, alone.U, r.U)
}

// A machine that is silent for a while is not lost, and no step begins again.
func TestSilenceInATimeStep(t *testing.T) {
	run := stepping(t, iterate.Synchronous())
	alone, err := Run(context.Background(), run)
	require.NoError(t, err)
	at := alone.Virtual / 2
	r := played(t, run, cluster.Event{At: at, Until: at + run.Recover.Suspect/2, Rank: 1, Lost: true})
	requireSteps(t, run, r)
	require.Empty(t, r.Losses)
	require.Equal(t, alone.U, r.U)
	require.Less(t, r.Virtual, alone.Virtual+10*run.Recover.Suspect)
}

// A peer that is lost when all blocks of the last step are sent is not replaced. One that is lost sooner is.
func TestLossAfterTheLastStep(t *testing.T) {
	for _, s := range []iterate.Scheme{iterate.Synchronous(), iterate.Asynchronous()} {
		run := stepping(t, s)
		alone, err := Run(context.Background(), run)
		require.NoError(t, err)
		r := played(t, run, cluster.Event{At: alone.Virtual - 1, Rank: 0, Lost: true})
		requireSteps(t, run, r)
		require.Empty(t, r.Losses, "it has ended the step, on the launcher's machine")
		require.Equal(t, alone.Steps, r.Steps)
		require.Equal(t, alone.Virtual-1+run.Recover.Suspect, r.Virtual)
		r = played(t, run, cluster.Event{At: alone.Virtual - 1, Rank: 2, Lost: true})
		requireSteps(t, run, r)
		require.Len(t, r.Losses, 1)
		require.Greater(t, r.Steps[3].Ended, r.Losses[0].Resumed)
	}
}

// Every method and scheme solves time steps and recovers in them.
func TestMethodsInTimeSteps(t *testing.T) {
	for name, c := range map[string]struct {
		scheme iterate.Scheme
		method string
	}{
		"delay":     {iterate.BoundedDelay(2), ""},
		"hybrid":    {iterate.Hybrid([]int{0, 0, 1}), ""},
		"sor":       {iterate.Synchronous(), problem.SOR},
		"multigrid": {iterate.Synchronous(), problem.Multigrid},
		"schwarz":   {iterate.Asynchronous(), problem.Schwarz},
	} {
		t.Run(name, func(t *testing.T) {
			run := stepping(t, c.scheme)
			run.Solver.Method.Name = c.method
			alone, err := Run(context.Background(), run)
			require.NoError(t, err)
			requireSteps(t, run, alone)
			for rank := range 3 {
				r := played(t, run, cluster.Event{At: alone.Virtual * 2 / 3, Rank: rank, Killed: true})
				requireSteps(t, run, r)
				require.Len(t, r.Losses, 1)
				if c.scheme.Lockstep() {
					require.Equal(t, alone.U, r.U)
				}
			}
		})
	}
}

// A run that ends early gives the last complete step.
func TestEarlyEndOfTimeSteps(t *testing.T) {
	run := stepping(t, iterate.Synchronous())
	alone, err := Run(context.Background(), run)
	require.NoError(t, err)
	run.Evaluate, run.Until = true, alone.Steps[1].Ended+time.Millisecond
	r, err := Run(context.Background(), run)
	require.NoError(t, err)
	require.Equal(t, iterate.ReachedTime, r.Reason)
	require.Equal(t, alone.Steps[:2], r.Steps)
	require.LessOrEqual(t, r.Residual, run.Solver.Tolerance)
	require.Zero(t, r.Met)
	run.Until = alone.Steps[0].Ended / 2
	r, err = Run(context.Background(), run)
	require.NoError(t, err)
	require.Empty(t, r.Steps)
	require.True(t, math.IsNaN(r.Residual))
	start, err := run.Solver.Problem.InitialValues(0, problem.Box{Hi: run.Solver.Problem.N}, nil)
	require.NoError(t, err)
	require.Equal(t, start, r.U)

	run.Until = 0
	r, err = Run(context.Background(), run)
	require.NoError(t, err)
	require.Equal(t, r.Virtual, r.Met.After)
	run.Solver.After = 1
	_, err = Run(context.Background(), run)
	require.ErrorContains(t, err, "begins with the first time step")
}
