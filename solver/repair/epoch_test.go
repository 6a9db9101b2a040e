package repair_test

import (
	"slices"
	"testing"

	"github.com/p2pdc/p2pdc/solver"
	"github.com/p2pdc/p2pdc/solver/internal/solvertest"
	"github.com/p2pdc/p2pdc/solver/iterate"
	"github.com/p2pdc/p2pdc/solver/problem"
	"github.com/p2pdc/p2pdc/solver/repair"
	"github.com/p2pdc/p2pdc/solver/verify"
	"github.com/stretchr/testify/require"
)

func TestNextCountsSweepsOn(t *testing.T) {
	u := []float64{1, 2}
	for _, c := range []struct{ most, done, left iterate.Iteration }{
		{10, 4, 6}, {10, 10, 1}, {10, 11, 1}, {0, 7, 0}, {1, 0, 1},
	} {
		n := repair.Next(problem.Config{Rank: 3, MaxSweeps: c.most}, u, c.done)
		require.Equal(t, c.left, n.MaxSweeps)
		require.Equal(t, u, n.Initial)
		require.Equal(t, iterate.Rank(3), n.Rank)
	}
}

// A bound on sweeps holds for all epochs together.
func TestBoundOnSweepsHoldsAcrossEpochs(t *testing.T) {
	l := lossyRuns()[0]
	r := l.of(t, 3)
	r.config.Tolerance, r.config.MaxSweeps = solvertest.Impossible, 12
	r.play(t, loss{200, []iterate.Rank{1}}, loss{50, []iterate.Rank{0}})
	require.Equal(t, 3, r.epochs)
	require.Equal(t, iterate.ReachedSweeps, r.reason)
	require.LessOrEqual(t, slices.Max(r.sweeps), iterate.Iteration(12))
	require.GreaterOrEqual(t, slices.Min(r.sweeps), iterate.Iteration(10), "neighbours are an iterate apart")
}

// The residuals of all epochs are relative to the same reference, whatever values an epoch begins with.
func TestReferenceDoesNotDependOnTheStart(t *testing.T) {
	for _, l := range lossyRuns() {
		t.Run(l.name(), func(t *testing.T) {
			r := l.of(t, 3)
			c := r.config
			u := make([]float64, len(r.exact))
			for i, v := range r.exact {
				u[i] = v + 0.01*float64(i%7)
			}
			c.Tolerance = 1e30 // the run ends with its starting vector
			configs := solvertest.ConfigsFor(c)
			for i := range configs {
				configs[i] = repair.Next(configs[i], valuesOf(c.Problem, u, c.Partition.Box(iterate.Rank(i))), 3)
			}
			n, err := solvertest.NewNetwork(1, solver.New, configs)
			require.NoError(t, err)
			require.NoError(t, n.Run())
			got := n.Assemble(c.Problem)
			require.Equal(t, u, got)
			e, err := verify.Measure(c.Problem, got, nil)
			require.NoError(t, err)
			for _, q := range n.Peers {
				require.InEpsilon(t, e.RelativeResidual, q.Outcome().Residual, 1e-12)
			}
		})
	}
}
