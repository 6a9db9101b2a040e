package cli

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/p2pdc/p2pdc/obstacle/internal/launch"
	"github.com/p2pdc/p2pdc/obstacle/internal/report"
	"github.com/p2pdc/p2pdc/problems"
	"github.com/p2pdc/p2pdc/solver/verify"
)

// The answer of a run that has not converged is the starting iterate if its residual is smaller than that of the last one.
func TestAnEarlyEndIsNeverWorseThanTheStart(t *testing.T) {
	b, err := problems.Lookup("membrane")
	require.NoError(t, err)
	p, err := b.Make([3]int{7, 7, 7})
	require.NoError(t, err)
	start := launch.Start(p, nil)
	worse := make([]float64, len(start))
	for i, v := range start {
		worse[i] = v + float64(i%2)
	}
	garbage := make([]float64, len(start))
	for i := range garbage {
		garbage[i] = math.Pow(-1, float64(i)) * 1e227
	}
	for _, c := range []struct {
		name     string
		reason   string
		initial  []float64
		best     []float64
		u, want  []float64
		replaced bool
	}{
		{"interrupted", launch.Interrupted, nil, nil, worse, start, true},
		{"time", launch.Time, nil, nil, worse, start, true},
		{"diverged", launch.Diverged, nil, nil, garbage, start, true},
		{"stagnated", launch.Stagnated, nil, nil, worse, start, true},
		{"failed", launch.Failed, nil, nil, garbage, start, true},
		{"solved", launch.Converged, nil, nil, worse, worse, false},
		{"better than the start", launch.Sweeps, worse, nil, start, start, false},
		{"worse than the answer of the run before", launch.Sweeps, worse, start, worse, start, true},
		{"better than the answer of the run before", launch.Sweeps, garbage, worse, start, start, false},
		{"worse than the user's start", launch.Sweeps, start, nil, worse, start, true},
	} {
		o := &launch.Outcome{Reason: c.reason, U: c.u}
		e, err := verify.Evaluate(p, c.u, nil)
		require.NoError(t, err)
		got, err := preferStart(&work{problem: p, initial: c.initial, best: c.best}, o, e, nil)
		require.NoError(t, err)
		require.Equal(t, c.want, o.U, c.name)
		require.Equal(t, c.replaced, o.AtStart, c.name)
		if c.replaced {
			require.Equal(t, c.u, o.Ended, c.name)
		}
		require.LessOrEqual(t, got.RelativeResidual, e.RelativeResidual, c.name)
	}
	require.Equal(t, ExitFailed, exitCode(verdict(&report.Solution{Reason: launch.Diverged})))
}
