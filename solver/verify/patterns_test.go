package verify

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
	"gonum.org/v1/gonum/mat"

	"github.com/p2pdc/p2pdc/internal/kernel"
	"github.com/p2pdc/p2pdc/solver/multilevel"
	"github.com/p2pdc/p2pdc/solver/problem"
)

// pattern is an operator whose matrix is an M-matrix.
type pattern struct {
	name      string
	dimension int
	diffusion problem.Function
	velocity  [3]problem.Coefficient
	axes      problem.Point // lengths of the domain; 0: 1
}

// problem returns A·u = 1, above an obstacle of −1, on n points along each axis.
func (c *pattern) problem(n int) *problem.Problem {
	p := &problem.Problem{
		Name: c.name, Dimension: c.dimension, N: [3]int{1, 1, 1}, Upwind: true, Velocity: c.velocity,
		Source: problem.Coefficient{Value: 1}, Diffusion: problem.Coefficient{Of: c.diffusion},
		Obstacle: func(problem.Point) float64 { return -1 }, Boundary: func(problem.Point) float64 { return 0 },
	}
	for a := range c.dimension {
		p.N[a], p.Hi[a] = n, 1
		if c.axes[a] != 0 {
			p.Hi[a] = c.axes[a]
		}
	}
	return p
}

// cells returns a checkerboard of count cells along each axis, with values 1 and k.
func cells(dimension int, count, k float64) problem.Function {
	return func(q problem.Point) float64 {
		sum := 0.0
		for a := range dimension {
			sum += math.Floor(count * q[a])
		}
		if math.Mod(sum, 2) != 0 {
			return k
		}
		return 1
	}
}

// sines returns k where sin(wave·x)·sin(wave·y) > 0 and 1 elsewhere: cells that meet at corners and do not align with the
// grid.
func sines(wave, k float64) problem.Function {
	return where(func(q problem.Point) bool { return math.Sin(wave*q[0])*math.Sin(wave*q[1]) > 0 }, k)
}

// moved returns f of the shifted point, after a rotation by the angle whose cosine is 0.8 if turned.
func moved(f problem.Function, shift problem.Point, turned bool) problem.Function {
	return func(q problem.Point) float64 {
		if turned {
			q[0], q[1] = 0.8*q[0]+0.6*q[1], 0.8*q[1]-0.6*q[0]
		}
		return f(problem.Point{q[0] + shift[0], q[1] + shift[1]})
	}
}

// turn returns a rotation about the centre of the square.
func turn(size float64) [3]problem.Coefficient {
	return [3]problem.Coefficient{
		{Of: func(q problem.Point) float64 { return size * (q[1] - 0.5) }},
		{Of: func(q problem.Point) float64 { return size * (0.5 - q[0]) }},
	}
}

func where(inside func(q problem.Point) bool, k float64) problem.Function {
	return func(q problem.Point) float64 {
		if inside(q) {
			return k
		}
		return 1
	}
}

// patterns are operators of many kinds, 2-D ones first.
func patterns() []pattern {
	random := rand.New(rand.NewPCG(7, 11))
	var table [16][16]float64
	for i := range table {
		for j := range table[i] {
			table[i][j] = math.Pow(10, 6*random.Float64()-3)
		}
	}
	disk := func(q problem.Point) bool { return (q[0]-0.3)*(q[0]-0.3)+(q[1]-0.4)*(q[1]-0.4) < 0.04 }
	rods := func(q problem.Point) bool {
		x, y := 4*q[0]-math.Floor(4*q[0])-0.5, 4*q[1]-math.Floor(4*q[1])-0.5
		return x*x+y*y < 0.15
	}
	return []pattern{
		{name: "checkerboard 8, 1000", dimension: 2, diffusion: cells(2, 8, 1000)},
		{name: "checkerboard 8, 1e4", dimension: 2, diffusion: cells(2, 8, 1e4)},
		{name: "checkerboard 3, 1e4", dimension: 2, diffusion: cells(2, 3, 1e4)},
		{name: "checkerboard 13, 100", dimension: 2, diffusion: cells(2, 13, 100)},
		{name: "stripes 1e4", dimension: 2, diffusion: where(func(q problem.Point) bool { return math.Mod(math.Floor(9*q[0]), 2) == 1 }, 1e4)},
		{name: "disk 1e4", dimension: 2, diffusion: where(disk, 1e4)},
		{name: "rods 1e-4", dimension: 2, diffusion: where(rods, 1e-4)},
		{name: "random cells 1e±3", dimension: 2, diffusion: func(q problem.Point) float64 {
			return table[min(15, int(16*q[0]))][min(15, int(16*q[1]))]
		}},
		{name: "jump with flow", dimension: 2, diffusion: where(disk, 1000), velocity: turn(60)},
		{name: "cells with flow", dimension: 2, diffusion: cells(2, 8, 1000), velocity: turn(60)},
		{name: "anisotropic", dimension: 2, diffusion: cells(2, 5, 100), axes: problem.Point{1, 30}},
		{name: "channel 1e4", dimension: 2, diffusion: where(func(q problem.Point) bool {
			return math.Abs(q[1]-0.5-0.2*math.Sin(7*q[0])) < 0.04
		}, 1e4)},
		{name: "exp", dimension: 2, diffusion: func(q problem.Point) float64 {
			return math.Exp(5 * math.Sin(11*q[0]) * math.Cos(9*q[1]))
		}},
		{name: "half-way cells 1e3 in 3-D", dimension: 3, diffusion: cells(3, 4, 1000)},
		{name: "ball 1e4 in 3-D", dimension: 3, diffusion: inclusion(1e4)},
		{name: "cells 1e4 in 1-D", dimension: 1, diffusion: cells(1, 9, 1e4)},
	}
}

