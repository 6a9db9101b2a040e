package main

import (
	"bytes"
	"flag"
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	"gonum.org/v1/gonum/mat"

	"github.com/p2pdc/p2pdc/solver"
	"github.com/p2pdc/p2pdc/solver/iterate"
	"github.com/p2pdc/p2pdc/solver/iterate/iteratetest"
)

// testNetwork returns the network of the example. With -short it is smaller, and needs fewer sweeps.
func testNetwork() *network {
	if testing.Short() {
		return newNetwork(4)
	}
	return newNetwork(side)
}

// direct finds the prices by Newton's method: while the same arcs are at their capacity, they solve a
// system of linear equations.
func direct(t *testing.T, n *network) []float64 {
	nodes := len(n.supply)
	prices := make([]float64, nodes)
	for range 200 {
		a, b := mat.NewDense(nodes, nodes, nil), mat.NewVecDense(nodes, nil)
		for i := range nodes {
			b.SetVec(i, n.surplus(i, prices[i], func(j int) float64 { return prices[j] }))
		}
		for _, e := range n.arcs {
			if math.Abs(prices[e.from]-prices[e.to]) >= e.resistance*e.capacity {
				continue
			}
			g := 1 / e.resistance
			a.Set(e.from, e.from, a.At(e.from, e.from)+g)
			a.Set(e.to, e.to, a.At(e.to, e.to)+g)
			a.Set(e.from, e.to, a.At(e.from, e.to)-g)
			a.Set(e.to, e.from, a.At(e.to, e.from)-g)
		}
		if worst := mat.Norm(b, math.Inf(1)); worst < 1e-12 {
			return prices
		}
		a.SetRow(0, append([]float64{1}, make([]float64, nodes-1)...))
		b.SetVec(0, 0)
		var step mat.VecDense
		require.NoError(t, step.SolveVec(a, b))
		for i := range prices {
			prices[i] += step.AtVec(i)
		}
	}
	require.Fail(t, "Newton's method does not converge")
	return nil
}

func TestEverySchemeFindsTheDirectSolution(t *testing.T) {
	n := testNetwork()
	want := direct(t, n)
	full := 0
	for _, a := range n.arcs {
		if math.Abs(a.flow(want[a.from], want[a.to])) == a.capacity {
			full++
		}
	}
	require.Positive(t, full, "the capacities matter")
	tolerance, distance := 1e-11, 1e-6
	if testing.Short() {
		tolerance, distance = 1e-7, 1e-2
	}
	for _, s := range []iterate.Scheme{iterate.Synchronous(), iterate.Asynchronous(), iterate.Hybrid([]int{0, 0, 1, 1})} {
		out, err := solver.Iterate(t.Context(), solver.Iteration{Blocks: regions(n, 4), Scheme: s, Tolerance: tolerance})
		require.NoError(t, err, s.Name())
		at := 0
		for _, x := range out.X {
			for _, v := range x {
				require.InDelta(t, want[at], v, distance, "%s: node %d", s.Name(), at)
				at++
			}
		}
	}
}

func TestBlocks(t *testing.T) {
	require.NoError(t, iteratetest.Suite{Blocks: regions(testNetwork(), 3), Tolerance: 1e-4, Seeds: 1}.Check())
}

var long = flag.Bool("long", false, "also simulate the asynchronous run, which takes seconds")

func TestSimulated(t *testing.T) {
	for _, scheme := range []string{"sync", "async", "hybrid"} {
		if scheme == "async" && !*long {
			continue
		}
		var out bytes.Buffer
		require.NoError(t, show(t.Context(), &out, []string{scheme, "simulate"}, testNetwork()))
		require.Contains(t, out.String(), "largest surplus below 1e-6: true")
	}
}
