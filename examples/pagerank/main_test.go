package main

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"
	"gonum.org/v1/gonum/mat"

	"github.com/p2pdc/p2pdc/solver"
	"github.com/p2pdc/p2pdc/solver/iterate"
	"github.com/p2pdc/p2pdc/solver/iterate/iteratetest"
)

// direct solves (I − d·Pᵀ)x = (1−d)/n by LU.
func direct(t *testing.T, g graph) []float64 {
	a, b := mat.NewDense(pages, pages, nil), mat.NewVecDense(pages, nil)
	for i := range pages {
		a.Set(i, i, a.At(i, i)+1)
		b.SetVec(i, (1-damping)/pages)
		for _, j := range g[i] {
			a.Set(j, i, a.At(j, i)-damping/float64(len(g[i])))
		}
	}
	var x mat.VecDense
	require.NoError(t, x.SolveVec(a, b))
	return x.RawVector().Data
}

func TestEverySchemeFindsTheDirectSolution(t *testing.T) {
	g := newGraph()
	want := direct(t, g)
	for _, s := range []iterate.Scheme{iterate.Synchronous(), iterate.Asynchronous(), iterate.Hybrid([]int{0, 0, 1, 1})} {
		out, err := solver.Iterate(t.Context(), solver.Iteration{Blocks: parts(g, uneven), Scheme: s, Tolerance: 1e-11})
		require.NoError(t, err, s.Name())
		sum, at := 0.0, 0
		for _, x := range out.X {
			for _, v := range x {
				require.InDelta(t, want[at], v, 1e-11, s.Name())
				sum += v
				at++
			}
		}
		require.InDelta(t, 1, sum, 1e-9, "ranks are a distribution")
	}
}

func TestBlocks(t *testing.T) {
	require.NoError(t, iteratetest.Suite{Blocks: parts(newGraph(), uneven), Tolerance: 1e-6, Seeds: 2}.Check())
}

func TestSimulated(t *testing.T) {
	for _, scheme := range []string{"sync", "async", "hybrid"} {
		var sockets, simulated bytes.Buffer
		require.NoError(t, show(t.Context(), &sockets, []string{scheme}))
		require.NoError(t, show(t.Context(), &simulated, []string{scheme, "simulate"}))
		for _, b := range []*bytes.Buffer{&sockets, &simulated} {
			_, err := b.ReadString('\n') // sweeps and residuals differ
			require.NoError(t, err)
		}
		require.Equal(t, sockets.String(), simulated.String(), scheme)
	}
}
