package richardson

import (
	"testing"

	"github.com/p2pdc/p2pdc/internal/solvertest"
	"github.com/p2pdc/p2pdc/solver/iterate"
	"github.com/p2pdc/p2pdc/solver/problem"
	"github.com/p2pdc/p2pdc/solver/verify"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestSynchronousIsBitwiseSequential(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) { checkLockstep(t, iterate.Synchronous()) })
}

func TestDelayZeroIsBitwiseSequential(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) { checkLockstep(t, iterate.BoundedDelay(0)) })
}

func checkLockstep(t *rapid.T, s iterate.Scheme) {
	p := solvertest.AnyProblem(t)
	c := problem.Config{
		Problem: p, Partition: solvertest.AnyPartition(t, p), Scheme: s,
		Tolerance:  rapid.SampledFrom([]float64{1e-1, 1e-3}).Draw(t, "tolerance"),
		CheckEvery: iterate.Iteration(rapid.IntRange(0, 9).Draw(t, "every")),
		MaxSweeps:  iterate.Iteration(rapid.SampledFrom([]int{1, 7, 16, 60, 200, 800}).Draw(t, "max")),
		Executor:   solvertest.Backwards{}, Late: rapid.Bool().Draw(t, "late"),
		Tiling: problem.Tiling{
			Sweeps: rapid.IntRange(0, 9).Draw(t, "together"),
			Rows:   rapid.IntRange(0, 5).Draw(t, "rows"),
			Pieces: rapid.IntRange(0, 3).Draw(t, "pieces"),
		},
	}
	if rapid.IntRange(0, 3).Draw(t, "alone") == 0 {
		c.Partition, _ = problem.GridOf(p.N, [3]int{1, 1, 1})
	}
	c.Lag = iterate.Iteration(rapid.IntRange(0, int(c.CheckEvery)).Draw(t, "lag"))
	if s.Name() == "hybrid" {
		c.Scheme = iterate.Hybrid(make([]int, c.Partition.Peers()))
	}
	want, err := SolveSequential(p, problem.Jacobi, c.Tolerance, c.CheckEvery, c.Lag, c.MaxSweeps)
	require.NoError(t, err)
	n, err := newNetwork(rapid.Uint64().Draw(t, "seed"), solvertest.ConfigsFor(c))
	require.NoError(t, err)
	if s.Asynchronous() {
		n.Loss, n.Duplicate = rapid.Float64Range(0, 0.5).Draw(t, "loss"), 0.1
	}
	require.NoError(t, n.Run())
	for r, w := range workersOf(n) {
		o := w.Outcome()
		require.Equal(
			t,
			iterate.Outcome{Reason: want.Reason, Sweeps: want.Sweeps, Iterate: want.Sweeps, Residual: want.Residual},
			o,
			"rank %d",
			r,
		)
	}
	solvertest.RequireSameBits(t, want.U, n.Assemble(p))
}

func TestAsynchronousMeetsTheTolerance(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := solvertest.AnyProblem(t)
		s := rapid.SampledFrom([]iterate.Scheme{iterate.Asynchronous(), iterate.BoundedDelay(1),
			iterate.BoundedDelay(4)}).
			Draw(t, "scheme")
		c := problem.Config{
			Problem: p, Partition: solvertest.AnyPartition(t, p), Scheme: s, Tolerance: 1e-4,
			CheckEvery: iterate.Iteration(rapid.IntRange(1, 9).Draw(t, "every")),
			Order:      rapid.SampledFrom([]problem.Order{problem.Jacobi, problem.InTurn}).Draw(t, "order"),
		}
		n, err := newNetwork(rapid.Uint64().Draw(t, "seed"), solvertest.ConfigsFor(c))
		require.NoError(t, err)
		n.Loss, n.Duplicate = rapid.Float64Range(0, 0.5).Draw(t, "loss"), 0.1
		require.NoError(t, n.Run())
		e, err := verify.Evaluate(p, n.Assemble(p), nil)
		require.NoError(t, err)
		for _, w := range workersOf(n) {
			require.Equal(t, iterate.Converged, w.Outcome().Reason)
			require.Equal(t, e.RelativeResidual, w.Outcome().Residual, "what was agreed is what is true")
		}
		require.LessOrEqual(t, e.RelativeResidual, c.Tolerance)
	})
}
