package verify

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

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
