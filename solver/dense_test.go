package solver

import (
	"testing"

	"github.com/p2pdc/p2pdc/internal/kernel"
	"github.com/p2pdc/p2pdc/internal/solvertest"
	"github.com/p2pdc/p2pdc/solver/iterate"
	"github.com/p2pdc/p2pdc/solver/problem"
	"github.com/p2pdc/p2pdc/solver/richardson"
	"github.com/stretchr/testify/require"
	"gonum.org/v1/gonum/mat"
	"pgregory.net/rapid"
)

// solveActiveSet solves the obstacle problem exactly: Howard's policy iteration
// (the primal-dual active set method of Hintermüller, Ito and Kunisch, 2002), each
// step a dense solve, ending when the sets repeat.
func solveActiveSet(t require.TestingT, p *problem.Problem) []float64 {
	a, f := solvertest.Dense(p)
	return solvertest.ActiveSet(t, p, a, f)
}

func TestAgainstDenseSolvers(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := solvertest.AnyProblem(t)
		for p.Points() > 150 {
			p.N[p.Dimension-1] = max(1, p.N[p.Dimension-1]/2)
			if p.N[p.Dimension-1] == 1 {
				p.N[0] = max(1, p.N[0]/2)
			}
		}
		p.Boundary = func(q problem.Point) float64 { return 0.1 + 0.2*q[0] + 0.1*q[1]*q[2] }
		want := solveActiveSet(t, p)
		part := solvertest.AnyPartition(t, p)
		s := rapid.SampledFrom([]iterate.Scheme{iterate.Synchronous(), iterate.Asynchronous(),
			iterate.BoundedDelay(0), iterate.BoundedDelay(2)}).
			Draw(t, "scheme")
		order := rapid.SampledFrom([]problem.Order{problem.Jacobi, problem.InTurn}).Draw(t, "order")
		n, err := newNetwork(
			1,
			solvertest.ConfigsFor(
				problem.Config{Problem: p, Partition: part, Scheme: s, Order: order, Tolerance: 1e-11},
			),
		)
		require.NoError(t, err)
		require.NoError(t, n.Run())
		got := n.Assemble(p)
		for i := range want {
			require.InDelta(t, want[i], got[i], 1e-8, "point %d", i)
		}
	})
}

func TestLinearProblemAgainstGonum(t *testing.T) {
	p := solvertest.Membrane([3]int{5, 4, 6}, 3)
	p.Obstacle, p.Source.Value = nil, 3
	p.Reaction.Value, p.Velocity[1].Value = 2, -4
	p.Boundary = func(q problem.Point) float64 { return q[0] - q[2]*q[1] }
	a, f := solvertest.Dense(p)
	var u mat.VecDense
	require.NoError(t, u.SolveVec(a, f))
	got, err := richardson.SolveSequential(p, problem.Jacobi, 1e-13, 0, 0, 100000)
	require.NoError(t, err)
	require.Equal(t, iterate.Converged, got.Reason)
	for i, v := range got.U {
		require.InDelta(t, u.AtVec(i), v, 1e-11)
	}
}

// Upwind differences keep all off-diagonal coefficients positive where central
// ones do not, and leave rows with a small Péclet number alone.
func TestUpwindKeepsTheMMatrix(t *testing.T) {
	p := solvertest.Membrane([3]int{9, 1, 1}, 1)
	p.Velocity[0].Of = func(q problem.Point) float64 { return 90 * (q[0] - 0.5) }
	require.Len(t, p.Warnings(), 1)
	require.Contains(t, p.Warnings()[0], "Péclet")
	central, upwind := problem.NewStencil(p), *p
	upwind.Upwind = true
	require.Len(t, upwind.Warnings(), 1)
	require.Contains(t, upwind.Warnings()[0], "upwind differences, of first order, are used")
	negative := 0
	for i := 1; i <= 9; i++ {
		c, u := central.At([3]int{i, 1, 1}), problem.NewStencil(&upwind).At([3]int{i, 1, 1})
		if c[kernel.West] < 0 || c[kernel.East] < 0 {
			negative++
			require.Greater(t, u[kernel.West], 0.0)
			require.Greater(t, u[kernel.East], 0.0)
		} else {
			require.Equal(t, c, u)
		}
		for _, row := range [][kernel.Directions]float64{c, u} {
			require.InDelta(
				t,
				row[kernel.Center],
				row[kernel.West]+row[kernel.East],
				1e-9,
				"constants are in the kernel",
			)
		}
	}
	require.Equal(t, 4, negative)
}
