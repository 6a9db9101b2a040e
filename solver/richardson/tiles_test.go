package richardson

import (
	"testing"

	"github.com/p2pdc/p2pdc/internal/solvertest"
	"github.com/p2pdc/p2pdc/solver/iterate"
	"github.com/p2pdc/p2pdc/solver/problem"
	"github.com/stretchr/testify/require"
)

// byItself is a peer that owns the whole grid.
func byItself(t *testing.T, p *problem.Problem, tiling problem.Tiling, most iterate.Iteration) *worker {
	part, err := problem.GridOf(p.N, [3]int{1, 1, 1})
	require.NoError(t, err)
	w, err := newWorker(
		problem.Config{
			Problem:   p,
			Partition: part,
			Scheme:    iterate.Synchronous(),
			Tiling:    tiling,
			MaxSweeps: most,
			Executor:  solvertest.Threads{},
		},
	)
	require.NoError(t, err)
	return w
}

// A peer without neighbours makes a few passes over its block between two checks, and not one for each sweep.
func TestOnePeerMakesTiledPasses(t *testing.T) {
	p := solvertest.Membrane([3]int{40, 30, 30}, 3)
	w := byItself(t, p, problem.Tiling{Sweeps: 8, Rows: 10, Pieces: 2}, 40)
	points, before, longest := 0, iterate.Iteration(0), iterate.Iteration(0)
	for op := w.Next(0); op.Kind != iterate.OpDone; op = w.Next(0) {
		require.Equal(t, iterate.OpRelax, op.Kind)
		longest, before = max(longest, w.Iterate-before), w.Iterate
		w.Relax(op)
		if w.pass.relaxes {
			points += op.Points
		}
	}
	require.EqualValues(t, 8, longest)
	require.Equal(t, 40*p.Points(), points, "every sweep is counted")
	want, err := SolveSequential(p, problem.Jacobi, 0, 0, 0, 40)
	require.NoError(t, err)
	require.Equal(t, want.Sweeps, w.Outcome().Sweeps)
	got := make([]float64, p.Points())
	w.Solution(got)
	solvertest.RequireSameBits(t, want.U, got)
}

// The method's number of sweeps per pass applies when the shell sets none.
func TestSweepsPerPassApply(t *testing.T) {
	p := solvertest.Membrane([3]int{20, 20, 20}, 3)
	part, err := problem.GridOf(p.N, [3]int{1, 1, 1})
	require.NoError(t, err)
	for together, most := range map[int]iterate.Iteration{1: 1, 4: 4, 32: 32} {
		w, err := newWorker(
			problem.Config{
				Problem:   p,
				Partition: part,
				Scheme:    iterate.Synchronous(),
				MaxSweeps: 64,
				Method:    problem.MethodConfig{SweepsPerPass: together},
			},
		)
		require.NoError(t, err)
		before, longest := iterate.Iteration(0), iterate.Iteration(0)
		for op := w.Next(0); op.Kind != iterate.OpDone; op = w.Next(0) {
			longest, before = max(longest, w.Iterate-before), w.Iterate
			w.Relax(op)
		}
		require.Equal(t, most, longest)
	}
	_, err = newPeerOf(problem.Config{Method: problem.MethodConfig{SweepsPerPass: -1}})
	require.ErrorContains(t, err, "sweeps per pass -1")
}

// Solution within a pass returns an iterate, and the run continues from there.
func TestSolutionWithinATiledPassIsAnIterate(t *testing.T) {
	p := solvertest.Membrane([3]int{40, 30, 30}, 3)
	w := byItself(t, p, problem.Tiling{Sweeps: 8, Rows: 10, Pieces: 2}, 40)
	got := make([]float64, p.Points())
	looked := 0
	for op := w.Next(0); op.Kind != iterate.OpDone; op = w.Next(0) {
		w.Relax(op)
		if w.pass.tiled.sweeps > 0 && w.pass.at < len(w.pass.steps) {
			looked++
			w.Solution(got)
			require.Positive(t, w.Iterate)
			want, err := SolveSequential(p, problem.Jacobi, 0, 0, 0, w.Iterate)
			require.NoError(t, err)
			solvertest.RequireSameBits(t, want.U, got)
		}
	}
	require.Positive(t, looked)
	require.EqualValues(t, 40, w.Outcome().Sweeps)
}

// A request for an early end takes effect at the next check, as without passes of several sweeps.
func TestStopRequestEndsARunOfTiledPasses(t *testing.T) {
	p := solvertest.Membrane([3]int{40, 30, 30}, 3)
	w := byItself(t, p, problem.Tiling{Sweeps: 5, Rows: 10}, 4000)
	for op := w.Next(0); op.Kind != iterate.OpDone; op = w.Next(0) {
		if w.Iterate >= 40 {
			w.Stop(0, iterate.Interrupted)
		}
		w.Relax(op)
	}
	o := w.Outcome()
	require.Equal(t, iterate.Interrupted, o.Reason)
	require.LessOrEqual(t, o.Sweeps, iterate.Iteration(40+5+2*iterate.DefaultCheckEvery))
	want, err := SolveSequential(p, problem.Jacobi, 0, 0, 0, o.Sweeps)
	require.NoError(t, err)
	got := make([]float64, p.Points())
	w.Solution(got)
	solvertest.RequireSameBits(t, want.U, got)
}
