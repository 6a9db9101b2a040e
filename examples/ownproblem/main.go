// Command ownproblem solves a problem of its own: the pressure u in the oil film of a journal bearing. The oil
// cavitates where the pressure would fall below 0, so u ≥ 0. θ is the angle around the shaft, y the position along it
// and ε the eccentricity:
//
//	−div((1 + ε cos θ)³ ∇u) ≥ ε sin θ, u ≥ 0, complementary; u = 0 on the rim
//
// (Cryer, "The method of Christopherson for solving free boundary problems for infinite journal bearings by means of
// finite differences", 1971).
package main

import (
	"context"
	"fmt"
	"io"
	"log"
	"math"
	"os"
	"slices"

	"github.com/p2pdc/p2pdc/solver"
	"github.com/p2pdc/p2pdc/solver/problem"
)

// bearing returns the problem on a grid of n interior points.
func bearing(eccentricity, length float64, n [2]int) *problem.Problem {
	film := func(q problem.Point) float64 { return 1 + eccentricity*math.Cos(q[0]) }
	none := func(problem.Point) float64 { return 0 }
	return &problem.Problem{
		Name:      "bearing",
		Dimension: 2,
		Hi:        problem.Point{2 * math.Pi, length},
		N:         [3]int{n[0], n[1], 1},
		Diffusion: problem.Coefficient{Of: func(q problem.Point) float64 { return math.Pow(film(q), 3) }},
		Source:    problem.Coefficient{Of: func(q problem.Point) float64 { return eccentricity * math.Sin(q[0]) }},
		Obstacle:  none,
		Boundary:  none,
	}
}

func main() {
	if err := run(os.Stdout); err != nil {
		log.Fatal(err)
	}
}

// run solves the problem and writes the result.
func run(w io.Writer) error {
	p := bearing(0.4, 4, [2]int{63, 31})
	s, err := solver.Solve(context.Background(), p, solver.Options{Tolerance: 1e-8})
	if err != nil {
		return err
	}
	pressure := slices.Max(s.U)
	at := slices.Index(s.U, pressure)
	where := p.At(at%p.N[0]+1, at/p.N[0]+1, 1)
	fmt.Fprintf(w, "relative residual  %.1e after %d sweeps\n", s.Evaluation.RelativeResidual, s.Peers[0].Sweeps)
	fmt.Fprintf(w, "highest pressure   %.4f at θ = %.3f, y = %.3f\n", pressure, where[0], where[1])
	fmt.Fprintf(w, "cavitation         %d of %d points\n", s.Evaluation.ContactPoints, p.Points())
	return nil
}
