package solver_test

import (
	"context"
	"errors"
	"fmt"
	"log"

	"github.com/p2pdc/p2pdc/solver"
	"github.com/p2pdc/p2pdc/solver/iterate"
	"github.com/p2pdc/p2pdc/solver/problem"
)

// membrane is a membrane over the unit square, fixed at 0 on the boundary and held up by an obstacle: a
// paraboloid of height 0.5.
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

// The zero Options solve with one peer.
func ExampleSolve() {
	s, err := solver.Solve(context.Background(), membrane(), solver.Options{})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(s.Reason)
	fmt.Printf("in contact at %d of %d points\n", s.Evaluation.ContactPoints, len(s.U))
	fmt.Printf("value at the centre: %.4f\n", s.At(problem.Point{0.5, 0.5}))
	fmt.Printf("on the boundary: %.4f\n", s.At(problem.Point{0, 0.25}))
	// Output:
	// converged
	// in contact at 45 of 225 points
	// value at the centre: 0.5000
	// on the boundary: 0.0000
}

// Two peers of this process iterate asynchronously and exchange halos over the loopback interface.
func ExampleSolve_asynchronous() {
	s, err := solver.Solve(context.Background(), membrane(), solver.Options{
		Peers: 2, Scheme: iterate.Asynchronous(), Tolerance: 1e-8,
	})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(s.Reason, len(s.Peers), s.Evaluation.RelativeResidual <= 1e-8)
	// Output: converged 2 true
}

// A run that ends too soon returns its best iterate with an error.
func ExampleSolve_notConverged() {
	s, err := solver.Solve(context.Background(), membrane(), solver.Options{MaxSweeps: 1})
	fmt.Println(errors.Is(err, solver.ErrNotConverged))
	fmt.Println(err)
	fmt.Println(len(s.U), s.Peers[0].Sweeps)
	// Output:
	// true
	// solver: the run ended before the tolerance was met: reached the bound on sweeps
	// 225 1
}

// average is one unknown of x = 1 + y/2, where y is the unknown of the other peer.
type average struct{ other iterate.Rank }

func (a average) Values() int                     { return 1 }
func (a average) Start([]float64)                 {}
func (a average) Relax(next, _, ghosts []float64) { next[0] = 1 + ghosts[0]/2 }

func (a average) Neighbours() []iterate.Neighbour {
	return []iterate.Neighbour{{Rank: a.other, Send: []int{0}, Receive: []int{0}}}
}

// Any fixed-point iteration runs by Iterate.
func ExampleIterate() {
	out, err := solver.Iterate(context.Background(), solver.Iteration{
		Blocks: []iterate.Block{average{1}, average{0}}, Scheme: iterate.Asynchronous(), Tolerance: 1e-9,
	})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%s: %.3f %.3f\n", out.Reason, out.X[0][0], out.X[1][0])
	// Output: converged: 2.000 2.000
}

func ExampleCatalog() {
	methods := solver.Methods()
	fmt.Println(methods.Names())
	_, err := methods.Lookup("newton")
	fmt.Println(err)
	// Output:
	// [richardson sor multigrid schwarz fas fixed-point]
	// solver: no method "newton"; there are ["richardson" "sor" "multigrid" "schwarz" "fas" "fixed-point"]
}
