package runner_test

import (
	"errors"
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/p2pdc/p2pdc/problems"
	"github.com/p2pdc/p2pdc/solver/iterate"
	"github.com/p2pdc/p2pdc/solver/problem"
	"github.com/p2pdc/p2pdc/solver/richardson"
	"github.com/p2pdc/p2pdc/solver/runner"
	"github.com/p2pdc/p2pdc/solver/verify"
)

// travelling returns a small nonstationary problem.
func travelling(t testing.TB, n, steps int) *problem.Problem {
	t.Helper()
	b, err := problems.Lookup("front")
	require.NoError(t, err)
	b, err = b.With([]string{fmt.Sprintf("steps=%d", steps)})
	require.NoError(t, err)
	p, err := b.Make([3]int{n, n, n})
	require.NoError(t, err)
	return p
}

// place puts a block into a grid.
func place(u []float64, p *problem.Problem, b problem.Box, v []float64) {
	i := 0
	for z := b.Lo[2]; z < b.Hi[2]; z++ {
		for y := b.Lo[1]; y < b.Hi[1]; y++ {
			i += copy(u[b.Lo[0]+p.N[0]*(y+p.N[1]*z):], v[i:i+b.Hi[0]-b.Lo[0]])
		}
	}
}

// stepping runs a nonstationary plan and checks every step.
func (p *plan) stepping(t *testing.T, reconfigure bool) []outcome {
	t.Helper()
	steps := p.problem.Steps()
	ends := make([][]float64, steps+1)
	var err error
	ends[0], err = verify.AtStart(p.problem, nil)
	require.NoError(t, err)
	for m := 1; m <= steps; m++ {
		ends[m] = make([]float64, p.problem.Points())
	}
	change := p.change
	p.change = func(rank int, c *runner.Config) {
		if change != nil {
			change(rank, c)
		}
		c.Solver.Reconfigure = reconfigure
		box := c.Solver.Partition.Box(c.Solver.Rank)
		c.Step = func(s iterate.StepResult, _ problem.Box, solution func([]float64)) error {
			v := make([]float64, box.Points())
			solution(v)
			place(ends[s.Step], p.problem, box, v) // boxes do not overlap
			return nil
		}
	}
	out := p.run(t)
	for rank, o := range out {
		require.NoError(t, o.err, "rank %d", rank)
		require.Equal(t, iterate.Converged, o.result.Reason)
		require.Equal(t, steps, o.result.Steps)
	}
	for m := 1; m <= steps; m++ {
		e, err := verify.EvaluateStep(p.problem, m, ends[m-1], ends[m], nil)
		require.NoError(t, err)
		require.LessOrEqual(t, e.RelativeResidual, 1e-5, "step %d", m)
	}
	sameBits(t, ends[steps], assemble(p.problem, out))
	return out
}

// steppers returns the schemes of runs in time steps; with -short, not those of bounded delay.
func steppers() []iterate.Scheme {
	out := []iterate.Scheme{iterate.Synchronous(), iterate.Asynchronous(), iterate.Hybrid([]int{0, 0, 1, 1})}
	if testing.Short() {
		return out
	}
	return append(out, iterate.BoundedDelay(0), iterate.BoundedDelay(2))
}

func TestStepsOverTheMesh(t *testing.T) {
	p := travelling(t, 11, 5)
	seq, err := richardson.SolveSequential(p, problem.Jacobi, 1e-5, 0, 0, 0)
	require.NoError(t, err)
	for _, scheme := range steppers() {
		for _, reconfigure := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/reconfigure %v", scheme.Name(), reconfigure), func(t *testing.T) {
				m := newMesh(3)
				m.loss = 0.2
				m.grant = 2
				m.busy = 0.3
				pl := plan{problem: p, peers: 4, boxes: true, scheme: scheme,
					node: func(rank int) runner.Node { return m.node(names(4)[rank]) }}
				out := pl.stepping(t, reconfigure)
				checkChanges(t, out, scheme, reconfigure, 5)
				if scheme.Lockstep() {
					require.Equal(t, seq.Sweeps, out[0].result.Sweeps)
					sameBits(t, seq.U, assemble(p, out))
				}
			})
		}
	}
}

// checkChanges expects changes in both directions at every boundary, if sessions are asynchronous.
func checkChanges(t *testing.T, out []outcome, scheme iterate.Scheme, reconfigure bool, steps int) {
	t.Helper()
	for rank, o := range out {
		changes := 0
		for _, s := range o.result.Halos {
			if reconfigure && scheme.Between(iterate.Rank(rank), s.Rank).Asynchronous() {
				changes = 2 * (steps - 1)
			}
		}
		require.Equal(t, changes, o.result.Changes)
		require.Equal(t, changes > 0, o.result.Changing > 0)
	}
}

