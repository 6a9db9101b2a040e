// Command ownproblem shows a problem of a user's own in one file: the pressure in
// the oil film of a journal bearing, which cannot fall below 0, because the oil
// cavitates there. With θ round the shaft and y along it, ε the eccentricity:
//
//	−div((1 + ε cos θ)³ ∇u) ≥ ε sin θ, u ≥ 0, complementary; u = 0 on the rim
//
// (Cryer, "The method of Christopherson for solving free boundary problems for
// infinite journal bearings by means of finite differences", 1971).
package main

import (
	"context"
	"fmt"
	"log"
	"math"

	"github.com/p2pdc/p2pdc/solver"
	"github.com/p2pdc/p2pdc/solver/problem"
)

// bearing returns the problem for a film of that eccentricity and length on n points.
func bearing(eccentricity, length float64, n [2]int) *problem.Problem {
	film := func(q problem.Point) float64 { return 1 + eccentricity*math.Cos(q[0]) }
	zero := func(problem.Point) float64 { return 0 }
	return &problem.Problem{
		Name: "bearing", Dimension: 2, Hi: problem.Point{2 * math.Pi, length}, N: [3]int{n[0], n[1], 1},
		Diffusion: problem.Coefficient{Of: func(q problem.Point) float64 { return math.Pow(film(q), 3) }},
		Source:    problem.Coefficient{Of: func(q problem.Point) float64 { return eccentricity * math.Sin(q[0]) }},
		Obstacle:  zero,
		Boundary:  zero,
	}
}

func main() {
	s, err := solver.Solve(context.Background(), bearing(0.4, 4, [2]int{63, 31}), solver.Options{Tolerance: 1e-8})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Print(report(s))
}

// report returns the residual of the answer, the method that was chosen, the highest pressure and the size of the cavity.
func report(s *solver.Solution) string {
	highest := 0.0
	for _, u := range s.U {
		highest = max(highest, u)
	}
	return fmt.Sprintf(
		"relative residual  %.1e after %d iterates by %s\nhighest pressure   %.4f\ncavitation         %d of %d points\n",
		s.Evaluation.RelativeResidual, s.Peers[0].Sweeps, s.Choice.Name, highest, s.Evaluation.ContactPoints, len(s.U))
}
