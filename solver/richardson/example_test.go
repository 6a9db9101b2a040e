package richardson_test

import (
	"fmt"
	"slices"

	"github.com/p2pdc/p2pdc/solver/iterate"
	"github.com/p2pdc/p2pdc/solver/iterate/iteratetest"
	"github.com/p2pdc/p2pdc/solver/problem"
	"github.com/p2pdc/p2pdc/solver/richardson"
)

// membrane is a membrane over the unit square, fixed at 0 on the boundary and held up by a paraboloid.
func membrane() *problem.Problem {
	return &problem.Problem{
		Name: "membrane", Dimension: 2, N: [3]int{15, 15, 1}, Hi: problem.Point{1, 1},
		Diffusion: problem.Coefficient{Value: 1},
		Boundary:  func(problem.Point) float64 { return 0 },
		Obstacle: func(q problem.Point) float64 {
			x, y := q[0]-0.5, q[1]-0.5
			return 0.5 - 4*(x*x+y*y)
		},
	}
}

// SolveSequential solves on one block, without peers.
func ExampleSolveSequential() {
	s, err := richardson.SolveSequential(membrane(), problem.Jacobi, 1e-6, 0, 0, 0)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(s.Reason, "after", s.Sweeps, "sweeps")
	fmt.Printf("value at the centre: %.4f\n", s.U[len(s.U)/2])
	// Output:
	// converged after 176 sweeps
	// value at the centre: 0.5000
}

// Two synchronous peers, each with one half of the grid, exchange faces over a simulated network. Their values are the
// bits of SolveSequential.
func ExampleMethod_New() {
	slabs, err := problem.Slabs(membrane().N, 2, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	var peers []iterate.Peer
	for rank := range iterate.Rank(2) {
		p, err := richardson.Method{}.New(problem.Config{
			Problem: membrane(), Partition: slabs, Rank: rank, Scheme: iterate.Synchronous(), Tolerance: 1e-6,
		})
		if err != nil {
			fmt.Println(err)
			return
		}
		peers = append(peers, p)
	}
	if err := iteratetest.NewNetwork(1, iterate.Synchronous(), peers).Run(); err != nil {
		fmt.Println(err)
		return
	}
	var u []float64
	for rank, p := range peers {
		part := make([]float64, slabs.Box(iterate.Rank(rank)).Points())
		p.Solution(part)
		u = append(u, part...)
	}
	s, err := richardson.SolveSequential(membrane(), problem.Jacobi, 1e-6, 0, 0, 0)
	fmt.Println(peers[0].Outcome().Reason, slices.Equal(u, s.U), err)
	// Output: converged true <nil>
}