// The same over UDP: sessions change their composition at every boundary.
func TestStepsOverSockets(t *testing.T) {
	p := travelling(t, 15, 6)
	for _, scheme := range []iterate.Scheme{iterate.Asynchronous(), iterate.Hybrid([]int{0, 0, 1, 1}),
		iterate.BoundedDelay(0)} {
		if testing.Short() && scheme.Lockstep() {
			continue
		}
		for _, reconfigure := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/reconfigure %v", scheme.Name(), reconfigure), func(t *testing.T) {
				pl := plan{problem: p, peers: 4, boxes: true, scheme: scheme, node: overNodes(nodes(t, 4, 0))}
				out := pl.stepping(t, reconfigure)
				checkChanges(t, out, scheme, reconfigure, 6)
				for rank, o := range out {
					for _, s := range o.result.Halos {
						if scheme.Between(iterate.Rank(rank), s.Rank).Asynchronous() {
							require.Equal(t, uint32(o.result.Changes), s.Info.Changes)
							require.Contains(t, s.Info.Composition, "Asynchronous")
						}
					}
				}
				t.Logf("%d changes in %v, the last pause %v", out[0].result.Changes, out[0].result.Changing,
					out[0].result.Halos[0].Info.LastPause)
			})
		}
	}
}

// An error of Config.Step ends the run, and an early end gives the last complete step.
func TestStepsEnd(t *testing.T) {
	p := travelling(t, 9, 50)
	m := newMesh(1)
	stop := make(chan struct{})
	ends := make([][]float64, 51)
	pl := plan{problem: p, peers: 2, scheme: iterate.Asynchronous(),
		node: func(rank int) runner.Node { return m.node(names(2)[rank]) },
		change: func(rank int, c *runner.Config) {
			c.Stop, c.Solver.Reconfigure = stop, true
			box := c.Solver.Partition.Box(c.Solver.Rank)
			c.Step = func(s iterate.StepResult, _ problem.Box, solution func([]float64)) error {
				if rank == 0 {
					ends[s.Step] = make([]float64, box.Points())
					solution(ends[s.Step])
					if s.Step == 3 {
						close(stop)
					}
				}
				return nil
			}
		}}
	out := pl.run(t)
	for _, o := range out {
		require.NoError(t, o.err)
		require.Equal(t, iterate.Interrupted, o.result.Reason)
		require.Equal(t, out[0].result.Steps, o.result.Steps)
		require.Less(t, o.result.Steps, 50)
	}
	sameBits(t, ends[out[0].result.Steps], out[0].block)

	broken := errors.New("no room for this step")
	pl = plan{problem: travelling(t, 5, 3), peers: 1, scheme: iterate.Synchronous(),
		change: func(_ int, c *runner.Config) {
			c.Step = func(iterate.StepResult, problem.Box, func([]float64)) error { return broken }
		}}
	require.ErrorIs(t, pl.run(t)[0].err, broken)
	require.False(t, math.IsNaN(pl.run(t)[0].block[0]))
}

// A step that fails at one peer, because its part of the problem has no value at that time, ends the
// run everywhere in bounded time. Neighbours that wait for its session to change find that it has
// left.
func TestStepThatOnePeerCannotEvaluateEndsTheRun(t *testing.T) {
	t.Parallel() // it mostly waits
	for _, scheme := range []iterate.Scheme{iterate.Asynchronous(), iterate.Synchronous()} {
		t.Run(scheme.Name(), func(t *testing.T) {
			t.Parallel()
			p := travelling(t, 9, 8)
			at := p.Evolution.At
			p.Evolution.At = func(s float64) *problem.Problem {
				q := at(s)
				if s > 0.16 {
					load := q.Source
					q.Source.Of = func(x problem.Point) float64 {
						if x[2] > 0.75 {
							return math.NaN()
						}
						return load.At(x)
					}
				}
				return q
			}
			pl := plan{problem: p, peers: 3, scheme: scheme, node: overNodes(nodes(t, 3, 0)),
				change: func(_ int, c *runner.Config) { c.Solver.Reconfigure, c.Grace = true, 200*time.Millisecond }}
			out := pl.run(t)
			require.ErrorContains(t, out[2].err, "time step 4, t = 0.2")
			require.ErrorContains(t, out[2].err, "the source is NaN")
			var e *runner.NeighbourError
			require.ErrorAs(t, out[1].err, &e)
			require.Equal(t, iterate.Rank(2), e.Rank)
			require.ErrorAs(t, out[0].err, &e)
			for _, o := range out {
				require.Equal(t, 3, o.result.Steps)
			}
		})
	}
}
