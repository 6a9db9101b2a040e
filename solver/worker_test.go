package solver

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestSynchronousIsBitwiseSequential(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) { checkLockstep(t, Synchronous()) })
}

func TestDelayZeroIsBitwiseSequential(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) { checkLockstep(t, BoundedDelay(0)) })
}

func checkLockstep(t *rapid.T, s Scheme) {
	p := anyProblem(t)
	c := Config{
		Problem: p, Partition: anyPartition(t, p), Scheme: s,
		Tolerance:  rapid.SampledFrom([]float64{1e-1, 1e-3}).Draw(t, "tolerance"),
		CheckEvery: Iteration(rapid.IntRange(0, 9).Draw(t, "every")),
		MaxSweeps:  Iteration(rapid.SampledFrom([]int{1, 7, 16, 60, 200, 800}).Draw(t, "max")),
		Executor:   backwards{},
		Tiling:     Tiling{Sweeps: rapid.IntRange(0, 9).Draw(t, "together"), Rows: rapid.IntRange(0, 5).Draw(t, "rows"), Pieces: rapid.IntRange(0, 3).Draw(t, "pieces")},
	}
	if rapid.IntRange(0, 3).Draw(t, "alone") == 0 {
		c.Partition, _ = GridOf(p.N, [3]int{1, 1, 1})
	}
	c.Lag = Iteration(rapid.IntRange(0, int(c.CheckEvery)).Draw(t, "lag"))
	if s.Name() == "hybrid" {
		c.Scheme = Hybrid(make([]int, c.Partition.Peers()))
	}
	want, err := SolveSequential(p, Jacobi, c.Tolerance, c.CheckEvery, c.Lag, c.MaxSweeps)
	require.NoError(t, err)
	n, err := newNetwork(rapid.Uint64().Draw(t, "seed"), configsFor(c))
	require.NoError(t, err)
	if s.Asynchronous() {
		n.loss, n.double = rapid.Float64Range(0, 0.5).Draw(t, "loss"), 0.1
	}
	require.NoError(t, n.run())
	for r, w := range workersOf(n) {
		o := w.Outcome()
		require.Equal(t, Outcome{Reason: want.Reason, Sweeps: want.Sweeps, Iterate: want.Sweeps, Residual: want.Residual}, o, "rank %d", r)
	}
	requireSameBits(t, want.U, n.assemble(p, c.Partition))
}

func TestAsynchronousMeetsTheTolerance(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := anyProblem(t)
		s := rapid.SampledFrom([]Scheme{Asynchronous(), BoundedDelay(1), BoundedDelay(4)}).Draw(t, "scheme")
		c := Config{
			Problem: p, Partition: anyPartition(t, p), Scheme: s, Tolerance: 1e-4,
			CheckEvery: Iteration(rapid.IntRange(1, 9).Draw(t, "every")),
			Order:      rapid.SampledFrom([]Order{Jacobi, InTurn}).Draw(t, "order"),
		}
		n, err := newNetwork(rapid.Uint64().Draw(t, "seed"), configsFor(c))
		require.NoError(t, err)
		n.loss, n.double = rapid.Float64Range(0, 0.5).Draw(t, "loss"), 0.1
		require.NoError(t, n.run())
		e, err := Evaluate(p, n.assemble(p, c.Partition), nil)
		require.NoError(t, err)
		for _, w := range workersOf(n) {
			require.Equal(t, Converged, w.Outcome().Reason)
			require.Equal(t, e.RelativeResidual, w.Outcome().Residual, "what was agreed is what is true")
		}
		require.LessOrEqual(t, e.RelativeResidual, c.Tolerance)
	})
}
