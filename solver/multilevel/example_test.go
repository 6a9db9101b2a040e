package multilevel_test

import (
	"fmt"

	"github.com/p2pdc/p2pdc/solver/multilevel"
	"github.com/p2pdc/p2pdc/solver/problem"
)

// SolveBy solves in this process, without peers.
func ExampleSolveBy() {
	p := &problem.Problem{
		Name: "membrane", Dimension: 2, Hi: problem.Point{1, 1}, N: [3]int{31, 31, 1},
		Diffusion: problem.Coefficient{Value: 1},
		Obstacle:  func(q problem.Point) float64 { return 0.2 - (q[0]-0.5)*(q[0]-0.5) - (q[1]-0.5)*(q[1]-0.5) },
		Boundary:  func(problem.Point) float64 { return 0 },
	}
	s, err := multilevel.SolveBy(p, problem.MethodConfig{Name: problem.Multigrid}, 1e-8, 50, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(s.Reason, "with residual below 1e-8:", s.Residual <= 1e-8)
	fmt.Printf("value in the middle: %.3f\n", s.U[15+31*15])
	// Output:
	// converged with residual below 1e-8: true
	// value in the middle: 0.200
}
