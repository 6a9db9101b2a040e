package richardson

import (
	"math"
	"testing"

	"github.com/p2pdc/p2pdc/internal/solvertest"
	"github.com/p2pdc/p2pdc/solver/iterate"
	"github.com/p2pdc/p2pdc/solver/problem"
	"github.com/p2pdc/p2pdc/solver/verify"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// Synchronous time stepping gives the sequential bits in every step, on any
// partition, over a channel that loses, too.
func TestStepsInLockstepAreBitwiseSequential(t *testing.T) {
	for _, s := range []iterate.Scheme{iterate.Synchronous(), iterate.BoundedDelay(0)} {
		t.Run(s.Name(), func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				c := anyStepping(t, func(problem.Partition) iterate.Scheme { return s })
				c.MaxSweeps = iterate.Iteration(rapid.SampledFrom([]int{0, 0, 0, 40}).Draw(t, "max"))
				want, err := SolveSequential(c.Problem, problem.Jacobi, c.Tolerance, c.CheckEvery, c.Lag, c.MaxSweeps)
				require.NoError(t, err)
				n, err := newNetwork(rapid.Uint64().Draw(t, "seed"), solvertest.ConfigsFor(c))
				require.NoError(t, err)
				n.Loss, n.Duplicate = rapid.Float64Range(0, 0.4).Draw(t, "loss"), 0.1
				require.NoError(t, n.Run())
				for r, w := range workersOf(n) {
					o := w.Outcome()
					require.Equal(t, want.Reason, o.Reason)
					require.Equal(t, want.Sweeps, o.Sweeps)
					require.Equal(t, len(want.Steps), o.Steps)
					require.Equal(t, want.Steps, n.Steps[r])
				}
				solvertest.RequireSameBits(t, want.U, n.Assemble(c.Problem))
			})
		})
	}
}

// In every scheme and at every step the assembled vector meets the tolerance and has the agreed residual.
func TestStepsMeetTheTolerance(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := anyStepping(t, func(part problem.Partition) iterate.Scheme {
			return rapid.SampledFrom([]iterate.Scheme{
				iterate.Asynchronous(), iterate.BoundedDelay(1), iterate.BoundedDelay(3),
				iterate.Hybrid(anyClusters(t, part.Peers())),
			}).Draw(t, "scheme")
		})
		c.Order = rapid.SampledFrom([]problem.Order{problem.Jacobi, problem.InTurn}).Draw(t, "order")
		checkSteps(t, c, rapid.Uint64().Draw(t, "seed"), rapid.Float64Range(0, 0.4).Draw(t, "loss"))
	})
}

// checkSteps runs c and checks the end of every step.
func checkSteps(
	t require.TestingT,
	c problem.Config,
	seed uint64,
	loss float64,
	tune ...func(*solvertest.Network),
) *solvertest.Network {
	n, err := newNetwork(seed, solvertest.ConfigsFor(c))
	require.NoError(t, err)
	n.Loss, n.Duplicate = loss, 0.1
	for _, f := range tune {
		f(n)
	}
	p := c.Problem
	ends := make([][]float64, p.Steps()+1)
	for m := range ends {
		ends[m] = make([]float64, p.Points())
	}
	ends[0], err = verify.AtStart(p, nil)
	require.NoError(t, err)
	n.Stepped = func(rank int, r iterate.StepResult, u []float64) {
		workersOf(n)[rank].Box().Each(func(d int, idx [3]int) bool {
			ends[r.Step][idx[0]-1+p.N[0]*(idx[1]-1+p.N[1]*(idx[2]-1))] = u[d]
			return true
		})
	}
	require.NoError(t, n.Run())
	require.NoError(t, n.Failed)
	worst := 0.0
	for m := 1; m <= p.Steps(); m++ {
		e, err := verify.EvaluateStep(p, m, ends[m-1], ends[m], nil)
		require.NoError(t, err)
		require.LessOrEqual(t, e.RelativeResidual, c.Tolerance, "step %d", m)
		worst = max(worst, e.RelativeResidual)
		for r := range workersOf(n) {
			if !c.Scheme.Lockstep() {
				require.Equal(t, e.RelativeResidual, n.Steps[r][m-1].Residual, "what was agreed is what is true")
			}
		}
	}
	for r, w := range workersOf(n) {
		o := w.Outcome()
		require.Equal(t, iterate.Converged, o.Reason)
		require.Equal(t, p.Steps(), o.Steps)
		if !c.Scheme.Lockstep() {
			require.Equal(t, worst, o.WorstResidual)
		}
		asynchronous := false
		for _, nb := range w.faces {
			asynchronous = asynchronous || c.Scheme.Between(iterate.Rank(r), nb.Rank).Asynchronous()
		}
		changes := 0
		if c.Reconfigure && asynchronous {
			changes = 2 * (p.Steps() - 1)
		}
		require.Equal(t, changes, n.ModeChanges[r], "both ways at every boundary")
	}
	solvertest.RequireSameBits(t, ends[p.Steps()], n.Assemble(p))
	return n
}

