package problems

import "github.com/p2pdc/p2pdc/solver/problem"

// exponents holds the exponent of an interval in d dimensions.
var exponents = [...]string{2: "²", 3: "³"}

// quartic is a problem with a flat obstacle and a source for which the solution is max(r² − r0², 0)². The
// solution is C² across the free boundary, so the convergence is of second order.
func quartic(d int) Builtin {
	b := Builtin{
		Name:      "quartic",
		Summary:   "flat obstacle φ = 0 in (−1,1)" + exponents[d] + " with the source for which u = max(r² − r0², 0)²",
		Reference: "manufactured solution",
		Dimension: d,
		Exact:     true,
		Parameters: []Parameter{
			{"r0", 0.7, "radius of the contact set, between 0 and 1"},
		},
		build: func(p *problem.Problem, v []float64) error {
			if err := fraction("r0", v[0]); err != nil {
				return err
			}
			box(p, -1, 1)
			flat(p)
			dim, r02 := float64(d), v[0]*v[0]
			p.Source.Of = func(q problem.Point) float64 {
				r2 := squares(q)
				if r2 > r02 {
					return -4 * (2*r2 + float64(dim*(r2-r02)))
				}
				return -8 * float64(r02*(1-(r2-r02)))
			}
			setExact(p, func(q problem.Point) float64 {
				s := max(squares(q)-r02, 0)
				return s * s
			})
			return nil
		},
	}
	if d == 2 {
		b.Name = "quartic2d"
	}
	return b
}
