package solver

import (
	"testing"

	"github.com/p2pdc/p2pdc/internal/solvertest"
	"github.com/p2pdc/p2pdc/solver/iterate"
	"github.com/p2pdc/p2pdc/solver/problem"
	"github.com/p2pdc/p2pdc/solver/verify"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// A run that begins after some time steps completes the others, on another partition: a synchronous run of Richardson
// with the bits and sweeps of the run of all steps, other runs within the tolerance.
func TestRunAfterTimeSteps(t *testing.T) {
	type kind struct {
		method problem.MethodConfig
		scheme iterate.Scheme
	}
	kinds := []kind{
		{problem.MethodConfig{Name: problem.Richardson}, iterate.Synchronous()},
		{problem.MethodConfig{Name: problem.Richardson}, iterate.Asynchronous()},
		{problem.MethodConfig{Name: problem.Richardson}, iterate.BoundedDelay(2)},
		{problem.MethodConfig{Name: problem.SOR}, iterate.Synchronous()},
		{problem.MethodConfig{Name: problem.Multigrid}, iterate.Synchronous()},
		{problem.MethodConfig{Name: problem.Schwarz, Overlap: 1}, iterate.Synchronous()},
		{problem.MethodConfig{Name: problem.Schwarz, Overlap: 1}, iterate.Asynchronous()},
		{problem.MethodConfig{Name: problem.FAS}, iterate.Synchronous()},
		{problem.MethodConfig{Name: problem.FAS}, iterate.Asynchronous()},
	}
	rapid.Check(t, func(t *rapid.T) {
		p := solvertest.Evolving(t)
		p.Evolution.Steps = rapid.IntRange(2, 4).Draw(t, "more steps")
		k := kinds[rapid.IntRange(0, len(kinds)-1).Draw(t, "kind")]
		run := func(after int, start []float64) (*solvertest.Network, [][]float64) {
			part := solvertest.AnyPartition(t, p)
			configs := solvertest.ConfigsFor(problem.Config{
				Problem: p, Partition: part, Scheme: k.scheme, Method: k.method, Tolerance: 1e-6,
				Reconfigure: rapid.Bool().Draw(t, "reconfigure"), After: after,
			})
			for r := range configs {
				if start != nil {
					configs[r].Initial = values(start, p, part.Box(iterate.Rank(r)))
				}
			}
			if err := Methods().Check(configs[0]); err != nil && k.method.Name == problem.FAS {
				t.Skip(err) // boxes without a coarse point
			}
			n, err := newNetwork(rapid.Uint64().Draw(t, "seed"), configs)
			require.NoError(t, err)
			ends := make([][]float64, p.Steps()+1)
			for m := range ends {
				ends[m] = make([]float64, p.Points())
			}
			n.Stepped = func(rank int, r iterate.StepResult, u []float64) {
				place(ends[r.Step], p.N, n.Peers[rank].Box(), u)
			}
			require.NoError(t, n.Run())
			require.NoError(t, n.Failed)
			return n, ends
		}
		whole, want := run(0, nil)
		after := rapid.IntRange(1, p.Steps()-1).Draw(t, "after")
		rest, got := run(after, want[after])
		got[after] = want[after]
		for m := after + 1; m <= p.Steps(); m++ {
			e, err := verify.EvaluateStep(p, m, got[m-1], got[m], nil)
			require.NoError(t, err)
			require.LessOrEqual(t, e.RelativeResidual, 1e-6)
		}
		for r, q := range rest.Peers {
			o := q.Outcome()
			require.Equal(t, iterate.Converged, o.Reason)
			require.Equal(t, p.Steps(), o.Steps, "the earlier steps count")
			require.Equal(t, after+1, rest.Steps[r][0].Step)
			require.LessOrEqual(t, rest.ModeChanges[r], 2*(p.Steps()-after-1), "sessions begin in their mode")
		}
		if k.method.Name == problem.Richardson && k.scheme.Name() == "sync" {
			require.Equal(t, whole.Steps[0][after:], rest.Steps[0])
			solvertest.RequireSameBits(t, want[p.Steps()], got[p.Steps()])
		}
	})
}

// values returns the values of a box, as part does.
func values(u []float64, p *problem.Problem, b problem.Box) []float64 { return part(u, p.N, b) }

// Solve begins after the given time steps too.
func TestSolveAfterTimeSteps(t *testing.T) {
	p := solvertest.Heating(8, 4)
	var ends [][]float64
	o := Options{Peers: 2, Step: func(_ iterate.StepResult, u []float64) error {
		ends = append(ends, append([]float64(nil), u...))
		return nil
	}}
	want, err := Solve(t.Context(), p, o)
	require.NoError(t, err)
	got, err := Solve(t.Context(), p, Options{Peers: 3, After: 3, Initial: ends[2]})
	require.NoError(t, err)
	solvertest.RequireSameBits(t, want.U, got.U)
	require.Equal(t, 4, got.Peers[0].Steps)

	for _, o := range []Options{{After: 4, Initial: ends[3]}, {After: -1, Initial: ends[3]}, {After: 2}} {
		_, err := Solve(t.Context(), p, o)
		require.ErrorIs(t, err, ErrOptions)
	}
}