// Faces of a past step that arrive late are dropped and counted.
func TestFacesOfAnOldStepAreDropped(t *testing.T) {
	p := solvertest.Heating(6, 4)
	c := problem.Config{
		Problem:   p,
		Partition: solvertest.SlabsOf(t, p, 3),
		Scheme:    iterate.Asynchronous(),
		Tolerance: 1e-4,
	}
	stale := uint64(0)
	for seed := range uint64(5) {
		n := checkSteps(t, c, seed, 0.1)
		for _, w := range workersOf(n) {
			stale += w.Outcome().StaleHalos
		}
	}
	require.Positive(t, stale)
}

// An early end in the middle of a step gives the end of the step before.
func TestStopBetweenSteps(t *testing.T) {
	for _, s := range []iterate.Scheme{iterate.Synchronous(), iterate.Asynchronous(), iterate.BoundedDelay(0)} {
		p := solvertest.Heating(6, 50)
		c := problem.Config{
			Problem:     p,
			Partition:   solvertest.SlabsOf(t, p, 3),
			Scheme:      s,
			Tolerance:   1e-9,
			Reconfigure: true,
		}
		n := runOf(t, 3, c)
		ends := map[int][]float64{}
		n.Stepped = func(rank int, r iterate.StepResult, u []float64) {
			if rank == 1 {
				ends[r.Step] = u
			}
			if r.Step == 3 {
				n.StopAt = n.Now
			}
		}
		n.StopAt, n.StopRank = 1<<40, 2
		require.NoError(t, n.Run())
		o := workersOf(n)[1].Outcome()
		require.Equal(t, iterate.Interrupted, o.Reason, s.Name())
		require.GreaterOrEqual(t, o.Steps, 3)
		require.Less(t, o.Steps, 50)
		for _, w := range workersOf(n) {
			require.Equal(t, o.Steps, w.Outcome().Steps)
			require.Equal(t, o.Reason, w.Outcome().Reason)
		}
		u := make([]float64, workersOf(n)[1].Box().Points())
		workersOf(n)[1].Solution(u)
		solvertest.RequireSameBits(t, ends[o.Steps], u)
	}
}

// A problem that cannot be evaluated at the time of a step ends the run with an error that names the step.
func TestStepThatCannotBeEvaluatedEndsTheRun(t *testing.T) {
	p := solvertest.Heating(4, 4)
	at := p.Evolution.At
	p.Evolution.At = func(t float64) *problem.Problem {
		q := at(t)
		if t > 0.06 {
			q.Source.Of = func(x problem.Point) float64 { return math.NaN() }
		}
		return q
	}
	w, err := newWorker(
		problem.Config{
			Problem:   p,
			Partition: solvertest.SlabsOf(t, p, 1),
			Scheme:    iterate.Synchronous(),
			Tolerance: 1e-3,
		},
	)
	require.NoError(t, err)
	steps := 0
	for {
		op := w.Next(0)
		switch op.Kind {
		case iterate.OpRelax:
			w.Relax(op)
			continue
		case iterate.OpStep:
			steps++
			continue
		}
		require.Equal(t, iterate.OpFail, op.Kind)
		require.ErrorContains(t, op.Err, "time step 3, t = 0.07")
		require.ErrorContains(t, op.Err, "the source is NaN")
		break
	}
	require.Equal(t, 2, steps)
}

