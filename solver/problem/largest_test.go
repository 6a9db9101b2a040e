package problem_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/p2pdc/p2pdc/solver/problem"
)

// The bound of iterates is above a spike of the obstacle that no sample meets.
func TestLargestValueAllowsForSpikes(t *testing.T) {
	p := &problem.Problem{
		Name: "spike", Dimension: 2, N: [3]int{100, 100, 1}, Hi: problem.Point{1, 1}, Diffusion: problem.Coefficient{Value: 1},
		Source: problem.Coefficient{Value: 1}, Boundary: func(problem.Point) float64 { return 0 },
		Obstacle: func(q problem.Point) float64 {
			if math.Abs(q[0]-0.53) < 0.006 && math.Abs(q[1]-0.53) < 0.006 {
				return 1e60
			}
			return -1
		},
	}
	require.Greater(t, problem.LargestValue(p, problem.MethodConfig{}), 1e60)
	require.Less(t, problem.LargestValue(p, problem.MethodConfig{}), 1e300, "a lie of that size is refused")
}
