package solver

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/p2pdc/p2pdc/internal/solvertest"
	"github.com/p2pdc/p2pdc/solver/iterate"
	"github.com/p2pdc/p2pdc/solver/problem"
	"github.com/p2pdc/p2pdc/solver/verify"
)

// flows are velocity fields of magnitude about 1. All but the first two circulate, so that no diagonal scaling makes A
// symmetric.
var flows = []func(q problem.Point) problem.Point{
	func(problem.Point) problem.Point { return problem.Point{1, -0.5, 0.3} },
	func(q problem.Point) problem.Point { return problem.Point{q[0] - 0.5, 0.5 - q[1], q[2]} },
	func(q problem.Point) problem.Point { return problem.Point{2*q[1] - 1, 1 - 2*q[0], 0.1} },
	func(q problem.Point) problem.Point {
		a, b := 4*math.Pi*q[0], 4*math.Pi*q[1]
		return problem.Point{math.Sin(a) * math.Cos(b), -math.Cos(a) * math.Sin(b), math.Sin(5 * q[2])}
	},
	func(q problem.Point) problem.Point { // a vortex between the points of a coarse grid
		x, y := q[0]-0.33, q[1]-0.66
		w := 30 * math.Exp(-400*(x*x+y*y))
		return problem.Point{w * y, -w * x, 0}
	},
}

// diffusions are κ: constant, smooth over several decades, an inclusion, and layers.
var diffusions = []func(q problem.Point, size float64) float64{
	func(problem.Point, float64) float64 { return 1 },
	func(q problem.Point, size float64) float64 { return math.Pow(size, math.Sin(9*q[0])*math.Cos(7*q[1])) },
	func(q problem.Point, size float64) float64 {
		return solvertest.Where(math.Hypot(q[0]-0.3, q[1]-0.4) < 0.2, size)
	},
	func(q problem.Point, size float64) float64 { return solvertest.Where(math.Sin(23*q[0]) > 0, size) },
}

// flowing draws a problem whose matrix is an M-matrix, with a velocity.
func flowing(t *rapid.T) *problem.Problem {
	dim := rapid.IntRange(1, 3).Draw(t, "dimension")
	n := [3]int{1, 1, 1}
	for a := range dim {
		n[a] = rapid.IntRange(1, []int{40, 28, 11}[dim-1]).Draw(t, "n")
	}
	p := solvertest.Membrane(n, dim)
	p.Upwind = true
	p.Hi[dim-1] = rapid.SampledFrom([]float64{1, 0.1}).Draw(t, "length")
	flow := rapid.SampledFrom(flows).Draw(t, "flow")
	speed := math.Pow(10, rapid.Float64Range(-1, 6).Draw(t, "log of the speed"))
	for a := range dim {
		p.Velocity[a].Of = func(q problem.Point) float64 { return speed * flow(q)[a] }
	}
	diffusion := rapid.SampledFrom(diffusions).Draw(t, "diffusion")
	contrast := math.Pow(10, rapid.Float64Range(-4, 4).Draw(t, "log of the contrast"))
	p.Diffusion.Of = func(q problem.Point) float64 { return diffusion(q, contrast) }
	p.Reaction.Value = rapid.SampledFrom([]float64{0, 0, 1, 1e3}).Draw(t, "reaction")
	source := rapid.SampledFrom([]float64{0, -3, 1, 100}).Draw(t, "source")
	p.Source.Of = func(q problem.Point) float64 { return source * math.Cos(5*q[0]+q[1]) }
	switch rapid.IntRange(0, 2).Draw(t, "obstacles") {
	case 1:
		p.Obstacle = nil
	case 2:
		p.Upper = func(q problem.Point) float64 { return 0.55 + 0.1*q[0] }
	}
	return p
}

// SOR with its own factor converges for M-matrices with any flow, in hardly more sweeps than with ω = 1, to the same
// bits on every partition.
func TestSORConvergesWithFlows(t *testing.T) {
	const most = 6000
	compared := 0
	solvertest.CheckUntil(t, func() bool { return compared > 20 }, func(t *rapid.T) {
		p := flowing(t)
		c := problem.Config{
			Problem: p, Partition: solvertest.AnyPartition(t, p), Scheme: iterate.Synchronous(), Tolerance: 1e-6,
			MaxSweeps: most, Method: problem.MethodConfig{Name: problem.SOR},
		}
		one, seidel := c, c
		one.Partition = solvertest.SlabsOf(t, p, 1)
		seidel.Partition, seidel.Method.Omega = one.Partition, 1
		want := runOf(t, 1, seidel)
		require.NoError(t, want.Run())
		o := want.Peers[0].Outcome()
		one.MaxSweeps = 2*o.Sweeps + 250
		got := runOf(t, 1, one)
		require.NoError(t, got.Run())
		g := got.Peers[0].Outcome()
		require.NotEqual(t, iterate.Diverged, g.Reason)
		if o.Reason == iterate.Converged {
			compared++
			require.Equal(t, iterate.Converged, g.Reason, "%d sweeps with ω = 1; with %s the residual is %v after %d",
				o.Sweeps, got.Peers[0].Describe(), g.Residual, g.Sweeps)
			e, err := verify.Measure(p, got.Assemble(p), nil)
			require.NoError(t, err)
			require.Equal(t, g.Residual, e.RelativeResidual)
		}
		if c.Partition.Peers() > solvertest.MostPeers || g.Sweeps > 300 {
			return
		}
		c.MaxSweeps = one.MaxSweeps
		many := runOf(t, 2, c)
		require.NoError(t, many.Run())
		require.Equal(t, g.Sweeps, many.Peers[0].Outcome().Sweeps)
		solvertest.RequireSameBits(t, got.Assemble(p), many.Assemble(p))
	})
}
