package problems

import (
	"fmt"
	"strings"

	"github.com/p2pdc/p2pdc/solver/problem"
)

// quarticSolution returns max(r² − r0², 0)².
func quarticSolution(r02 float64) problem.Function {
	return func(q problem.Point) float64 {
		s := max(squares(q)-r02, 0)
		return s * s
	}
}

// quartic is a problem with a flat obstacle and a source for which the solution is max(r² − r0², 0)². The
// solution is C² across the free boundary, so the convergence is of second order.
func quartic(d int) Builtin {
	b := Builtin{
		Name:      "quartic",
		Summary:   "flat obstacle φ = 0 in (−1,1)³ with the source for which u = max(r² − r0², 0)²",
		Reference: "manufactured solution",
		Dimension: d,
		Exact:     true,
		Parameters: []Parameter{
			{"r0", 0.7, "radius of the contact set, between 0 and 1"},
		},
		build: func(p *problem.Problem, v []float64) error {
			r0 := v[0]
			if r0 <= 0 || r0 >= 1 {
				return fmt.Errorf("r0 = %g: it must be between 0 and 1", r0)
			}
			box(p, -1, 1)
			dim, r02 := float64(d), r0*r0
			p.Obstacle, p.Rows.Obstacle = zero, zeroRow
			p.Source.Of = func(q problem.Point) float64 {
				r2 := squares(q)
				if r2 > r02 {
					return -4 * (2*r2 + float64(dim*(r2-r02)))
				}
				return -8 * float64(r02*(1-(r2-r02)))
			}
			p.Exact = quarticSolution(r02)
			p.Boundary = p.Exact
			return nil
		},
	}
	if d == 2 {
		b.Name = "quartic2d"
		b.Summary = strings.Replace(b.Summary, "(−1,1)³", "(−1,1)²", 1)
	}
	return b
}
