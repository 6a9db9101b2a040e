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

const unknowns = 120

func TestEverySchemeFindsTheDirectSolution(t *testing.T) {
	f, err := newJacobi([]float64{unknowns})
	require.NoError(t, err)
	a, b := system(unknowns)
	var direct mat.VecDense
	require.NoError(t, direct.SolveVec(a, b))
	for _, s := range []iterate.Scheme{
		iterate.Synchronous(), iterate.Asynchronous(), iterate.BoundedDelay(2), iterate.Hybrid([]int{0, 0, 1, 1}),
	} {
		x, err := solver.Solve(t.Context(), problem.FromFixedPoint("linear", f), solver.Options{
			Peers: 4, Scheme: s, Tolerance: 1e-12,
		})
		require.NoError(t, err, s.Name())
		require.InDeltaSlice(t, direct.RawVector().Data, x.U, 1e-11, s.Name())
	}
}

func TestBlocks(t *testing.T) {
	f, err := newJacobi([]float64{unknowns})
	require.NoError(t, err)
	blocks, err := f.Parts([]int{0, 30, 60, 90, unknowns})
	require.NoError(t, err)
	require.NoError(t, iteratetest.Suite{Blocks: blocks, Tolerance: 1e-6}.Check())
}

func TestSizesAreBounded(t *testing.T) {
	for _, n := range []float64{-1, 0, 1e9} {
		_, err := newJacobi([]float64{n})
		require.ErrorContains(t, err, "unknowns: want 1 to 20000")
	}
}
