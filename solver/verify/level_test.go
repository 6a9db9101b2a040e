package verify

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/p2pdc/p2pdc/internal/solvertest"
	"github.com/p2pdc/p2pdc/solver/problem"
)

// TestSweepsOfLevel checks the defect after a forward sweep and the image after a backward one, which both read only a
// part of each row, against A·z from whole rows, on a level of more than one piece.
func TestSweepsOfLevel(t *testing.T) {
	all := patterns()
	p := all[9].problem(300) // cells with flow: not symmetric
	b, err := problem.Discretize(p, problem.Box{Hi: p.N})
	require.NoError(t, err)
	plain := coarser(&gridMatrix{layout: b.Layout, operator: &b.Operator})
	g := coarser(&gridMatrix{layout: b.Layout, operator: &b.Operator})
	g.arrange()
	n := g.size()
	require.Greater(t, n, pieceValues)
	minus := func(z []float64, i int) float64 { // r − A·z
		diagonal, column, coupling := plain.row(i)
		sum := g.r[i] - diagonal*z[i]
		for k, j := range column {
			sum += coupling[k] * z[j]
		}
		return sum
	}
	each := func(f func(lo, hi int)) {
		for lo := 0; lo < n; lo += pieceValues {
			f(lo, min(lo+pieceValues, n))
		}
	}
	z, image := g.c[0], g.ac[0]
	for i := range n {
		g.r[i] = math.Sin(float64(i * i))
	}
	each(func(lo, hi int) { g.forward(z, lo, hi) })
	each(func(lo, hi int) { g.defect(z, lo, hi) })
	for i := range n {
		require.InDelta(t, minus(z, i), g.t[i], 1e-12, i)
	}
	for i := range n {
		z[i] += g.inverse[i] * math.Cos(float64(i)) // a correction
	}
	copy(g.old, z)
	each(func(lo, hi int) { g.backward(z, lo, hi) })
	each(func(lo, hi int) { g.image(image, lo, hi) })
	for i := range n {
		require.InDelta(t, g.r[i]-minus(z, i), image[i], 1e-12, i)
	}
}

// TestCoarseSolveMinimises checks that no combination of its two directions improves the result of a coarse solve: if A
// is symmetric in the norm of A, otherwise in that of the residual, where values count by the inverse of their diagonal
// entry.
func TestCoarseSolveMinimises(t *testing.T) {
	for _, c := range []pattern{
		{name: "cells", dimension: 2, diffusion: cells(2, 8, 1000)},
		{name: "cells with flow", dimension: 2, diffusion: cells(2, 8, 1000), velocity: turn(60)},
		{name: "even with flow", dimension: 2, diffusion: func(q problem.Point) float64 { return 1 + q[0] }, velocity: turn(60)},
	} {
		p := c.problem(159)
		b, err := problem.Discretize(p, problem.Box{Hi: p.N})
		require.NoError(t, err)
		plain := coarser(&gridMatrix{layout: b.Layout, operator: &b.Operator})
		m, err := newMinimiser(unitProblem(p, p.N), nil, solvertest.Threads{})
		require.NoError(t, err)
		g := m.levels[0]
		require.Nil(t, g.direct)
		right := make([]float64, g.size())
		for i := range right {
			right[i] = math.Sin(float64(i * i))
		}
		copy(g.r, right)
		m.coarseSolve(0)
		apply := func(v []float64, i int) float64 {
			diagonal, column, coupling := plain.row(i)
			sum := diagonal * v[i]
			for k, j := range column {
				sum -= coupling[k] * v[j]
			}
			return sum
		}
		for _, direction := range g.c {
			product, left, rest := 0.0, 0.0, 0.0
			for i, r := range right {
				r -= apply(g.x, i)
				v, weight := direction[i], 1.0
				if !m.symmetric {
					v, weight = apply(direction, i), 1/plain.diagonal[i]
				}
				product += weight * v * r
				left += weight * v * v
				rest += weight * r * r
			}
			require.Less(t, math.Abs(product), 1e-9*math.Sqrt(left*rest), c.name)
		}
	}
}