// Messages and faces of steps after the next one are refused.
func TestMessagesOfLaterStepsAreRefused(t *testing.T) {
	p := solvertest.Heating(6, 4)
	w, err := newWorker(
		problem.Config{Problem: p, Partition: solvertest.SlabsOf(t, p, 3), Scheme: iterate.Asynchronous(), Rank: 1},
	)
	require.NoError(t, err)
	face := make([]byte, w.faces[0].to.FaceBytes)
	require.ErrorContains(t, w.Halo(0, 0, 0, iterate.PackLabel(3, 0, 1), face), "iterate 1 of time step 3")
	require.NoError(t, w.Halo(0, 0, 0, iterate.PackLabel(2, 0, 1), face))
	far := iterate.Message{Kind: iterate.MsgCaptured, Step: 3, Values: face}
	require.ErrorContains(t, w.Agree(0, 0, far.Encode()), "a message of time step 3; this peer is at step 1 of 4")
	next := iterate.Message{Kind: iterate.MsgCaptured, Step: 2, Values: face}
	for range 5 {
		require.NoError(t, w.Agree(0, 0, next.Encode()))
	}
	require.ErrorContains(t, w.Agree(0, 0, next.Encode()), "more than 5 messages of time step 2")

	still := solvertest.Membrane([3]int{6, 6, 6}, 3)
	w, err = newWorker(
		problem.Config{
			Problem:   still,
			Partition: solvertest.SlabsOf(t, still, 3),
			Scheme:    iterate.Synchronous(),
			Rank:      1,
		},
	)
	require.NoError(t, err)
	require.ErrorContains(t, w.Halo(0, 0, 0, iterate.PackLabel(1, 0, 0), face), "which it cannot have made")
	require.ErrorContains(t, w.Agree(0, 0, next.Encode()), "time step 2")
}

func TestInvalidEvolutionsAreRefused(t *testing.T) {
	for what, change := range map[string]func(*problem.Evolution){
		"the end time is 0":    func(e *problem.Evolution) { e.End = 0 },
		"the end time is NaN":  func(e *problem.Evolution) { e.End = math.NaN() },
		"0 time steps":         func(e *problem.Evolution) { e.Steps = 0 },
		"no functions of time": func(e *problem.Evolution) { e.At = nil },
		"1048577 time steps":   func(e *problem.Evolution) { e.Steps = problem.MaxSteps + 1 },
		"the value at time 0 is": func(e *problem.Evolution) {
			e.Initial = func(problem.Point) float64 { return math.NaN() }
		},
	} {
		p := solvertest.Heating(4, 4)
		change(p.Evolution)
		_, err := newWorker(
			problem.Config{Problem: p, Partition: solvertest.SlabsOf(t, p, 1), Scheme: iterate.Synchronous()},
		)
		require.ErrorContains(t, err, what)
	}
}

// A halo of a past step is never read in the next one, in any scheme.
func TestOldFacesAreNotRead(t *testing.T) {
	p := solvertest.Heating(6, 4)
	w, err := newWorker(
		problem.Config{Problem: p, Partition: solvertest.SlabsOf(t, p, 3), Scheme: iterate.Asynchronous(), Rank: 1},
	)
	require.NoError(t, err)
	f := w.faces[0]
	face := make([]byte, f.to.FaceBytes)
	require.NoError(t, w.Halo(0, 0, 0, iterate.PackLabel(1, 0, 7), face))
	require.Equal(t, iterate.Iteration(7), f.Pick(0).Label)
	f.begin(2)
	require.Nil(t, f.Pick(0))
	w.Steps.Current = 2
	require.NoError(t, w.Halo(0, 0, 0, iterate.PackLabel(1, 0, 9), face))
	require.Equal(t, uint64(1), w.Outcome().StaleHalos)
	require.Nil(t, f.Pick(0))
	require.NoError(t, w.Halo(0, 0, 0, iterate.PackLabel(2, 0, 1), face))
	require.Equal(t, iterate.Iteration(1), f.Pick(0).Label)
}
