package problem

import (
	"math"

	"github.com/p2pdc/p2pdc/internal/kernel"
)

// Stencil makes the coefficients of the discrete operator, one place for every
// user, so that all compute the same bits: per axis
//
//	low  = κ(x−h/2)/h² + b/(2h),  high = κ(x+h/2)/h² − b/(2h)
//
// and center = Σ (κ(x−h/2) + κ(x+h/2))/h² + c, where κ(x±h/2) is a mean along the edge if κ
// jumps there (see Coefficient.edge); where the problem asks for upwind
// differences and |b|·h > 2κ at either of the two, b's part is |b|/h on the side that the flow comes
// from, and on the diagonal.
type Stencil struct {
	P *Problem
	h [3]float64
	// half has κ taken half-way wherever it jumps.
	half bool
	d    *diffusion // κ between points of a box around what is asked for; nil: it is evaluated
}

// NewStencil returns the stencil of the operator of p.
func NewStencil(p *Problem) Stencil {
	return Stencil{P: p, h: [3]float64{p.Spacing(0), p.Spacing(1), p.Spacing(2)}}
}

// Constant tells whether one set of coefficients serves every point.
func (s Stencil) Constant() bool {
	p := s.P
	for a := range p.Dimension {
		if !p.Velocity[a].Constant() {
			return false
		}
	}
	return p.Diffusion.Constant() && p.Reaction.Constant()
}

// At is the operator's row at grid point idx (1-based: 0 and N+1 are the
// boundary).
func (s Stencil) At(idx [3]int) (v [kernel.Directions]float64) {
	p := s.P
	here := p.At(idx[0], idx[1], idx[2])
	center := 0.0
	for a := range p.Dimension {
		h := s.h[a]
		before, behind := s.Between(idx, here, a, -1), s.Between(idx, here, a, 1)
		low, high := before/(h*h), behind/(h*h)
		diagonal := low + high
		if b := p.Velocity[a].At(here); b != 0 {
			switch {
			case !p.Upwind || !(math.Abs(b)*h > 2*min(before, behind)):
				low += b / (2 * h)
				high -= b / (2 * h)
			case b > 0:
				low += b / h
				diagonal += b / h
			default:
				high -= b / h
				diagonal -= b / h
			}
		}
		v[kernel.West+2*a], v[kernel.East+2*a] = low, high
		center += diagonal
	}
	v[kernel.Center] = center + p.Reaction.At(here)
	return v
}

// check refuses a row that is not finite or has no positive diagonal.
func (s Stencil) check(idx [3]int, v *[kernel.Directions]float64) error {
	for d := range 1 + 2*s.P.Dimension {
		if math.IsNaN(v[d]) || math.IsInf(v[d], 0) {
			return s.P.Refuse("the operator's coefficients at %v are not finite; check diffusion, velocity and reaction", s.P.Place(idx))
		}
	}
	if !(v[kernel.Center] > 0) {
		return s.P.Refuse("the operator's diagonal at %v is %v; it must be positive; check diffusion and reaction",
			s.P.Place(idx), v[kernel.Center])
	}
	return nil
}

// shape is the cheapest form that a constant row fits.
func (s Stencil) shape(v [kernel.Directions]float64) kernel.Operator {
	off := v[kernel.West]
	for d := kernel.West; d <= 2*s.P.Dimension; d++ {
		if v[d] != off {
			return kernel.Operator{Form: kernel.Constant, Values: v}
		}
	}
	return kernel.Operator{Form: kernel.Isotropic, Diag: v[kernel.Center], Off: off}
}

// Operator builds the coefficients of a box and the largest diagonal entry in it, in
// the arrays given where there are some.
func (s Stencil) Operator(box Box, l kernel.Layout, room [kernel.Directions][]float64) (kernel.Operator, float64, error) {
	first := [3]int{box.Lo[0] + 1, box.Lo[1] + 1, box.Lo[2] + 1}
	if s.Constant() {
		v := s.At(first)
		if err := s.check(first, &v); err != nil {
			return kernel.Operator{}, 0, err
		}
		return s.shape(v), v[kernel.Center], nil
	}
	op := kernel.Operator{Form: kernel.Variable, Arrays: room}
	for d := range 1 + 2*s.P.Dimension {
		op.Arrays[d] = Fit(room[d], l.Points())
	}
	if s.d == nil {
		s.d = s.P.diffusion(GrownBy(box, 1, s.P.Dimension))
	}
	largest := 0.0
	var err error
	box.Each(func(d int, idx [3]int) bool {
		v := s.At(idx)
		if err = s.check(idx, &v); err != nil {
			return false
		}
		for n := range 1 + 2*s.P.Dimension {
			op.Arrays[n][d] = v[n]
		}
		largest = max(largest, v[kernel.Center])
		return true
	})
	return op, largest, err
}
