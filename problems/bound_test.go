package problems

import (
	"math"
	"testing"

	"github.com/p2pdc/p2pdc/solver/multilevel"
	"github.com/p2pdc/p2pdc/solver/problem"
	"github.com/p2pdc/p2pdc/solver/verify"
	"github.com/stretchr/testify/require"
)

// The error bound holds for every built-in, compared with the discrete solution up to rounding. Nonstationary
// problems are compared in their first step.
func TestErrorBoundOfAll(t *testing.T) {
	for _, b := range All() {
		t.Run(b.Name, func(t *testing.T) {
			p, err := b.Make(cube(b.Dimension, []int{0, 63, 21, 9}[b.Dimension]))
			require.NoError(t, err)
			before, step := []float64(nil), p
			if p.Evolution != nil {
				before, err = verify.AtStart(p, nil)
				require.NoError(t, err)
				only := *p.Evolution
				only.Steps, only.End = 1, p.Evolution.Step()
				all := p.Evolution.At
				only.At = func(float64) *problem.Problem { return all(p.Evolution.Time(1)) }
				q := *p
				q.Evolution = &only
				step = &q
			}
			evaluate := func(u []float64) verify.Evaluation {
				var e verify.Evaluation
				if before == nil {
					e, err = verify.Evaluate(p, u, nil)
				} else {
					e, err = verify.EvaluateStep(p, 1, before, u, nil)
				}
				require.NoError(t, err)
				return e
			}
			at := func(tol float64) []float64 {
				s, err := multilevel.SolveBy(step, problem.MethodConfig{Name: problem.SOR}, tol, 4000, nil)
				require.NoError(t, err)
				return s.U
			}
			fine, rough := at(1e-12), at(1e-2)
			reference, e := evaluate(fine), evaluate(rough)
			require.Equal(t, "", e.Certificate.Why)
			require.True(t, e.Certificate.MMatrix)
			worst := 0.0
			for i, v := range fine {
				worst = math.Max(worst, math.Abs(v-rough[i]))
			}
			t.Logf("error %.3e, bound %.3e: %.2f times; ‖A⁻¹‖∞ ≤ %.4g by %s", worst, e.ErrorBound, e.ErrorBound/worst,
				e.Certificate.Inverse, e.Certificate.By)
			require.LessOrEqual(t, worst, e.ErrorBound+reference.ErrorBound)
		})
	}
}
