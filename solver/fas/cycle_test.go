package fas

import (
	"math"
	"testing"

	"github.com/p2pdc/p2pdc/internal/kernel"
	"github.com/p2pdc/p2pdc/solver/iterate"
	"github.com/p2pdc/p2pdc/solver/method"
	"github.com/p2pdc/p2pdc/solver/problem"
	"github.com/stretchr/testify/require"
)

// paraboloid returns a membrane over a paraboloid.
func paraboloid(n int, at problem.Point, top float64) *problem.Problem {
	p := &problem.Problem{
		Name: "paraboloid", Dimension: 3, Hi: problem.Point{1, 1, 1}, N: [3]int{n, n, n},
		Diffusion: problem.Coefficient{Value: 1},
		Boundary:  func(problem.Point) float64 { return 0 },
	}
	p.Obstacle = func(q problem.Point) float64 {
		s := 0.0
		for a := range 3 {
			s += (q[a] - at[a]) * (q[a] - at[a])
		}
		return top - 4*s
	}
	return p
}

// hill has its contact in the middle, where the boxes of 8 peers meet.
func hill(n int) *problem.Problem { return paraboloid(n, problem.Point{.5, .5, .5}, .5) }

// off has it elsewhere.
func off(n int) *problem.Problem { return paraboloid(n, problem.Point{.35, .4, .62}, .3) }

// free has no obstacle.
func free(n int) *problem.Problem {
	p := hill(n)
	p.Obstacle = nil
	p.Source = problem.Coefficient{Of: func(q problem.Point) float64 {
		f := 1 + q[0]
		if q[0] > .6 && q[1] < .4 {
			f += 4
		}
		return f
	}}
	return p
}

func levelsOf(t require.TestingT, c problem.Config) (*levels, *problem.Discretization) {
	require.NoError(t, c.Prepare())
	g, err := newPlan(&c)
	require.NoError(t, err)
	own := c.Partition.Box(c.Rank)
	p0, err := g.part(own, 0)
	require.NoError(t, err)
	b, err := problem.Discretize(c.Problem, p0.box())
	require.NoError(t, err)
	v, err := newLevels(g, own, b, method.Options{Allocate: c.NewArray})
	require.NoError(t, err)
	return v, b
}

func residualOf(t require.TestingT, b *problem.Discretization, u []float64) float64 {
	s, err := b.Sweep(1)
	require.NoError(t, err)
	var n kernel.Norm
	s.Residual(&n, u, b.Layout.Interior())
	return math.Sqrt(n.Squares.Float64())
}

// stepsTo returns the number of steps of one peer until the relative residual is at most tol, at most most.
func stepsTo(t require.TestingT, p *problem.Problem, tol float64, most int) int {
	part, err := problem.Slabs(p.N, 1, nil)
	require.NoError(t, err)
	v, b := levelsOf(t, problem.Config{Problem: p, Partition: part, Scheme: iterate.Synchronous()})
	u := v.grids[0].Values
	require.NoError(t, b.FillReference(u))
	start := residualOf(t, b, u)
	require.NoError(t, v.start())
	for k := range most {
		if residualOf(t, b, u) <= tol*start {
			return k
		}
		v.phaseDown()
		v.phaseUp()
	}
	return most
}

// TestOnePeerConvergesLikeMultigrid checks that the number of steps of one peer depends neither on the problem nor on the
// grid.
func TestOnePeerConvergesLikeMultigrid(t *testing.T) {
	for name, make := range shapes {
		for _, n := range []int{31, 63} {
			require.LessOrEqual(t, stepsTo(t, make(n), 1e-6, 20), 8, "%s, %d points an axis", name, n)
			require.LessOrEqual(t, stepsTo(t, make(n), 1e-8, 20), 11, "%s, %d points an axis", name, n)
		}
	}
}

var shapes = map[string]func(int) *problem.Problem{"hill": hill, "off": off, "free": free}
