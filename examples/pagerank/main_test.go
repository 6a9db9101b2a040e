package main

import (
	"testing"

	"github.com/stretchr/testify/require"
	"gonum.org/v1/gonum/mat"

	"github.com/p2pdc/p2pdc/solver"
	"github.com/p2pdc/p2pdc/solver/iterate"
	"github.com/p2pdc/p2pdc/solver/iterate/iteratetest"
	"github.com/p2pdc/p2pdc/solver/problem"
)

const pages = 600

// uneven are the cuts between parts of which one has half of the pages, and another one a twentieth.
var uneven = []int{0, 300, 330, 450, pages}

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
	f, err := newRanks([]float64{pages, 3})
	require.NoError(t, err)
	want := direct(t, newGraph(pages, 3))
	for _, s := range []iterate.Scheme{iterate.Synchronous(), iterate.Asynchronous(), iterate.Hybrid([]int{0, 0, 1, 1})} {
		x, err := solver.Solve(t.Context(), problem.FromFixedPoint("pagerank", f), solver.Options{
			Scheme: s, Tolerance: 1e-11, Partition: problem.Partition{Cuts: [3][]int{uneven, {0, 1}, {0, 1}}},
		})
		require.NoError(t, err, s.Name())
		require.InDeltaSlice(t, want, x.U, 1e-11, s.Name())
		require.InDelta(t, 1, x.Evaluation.Sum, 1e-9, "ranks are a distribution")
		require.Equal(t, want[17] > want[400], x.At(problem.Point{17}) > x.At(problem.Point{400}))
	}
}

func TestBlocks(t *testing.T) {
	f, err := newRanks([]float64{pages, 3})
	require.NoError(t, err)
	blocks, err := f.Parts(uneven)
	require.NoError(t, err)
	require.NoError(t, iteratetest.Suite{Blocks: blocks, Tolerance: 1e-6, Seeds: 2}.Check())
}
