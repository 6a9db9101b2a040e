package fas

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"testing"

	"github.com/p2pdc/p2pdc/internal/solvertest"
	"github.com/p2pdc/p2pdc/solver/problem"
	"github.com/stretchr/testify/require"
)

// hardProblems returns problems on n points an axis, by name.
func hardProblems(n int) map[string]*problem.Problem {
	out := map[string]*problem.Problem{}
	for _, c := range []float64{10, 100, 1e4, 1e-4} {
		p := off(n)
		p.Diffusion.Of = func(q problem.Point) float64 {
			s := 0.0
			for a, x := range []float64{.3, .4, .6} {
				s += (q[a] - x) * (q[a] - x)
			}
			return solvertest.Where(s < .0625, c)
		}
		out[fmt.Sprint("ball ", c)] = p
		p = off(n)
		p.Diffusion.Of = func(q problem.Point) float64 {
			return solvertest.Where(math.Sin(22*math.Floor(8*q[0])+62*math.Floor(8*q[1])+40*math.Floor(8*q[2])) > 0.2, c)
		}
		out[fmt.Sprint("islands ", c)] = p
	}
	for _, v := range []float64{20, 200, 2000} {
		p := off(n)
		p.Velocity[0].Value, p.Velocity[1].Value, p.Upwind = v, -v*.7, true
		p.Source.Value = v
		out[fmt.Sprint("wind ", v)] = p
		p = off(n)
		p.Upwind = true
		p.Velocity[0].Of = func(q problem.Point) float64 { return v * (q[1] - .5) }
		p.Velocity[1].Of = func(q problem.Point) float64 { return -v * (q[0] - .5) }
		p.Source.Value = 5
		out[fmt.Sprint("swirl ", v)] = p
	}
	p := off(n)
	p.Obstacle = func(q problem.Point) float64 {
		s, a := 0.0, .5
		for m := 3.; m < 100; m *= 2 {
			s += a * math.Sin(m*q[0]*5+math.Sin(m*q[1]*7)) * math.Cos(m*q[1]*4+m*q[2]*6)
			a *= .55
		}
		return .3*s - .2
	}
	out["fractal"] = p
	p = off(n)
	p.Upper = func(q problem.Point) float64 { return .35 + .05*q[0] }
	p.Source.Of = func(q problem.Point) float64 { return 60 * math.Sin(9*q[0]+4*q[1]) }
	out["two obstacles"] = p
	p = off(n)
	p.Hi[2] = .5
	p.Obstacle = func(q problem.Point) float64 { return .3 - 4*((q[0]-.4)*(q[0]-.4)+(q[1]-.5)*(q[1]-.5)) }
	out["flat"] = p
	p = off(n)
	p.Reaction.Value = 1000
	out["reaction"] = p
	return out
}

// TestHardProblemsConverge checks problems for which a correction without its remedies fails: jumping coefficients, strong
// flows, narrow gaps between contact with two obstacles, obstacles without smoothness. The bounds have a quarter to spare.
func TestHardProblemsConverge(t *testing.T) {
	most := map[string][2]int{ // steps with latency 0.1 and 3
		"two obstacles": {13, 25}, "fractal": {20, 32}, "wind 200": {16, 33}, "swirl 20": {12, 25}, "reaction": {8, 13},
		"ball 10": {18, 30}, "islands 100": {55, 75}, "flat": {11, 25}, "wind 2000": {25, 34}, "swirl 2000": {53, 100}, "ball 0.0001": {42, 50},
	}
	all := hardProblems(31)
	for _, name := range slices.Sorted(maps.Keys(most)) {
		for i, latency := range []float64{.1, 3} {
			if testing.Short() && (i == 1 || most[name][0] > 25) {
				continue
			}
			o := world{parts: [3]int{2, 2, 2}, latency: latency}.run(t, all[name])
			t.Log(name, latency, o.steps)
			require.NotZero(t, o.steps, "%s, latency %v: not converged", name, latency)
			require.LessOrEqual(t, o.steps, most[name][i], "%s, latency %v", name, latency)
		}
	}
}
