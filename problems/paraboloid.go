package problems

import (
	"fmt"
	"math"

	"github.com/p2pdc/p2pdc/solver/problem"
)

// paraboloid has the obstacle of membrane and boundary data for which the solution is radial: u = φ up to
// r = a, and beyond it the harmonic function 2ka³/r, which has the value and slope of φ at r = a.
func paraboloid() Builtin {
	return Builtin{
		Name: "paraboloid",
		Summary: "the obstacle of membrane with boundary data from a radial exact solution: " +
			"u = 2k a³/r beyond a = √(c0/3k)",
		Reference: "harmonic continuation of a paraboloid, contact radius from C¹ matching",
		Dimension: 3,
		Exact:     true,
		Parameters: []Parameter{
			{"c0", 0.5, "height of the obstacle, between 0 and 3k/4"},
			{"k", 4, "curvature of the obstacle, positive"},
		},
		build: func(p *problem.Problem, v []float64) error {
			c0, k := v[0], v[1]
			if k <= 0 || c0 <= 0 || c0 >= 0.75*k {
				return fmt.Errorf("c0 = %g, k = %g: k > 0 and 0 < c0 < 3k/4 are required, "+
					"so that the contact set lies inside the cube", c0, k)
			}
			box(p, 0, 1)
			phi := paraboloidAt(c0, k)
			a2 := c0 / (3 * k)
			flux := 2 * k * a2 * math.Sqrt(a2)
			p.Obstacle, p.Rows.Obstacle = phi, paraboloidRow(c0, k)
			p.Exact = func(q problem.Point) float64 {
				x, y, z := q[0]-0.5, q[1]-0.5, q[2]-0.5
				r2 := float64(x*x) + float64(y*y) + float64(z*z)
				if r2 <= a2 {
					return phi(q)
				}
				return flux / math.Sqrt(r2)
			}
			p.Boundary = p.Exact
			return nil
		},
	}
}
