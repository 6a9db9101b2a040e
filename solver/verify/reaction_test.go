package verify

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/p2pdc/p2pdc/internal/solvertest"
	"github.com/p2pdc/p2pdc/solver/problem"
)

// TestNegativeReaction checks that a negative reaction is accepted exactly while A is an M-matrix: above minus the
// smallest eigenvalue of A without it, (4/h²)·sin²(πh/2) per axis. In time steps 1/Δt counts.
func TestNegativeReaction(t *testing.T) {
	for _, n := range [][3]int{{1, 1, 1}, {15, 1, 1}, {100, 1, 1}, {15, 15, 1}, {40, 63, 1}, {9, 9, 9}} {
		dimension := 1
		for dimension < 3 && n[dimension] > 1 {
			dimension++
		}
		p := solvertest.Membrane(n, dimension)
		eigenvalue := 0.0
		for a := range dimension {
			h := p.Spacing(a)
			eigenvalue += 4 / h / h * math.Pow(math.Sin(math.Pi*h/2), 2)
		}
		for _, c := range []struct {
			part float64
			want bool
		}{{0, true}, {-0.1, true}, {-0.5, true}, {-0.8, true}, {-1.02, false}, {-5, false}} {
			for _, variable := range []bool{false, true} {
				q := *p
				if q.Reaction.Value = c.part * eigenvalue; variable {
					value := q.Reaction.Value
					q.Reaction.Of = func(x problem.Point) float64 { return value * (1 + 1e-9*x[0]) }
				}
				err := CheckReaction(&q, nil)
				require.Equal(t, c.want, err == nil, "%v, %v of the eigenvalue, variable %v: %v", n, c.part, variable, err)
				if err != nil {
					require.Regexp(t, "A is not an M-matrix|diagonal .* must be positive", err)
				} else if q.Points() < 300 {
					e, err := Evaluate(&q, make([]float64, q.Points()), nil)
					require.NoError(t, err)
					norm := inverseNorm(t, &q)
					require.GreaterOrEqual(t, e.Certificate.Inverse, norm*(1-1e-9))
					require.LessOrEqual(t, e.Certificate.Inverse, 3*norm, "%v, %v of the eigenvalue, %s", n, c.part, e.Certificate.By)
				}
			}
		}
	}
	p := solvertest.Heating(15, 10)
	start := *p
	for reaction, want := range map[float64]bool{-5: true, -1e4: false} {
		q := start
		evolution := *p.Evolution
		q.Evolution = &evolution
		evolution.At = func(time float64) *problem.Problem {
			at := *p.Evolution.At(time)
			at.Reaction = problem.Coefficient{Value: reaction}
			return &at
		}
		err := CheckReaction(&q, nil)
		require.Equal(t, want, err == nil, "%v", err)
		if err != nil {
			require.ErrorContains(t, err, "take more time steps")
		}
	}
}
