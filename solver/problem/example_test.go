package problem_test

import (
	"fmt"

	"github.com/p2pdc/p2pdc/solver/problem"
)

// A membrane over an obstacle, and its discretization on the box of one of two peers.
func Example() {
	p := &problem.Problem{
		Name: "membrane", Dimension: 2, Hi: problem.Point{1, 1}, N: [3]int{7, 7, 1},
		Diffusion: problem.Coefficient{Value: 1},
		Obstacle:  func(q problem.Point) float64 { return 0.2 - (q[0]-0.5)*(q[0]-0.5) - (q[1]-0.5)*(q[1]-0.5) },
		Boundary:  func(problem.Point) float64 { return 0 },
	}
	if err := p.Validate(); err != nil {
		fmt.Println(err)
		return
	}
	part, err := problem.Slabs(p.N, 2, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	d, err := problem.Discretize(p, part.Box(1))
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("box:", d.Box.Lo, "to", d.Box.Hi)
	fmt.Println("diagonal of the operator:", d.Diagonal)
	// Output:
	// box: [0 4 0] to [7 7 1]
	// diagonal of the operator: 256
}

// A problem that cannot be solved as stated is rejected with the reason.
func ExampleProblem_Validate() {
	p := &problem.Problem{Name: "string", Dimension: 1, Hi: problem.Point{1}, N: [3]int{9, 1, 1}}
	p.Boundary = func(problem.Point) float64 { return 0 }
	fmt.Println(p.Validate())
	// Output:
	// problem: invalid problem: "string": the diffusion is 0; it must be positive and finite
}
