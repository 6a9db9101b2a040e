package schwarz

import (
	"github.com/p2pdc/p2pdc/internal/kernel"
	"github.com/p2pdc/p2pdc/solver/problem"
)

// faceCoupling is one face of the own box with peers behind it: the edges of the grid across that face.
type faceCoupling struct {
	points   kernel.Box // own points, in the region
	axis     int
	side     int       // −1 or 1
	step     int       // offset in padded arrays to the point behind the face
	coupling []float64 // κ/h² of the edges, in the order of points
}

// newFaceCouplings returns the face couplings of a peer outside lockstep.
//
// The flux between the points of two peers enters the residuals of both with opposite signs. If each peer uses
// outdated values of the other, the two terms do not cancel in the sum of shares. The remaining source along
// the faces has the size of the change times h⁻², and its correction is many times the error. Each peer
// therefore assigns half of its flux to the other side. The sum over both sides is unchanged if both use the
// same values, and the terms cancel in any case, up to the difference of interpolation between the two points.
func newFaceCouplings(w *peer) []faceCoupling {
	p := w.config.Problem
	var out []faceCoupling
	for a := range p.Dimension {
		for _, side := range []int{-1, 1} {
			b := w.inside
			if side < 0 {
				b.Hi[a] = b.Lo[a] + 1
			} else {
				b.Lo[a] = b.Hi[a] - 1
			}
			if side < 0 && w.own.Lo[a] == 0 || side > 0 && w.own.Hi[a] == p.N[a] {
				continue
			}
			step := side * [3]int{1, w.layout.Row, w.layout.Plane}[a]
			out = append(out, faceCoupling{
				points: b, axis: a, side: side, step: step, coupling: make([]float64, b.Points()),
			})
		}
	}
	return out
}

// evaluate computes the couplings. It excludes convection, which is not the same flux at both ends.
func (x *faceCoupling) evaluate(w *peer) {
	p := w.block.Problem
	st, h := problem.NewStencil(p), p.Spacing(x.axis)
	i := 0
	eachPoint(x.points, func(px, py, pz int) {
		at := [3]int{px + w.ext.Lo[0] + 1, py + w.ext.Lo[1] + 1, pz + w.ext.Lo[2] + 1}
		x.coupling[i] = st.Between(at, p.At(at[0], at[1], at[2]), x.axis, x.side) / (h * h)
		i++
	})
}

// halveFluxes moves half of every flux across a face in the defect to the point behind it. A point in contact
// is not part of the coarse problem, and its flux is not balanced.
func (c *correction) halveFluxes(w *peer) {
	l := w.layout
	for i := range c.couplings {
		x := &c.couplings[i]
		eachPoint(x.points, func(px, py, pz int) { c.defect[l.Index(px, py, pz)+x.step] = 0 })
	}
	for i := range c.couplings {
		x, k := &c.couplings[i], 0
		eachPoint(x.points, func(px, py, pz int) {
			at := l.Index(px, py, pz)
			behind := at + x.step
			if !c.inContact(w.work, at) && !c.inContact(w.work, behind) {
				half := 0.5 * x.coupling[k] * (w.work[at] - w.work[behind])
				c.defect[at] -= half
				c.defect[behind] -= half
			}
			k++
		})
	}
}

// inContact reports whether the value at a point of the region, or at a face ghost, lies on an obstacle.
func (c *correction) inContact(u []float64, at int) bool {
	return c.lower != nil && u[at] <= c.lower[at] || c.upper != nil && u[at] >= c.upper[at]
}
