package method_test

import (
	"math"
	"testing"

	"github.com/p2pdc/p2pdc/problems"
	"github.com/p2pdc/p2pdc/solver/method"
	"github.com/p2pdc/p2pdc/solver/problem"
	"github.com/stretchr/testify/require"
)

// Obstacles that touch at isolated points only, which most coarse grids do not contain: a terrain, and summits
// of white noise in two and three dimensions.
func TestRoughObstacles(t *testing.T) {
	noise := func(builtin string, n [3]int, height, below float64) *problem.Problem {
		p := grid(t, builtin, n)
		p.Upper, p.Rows, p.Source = nil, problem.Rows{}, problem.Coefficient{}
		p.Obstacle = func(x problem.Point) float64 {
			at := 0.0
			for a := range 3 {
				at += math.Round(x[a]*float64(n[a]+1)) * []float64{12.9898, 78.233, 37.719}[a]
			}
			v := math.Sin(at) * 43758.5453
			v -= math.Floor(v)
			return height*v*v*v - below
		}
		p.Boundary = func(x problem.Point) float64 { return max(0, p.Obstacle(x)) }
		return p
	}
	for name, c := range map[string]struct {
		problem *problem.Problem
		most    int
	}{
		"terrain":          {grid(t, "jacksboro", [3]int{127, 127, 1}), 10},
		"terrain, between": {grid(t, "jacksboro", [3]int{200, 171, 1}), 13},
		"noise 2-D":        {noise("torsion", [3]int{127, 127, 1}, 0.3, 0.05), 11},
		"noise 3-D":        {noise("membrane", [3]int{31, 31, 31}, 0.3, 0.05), 11},
	} {
		s, u, err := problem.NewSystem(c.problem, problem.Box{Hi: c.problem.N})
		require.NoError(t, err)
		m, err := method.NewMultigrid(s, method.Options{})
		require.NoError(t, err)
		m.Start(u)
		m.Cycle(u)
		first := m.Residual()
		cycles := 1
		for ; m.Residual() > 1e-5*first && cycles < 100; cycles++ {
			m.Cycle(u)
		}
		t.Logf("%s: %d cycles, %d rejected", name, cycles, m.Rejections())
		require.LessOrEqual(t, cycles, c.most, name)
		require.Zero(t, m.Rejections(), name)
	}
}

func grid(t *testing.T, builtin string, n [3]int) *problem.Problem {
	b, err := problems.Lookup(builtin)
	require.NoError(t, err)
	p, err := b.Make(n)
	require.NoError(t, err)
	return p
}
