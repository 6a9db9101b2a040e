package problems

import (
	"fmt"
	"math"

	"github.com/p2pdc/p2pdc/solver/problem"
)

// membrane is the 3-D reference case: a membrane over a paraboloid, held at 0. No closed form is known. With
// the default parameters 6 % of the points are in contact.
func membrane() Builtin {
	return Builtin{
		Name:      "membrane",
		Summary:   "membrane over a paraboloid in the unit cube, held at 0: φ = c0 − k|x − c|², f = 0",
		Reference: "the project's own reference case at 256³; no closed form",
		Dimension: 3,
		Parameters: []Parameter{
			{"c0", 0.5, "height of the obstacle, at most k/4"},
			{"k", 4, "curvature of the obstacle, positive"},
		},
		build: func(p *problem.Problem, v []float64) error {
			c0, k := v[0], v[1]
			if k <= 0 || c0 > k/4 {
				return fmt.Errorf("c0 = %g, k = %g: k > 0 and c0 ≤ k/4 are required, "+
					"so that the obstacle is not above the boundary data 0", c0, k)
			}
			box(p, 0, 1)
			p.Obstacle, p.Rows.Obstacle = paraboloidAt(c0, k), paraboloidRow(c0, k)
			p.Boundary = zero
			return nil
		},
	}
}

// paraboloidAt returns the function c0 − k r², where r is the distance from the centre of the unit cube.
func paraboloidAt(c0, k float64) problem.Function {
	return func(q problem.Point) float64 {
		return c0 - float64(k*squares(problem.Point{q[0] - 0.5, q[1] - 0.5, q[2] - 0.5}))
	}
}

// paraboloidRow returns paraboloidAt evaluated along x.
func paraboloidRow(c0, k float64) problem.Row {
	return func(dst, x []float64, y, z float64) {
		y, z = y-0.5, z-0.5
		yy, zz := float64(y*y), float64(z*z)
		for i, x := range x[:len(dst)] {
			x -= 0.5
			dst[i] = c0 - float64(k*(float64(x*x)+yy+zz))
		}
	}
}

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
			setExact(p, func(q problem.Point) float64 {
				r2 := squares(problem.Point{q[0] - 0.5, q[1] - 0.5, q[2] - 0.5})
				if r2 <= a2 {
					return phi(q)
				}
				return flux / math.Sqrt(r2)
			})
			return nil
		},
	}
}
