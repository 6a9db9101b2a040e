package schwarz

import (
	"github.com/p2pdc/p2pdc/internal/kernel"
	"github.com/p2pdc/p2pdc/solver/problem"
)

// crossing is one face of the own box, with peers behind it: the edges of the grid that
// lead from its points to theirs.
type faceCoupling struct {
	points   kernel.Box // own ones, in the region
	step     int        // from a point to the one behind the face, in padded arrays
	coupling []float64  // κ/h² of the edges, in the order of points
}

// newCrossings are those of a peer that is not in lockstep.
//
// What flows from one peer's points to another's is in the residuals of both, with
// opposite signs. If each of them reads the other's values as they were a while ago, the
// two do not cancel in the sum of shares, and a source of the size of what has changed,
// times h⁻², is left along the faces: its correction is many times the error. So either
// gives half of what it knows of the flux to the other side: the sum over both is the same
// where they know the same, and cancels in any case but for interpolation's difference
// between the two points.
func newFaceCouplings(w *peer) []faceCoupling {
	p := w.config.Problem
	var out []faceCoupling
	for a := range p.Dimension {
		stride := [3]int{1, w.layout.Row, w.layout.Plane}[a]
		if w.own.Lo[a] > 0 {
			b := w.inside
			b.Hi[a] = b.Lo[a] + 1
			out = append(out, faceCoupling{points: b, step: -stride, coupling: make([]float64, b.Points())})
		}
		if w.own.Hi[a] < p.N[a] {
			b := w.inside
			b.Lo[a] = b.Hi[a] - 1
			out = append(out, faceCoupling{points: b, step: stride, coupling: make([]float64, b.Points())})
		}
	}
	return out
}

// couple evaluates the couplings. Convection's part is left where it is: it is not that of
// the same flux at both ends.
func (x *faceCoupling) evaluate(w *peer) {
	p := w.block.Problem
	axis, side := 0, 1
	for a := range p.Dimension {
		switch stride := [3]int{1, w.layout.Row, w.layout.Plane}[a]; x.step {
		case stride:
			axis, side = a, 1
		case -stride:
			axis, side = a, -1
		}
	}
	st, h := problem.NewStencil(p), p.Spacing(axis)
	i := 0
	eachPoint(x.points, func(px, py, pz int) {
		at := [3]int{px + w.ext.Lo[0] + 1, py + w.ext.Lo[1] + 1, pz + w.ext.Lo[2] + 1}
		x.coupling[i] = st.Between(at, p.At(at[0], at[1], at[2]), axis, side) / (h * h)
		i++
	})
}

// halveFluxes moves half of every flux across a face in the defect to the point behind it.
// A point in contact takes no part in the coarse problem, and there is nothing to balance
// with it.
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

// contact tells whether the value at a point of the region, or a ghost on a face, lies on
// an obstacle.
func (c *correction) inContact(u []float64, at int) bool {
	return c.lower != nil && u[at] <= c.lower[at] || c.upper != nil && u[at] >= c.upper[at]
}