// randomPattern returns cells, stripes or disks of random values over eight decades, with or without a flow.
func randomPattern(seed uint64) pattern {
	r := rand.New(rand.NewPCG(seed, 3))
	c := pattern{name: fmt.Sprint("random ", seed), dimension: []int{2, 2, 2, 3, 1}[seed%5]}
	count, strength := 2+float64(r.IntN(14)), 1+3*r.Float64()
	shift := problem.Point{r.Float64(), r.Float64(), r.Float64()}
	table := make([]float64, 4096)
	for i := range table {
		table[i] = math.Pow(10, strength*(2*r.Float64()-1))
	}
	across := 1 + r.IntN(c.dimension)
	c.diffusion = func(q problem.Point) float64 {
		at := 0
		for a := range across {
			at = 16*at + int(count*q[a]+shift[a])
		}
		return table[at]
	}
	if r.IntN(3) == 0 && c.dimension > 1 {
		size := math.Pow(10, 2*r.Float64())
		c.velocity = [3]problem.Coefficient{
			{Of: func(q problem.Point) float64 { return size * (q[1] - 0.5) }},
			{Of: func(q problem.Point) float64 { return size * (shift[0] - q[0]) }},
		}
	}
	return c
}

// trueNorm returns ‖A⁻¹‖∞ = max A⁻¹·1 by gonum's factors: banded ones if A is symmetric.
func trueNorm(t *testing.T, p *problem.Problem) float64 {
	one, w := mat.NewVecDense(p.Points(), nil), mat.NewVecDense(p.Points(), nil)
	for i := range p.Points() {
		one.SetVec(i, 1)
	}
	if p.Velocity[0].Of != nil {
		require.NoError(t, w.SolveVec(matrix(p), one))
		return mat.Norm(w, math.Inf(1))
	}
	stride := [3]int{1, p.N[0], p.N[0] * p.N[1]}
	band := stride[p.Dimension-1]
	a := mat.NewSymBandDense(p.Points(), band, nil)
	op, err := problem.Discretize(p, problem.Box{Hi: p.N})
	require.NoError(t, err)
	for d, idx := range (problem.Box{Hi: p.N}).Each {
		a.SetSymBand(d, d, op.Operator.Arrays[kernel.Center][d])
		for axis := range p.Dimension {
			if idx[axis] < p.N[axis] {
				a.SetSymBand(d, d+stride[axis], -op.Operator.Arrays[kernel.East+2*axis][d])
			}
		}
	}
	var f mat.BandCholesky
	require.True(t, f.Factorize(a))
	require.NoError(t, f.SolveVecTo(w, one))
	return mat.Norm(w, math.Inf(1))
}

// TestCertificateOfPatterns checks that patterns of diffusion and flow, among them cells that meet at corners, have a
// certificate of at most 1.45 times ‖A⁻¹‖∞ by a direct solve, and the work of the search.
func TestCertificateOfPatterns(t *testing.T) {
	all := patterns()
	seeds := uint64(50)
	if testing.Short() {
		seeds = 4
	}
	for seed := range seeds {
		all = append(all, randomPattern(seed))
	}
	for _, c := range all {
		n := []int{0, 2000, 63, 13}[c.dimension]
		if c.velocity[0].Of != nil {
			n = []int{0, 0, 33, 9}[c.dimension]
		}
		checkCertificate(t, &c, n, trueNorm(t, c.problem(n)))
	}
	if testing.Short() {
		return
	}
	for i, norm := range []float64{0.001995, 0.001243, 0.008202} { // at 255 points, by a direct solve
		checkCertificate(t, &all[i], 255, norm)
	}
}

