package verify_test

import (
	"fmt"

	"github.com/p2pdc/p2pdc/solver/problem"
	"github.com/p2pdc/p2pdc/solver/verify"
)

// Evaluate returns the residual of any vector and a bound of its error.
func ExampleEvaluate() {
	p := &problem.Problem{
		Name: "string", Dimension: 1, Hi: problem.Point{1}, N: [3]int{3, 1, 1},
		Diffusion: problem.Coefficient{Value: 1},
		Source:    problem.Coefficient{Value: 8},
		Boundary:  func(problem.Point) float64 { return 0 },
		Exact:     func(q problem.Point) float64 { return 4 * q[0] * (1 - q[0]) },
	}
	e, err := verify.Evaluate(p, []float64{0.75, 1, 0.75}, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("relative residual:", e.RelativeResidual)
	fmt.Println("largest error:", e.MaxError)
	fmt.Println("proved bound below 1e-12:", e.ErrorBound < 1e-12)
	// Output:
	// relative residual: 0
	// largest error: 0
	// proved bound below 1e-12: true
}
