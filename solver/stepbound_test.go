package solver

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

// stepEnds are u(0) and the ends of all time steps of a run by one peer.
func stepEnds(t require.TestingT, p *problem.Problem, tolerance float64) [][]float64 {
	n, err := newNetwork(
		1,
		solvertest.ConfigsFor(
			problem.Config{
				Problem:    p,
				Partition:  solvertest.SlabsOf(t, p, 1),
				Scheme:     iterate.Synchronous(),
				Tolerance:  tolerance,
				CheckEvery: 1,
				Lag:        1,
			},
		),
	)
	require.NoError(t, err)
	start, err := verify.AtStart(p, nil)
	require.NoError(t, err)
	ends := [][]float64{start}
	n.Stepped = func(_ int, _ iterate.StepResult, u []float64) { ends = append(ends, append([]float64(nil), u...)) }
	require.NoError(t, n.Run())
	require.Len(t, ends, p.Steps()+1)
	return ends
}

// The bound holds at the end of every step, compared with steps that are solved exactly. It bounds the error of the
// whole run, and not of one step.
func TestStepBounds(t *testing.T) {
	draws, compared, missed := 0, 0, 0
	covered := func() bool { return 2*compared > draws && missed > 0 }
	solvertest.CheckUntil(t, covered, func(t *rapid.T) {
		draws++
		p := solvertest.Evolving(t)
		rough := stepEnds(t, p, rapid.SampledFrom([]float64{0.3, 1e-1, 1e-2}).Draw(t, "tolerance"))
		fine := stepEnds(t, p, 1e-11) // what rounding leaves may be 3e-13 of the first residual
		b, exact := verify.NewStepBounds(p), verify.NewStepBounds(p)
		for m := 1; m <= p.Steps(); m++ {
			require.NoError(t, b.Add(m, rough[m-1], rough[m], nil))
			require.NoError(t, exact.Add(m, fine[m-1], fine[m], nil))
			bound, _, why := b.At(m)
			rest, _, _ := exact.At(m)
			if why != "" {
				require.True(t, math.IsNaN(bound))
				continue
			}
			e := 0.0
			for i, v := range rough[m] {
				e = math.Max(e, math.Abs(v-fine[m][i]))
			}
			require.LessOrEqual(t, e, bound+rest, "step %d", m)
			own, err := verify.EvaluateStep(p, m, rough[m-1], rough[m], nil)
			require.NoError(t, err)
			compared++
			if e > own.ErrorBound+rest {
				missed++
			}
		}
		require.Error(t, verify.NewStepBounds(p).Add(2, rough[0], rough[1], nil), "a step is missing")
		_, _, why := verify.NewStepBounds(p).At(1)
		require.NotEmpty(t, why)
	})
	t.Logf("%d steps of %d draws have a bound; %d errors are above that of one step", compared, draws, missed)
}
