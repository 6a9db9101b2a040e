package problems

import (
	"fmt"

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
		x, y, z := q[0]-0.5, q[1]-0.5, q[2]-0.5
		return c0 - float64(k*(float64(x*x)+float64(y*y)+float64(z*z)))
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