// TestCertificateOfSmallCells checks certificates where regions of high or low diffusion are a few points wide and meet
// at corners between grid points, which couple some of them weakly and others strongly. The work must not depend on the
// contrast.
func TestCertificateOfSmallCells(t *testing.T) {
	shift := problem.Point{0.0123, 0.0371}
	count := 0
	for _, k := range []float64{1e-6, 1e-2, 1e2, 1e4, 1e6} {
		for _, wave := range []float64{20, 33, 60, 90} {
			of := fmt.Sprintf("wave %g, %g", wave, k)
			for _, c := range []pattern{
				{name: "sines, " + of, dimension: 2, diffusion: sines(wave, k)},
				{name: "shifted, " + of, dimension: 2, diffusion: moved(sines(wave, k), shift, false)},
				{name: "turned, " + of, dimension: 2, diffusion: moved(sines(wave, k), shift, true)},
				{name: "cells, " + of, dimension: 2, diffusion: cells(2, wave/math.Pi+0.13, k)},
				{name: "cells in 3-D, " + of, dimension: 3, diffusion: cells(3, wave/math.Pi+0.13, k)},
				{name: "with flow, " + of, dimension: 2, diffusion: sines(wave, k), velocity: turn(60)},
				{name: "with weak flow, " + of, dimension: 2, diffusion: sines(wave, k), velocity: turn(1e-3)},
			} {
				if count++; testing.Short() && count%11 != 0 {
					continue
				}
				n := []int{0, 0, 63, 13}[c.dimension]
				if c.velocity[0].Of != nil {
					n = 33
				}
				checkCertificate(t, &c, n, trueNorm(t, c.problem(n)))
			}
		}
	}
	// The norms are those of direct solves or of A·w = 1 to 1e-9.
	large := pattern{name: "sines, wave 120, 1e4, weak flow", dimension: 2, diffusion: sines(120, 1e4), velocity: turn(1e-3)}
	checkCertificate(t, &large, 383, 0.0135487)
	if testing.Short() {
		return
	}
	large = pattern{name: "sines, wave 60, 1e4", dimension: 2, diffusion: sines(60, 1e4)}
	checkCertificate(t, &large, 255, 0.0125320)
	large = pattern{name: "sines, wave 120, 1e4", dimension: 2, diffusion: sines(120, 1e4)}
	checkCertificate(t, &large, 383, 0.0135487)
}

func checkCertificate(t *testing.T, c *pattern, n int, norm float64) {
	p := c.problem(n)
	e, err := Evaluate(p, make([]float64, p.Points()), nil)
	require.NoError(t, err)
	t.Logf("%-26s %4d  bound %.4g = %.3f times the norm, work %.0f sweeps", c.name, n, e.Certificate.Inverse,
		e.Certificate.Inverse/norm, e.Certificate.Work)
	require.Empty(t, e.Certificate.Why, c.name)
	require.True(t, e.Certificate.MMatrix, c.name)
	require.GreaterOrEqual(t, e.Certificate.Inverse, norm*(1-1e-9), c.name)
	require.LessOrEqual(t, e.Certificate.Inverse, 1.45*norm, c.name)
	require.LessOrEqual(t, e.Certificate.Work, 90.0, c.name)
}

// TestSharperBoundAfterMultigrid checks the error bound of answers by multigrid, whose residuals differ by a factor of
// 1000 and more, relative to ‖A⁻¹‖∞·‖r‖∞, and the work of both searches.
func TestSharperBoundAfterMultigrid(t *testing.T) {
	share := map[string]float64{"stripes 1e4": 0.0015, "disk 1e4": 0.0026}
	work := map[string]float64{"stripes 1e4": 118, "disk 1e4": 129}
	for _, c := range patterns() {
		if share[c.name] == 0 {
			continue
		}
		p := c.problem(127)
		u, err := multilevel.SolveBy(p, problem.MethodConfig{Name: problem.Multigrid}, 1e-6, 100, nil)
		require.NoError(t, err)
		e, err := Evaluate(p, u.U, nil)
		require.NoError(t, err)
		part := e.ErrorBound / (e.Certificate.Inverse * e.ResidualInf)
		t.Logf("%-12s bound %.4f of that with the norm, work %.0f sweeps", c.name, part, e.Certificate.Work)
		require.LessOrEqual(t, part, share[c.name], c.name)
		require.LessOrEqual(t, e.Certificate.Work, work[c.name], c.name)
	}
}
