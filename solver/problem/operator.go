package problem

import (
	"math"

	"github.com/p2pdc/p2pdc/internal/kernel"
	"github.com/p2pdc/p2pdc/solver/method"
)

// Stencil computes the coefficients of the discrete operator. All users share it and therefore obtain the same
// bits. Per axis,
//
//	low  = κ(x−h/2)/h² + b/(2h),  high = κ(x+h/2)/h² − b/(2h)
//
// and center = Σ (κ(x−h/2) + κ(x+h/2))/h² + c. κ(x±h/2) is the harmonic mean along the edge (see
// Coefficient.edge). If the problem uses upwind differences and |b|·h > 2κ at either half-way point, the
// velocity contributes |b|/h on the upstream side and on the diagonal.
type Stencil struct {
	Problem *Problem
	h       [3]float64
	half    bool          // take κ half-way: cheaper, for estimates
	d       *method.Edges // κ around the box in question; nil: evaluated on demand
}

// NewStencil returns the stencil of the operator of p.
func NewStencil(p *Problem) Stencil {
	return Stencil{Problem: p, h: [3]float64{p.Spacing(0), p.Spacing(1), p.Spacing(2)}}
}

// Constant reports whether one set of coefficients applies at every point.
func (s Stencil) Constant() bool {
	p := s.Problem
	for a := range p.Dimension {
		if !p.Velocity[a].Constant() {
			return false
		}
	}
	return p.Diffusion.Constant() && p.Reaction.Constant()
}

// At returns the operator's row at grid point idx (1-based; 0 and N+1 denote the boundary).
func (s Stencil) At(idx [3]int) (v [kernel.Directions]float64) {
	p := s.Problem
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

// check returns an error if a row is not finite or its diagonal is not positive.
func (s Stencil) check(idx [3]int, v *[kernel.Directions]float64) error {
	for d := range 1 + 2*s.Problem.Dimension {
		if !kernel.Finite(v[d]) {
			return s.Problem.Errorf("the operator's coefficients at %v are not finite; check diffusion, velocity and reaction",
				s.Problem.Location(idx))
		}
	}
	if !(v[kernel.Center] > 0) {
		return s.Problem.Errorf("the operator's diagonal at %v is %v; it must be positive; check diffusion and reaction",
			s.Problem.Location(idx), v[kernel.Center])
	}
	return nil
}

// shape returns the cheapest operator form for a constant row.
func (s Stencil) shape(v [kernel.Directions]float64) kernel.Operator {
	off := v[kernel.West]
	for d := kernel.West; d <= 2*s.Problem.Dimension; d++ {
		if v[d] != off {
			return kernel.Operator{Form: kernel.Constant, Values: v}
		}
	}
	return kernel.Operator{Form: kernel.Isotropic, Diag: v[kernel.Center], Off: off}
}

// Operator returns the coefficients of a box and the largest diagonal entry in it. It uses the arrays in room
// where they are large enough.
func (s Stencil) Operator(box Box, l kernel.Layout, room [kernel.Directions][]float64) (
	kernel.Operator, float64, error) {
	first := [3]int{box.Lo[0] + 1, box.Lo[1] + 1, box.Lo[2] + 1}
	if s.Constant() {
		v := s.At(first)
		if err := s.check(first, &v); err != nil {
			return kernel.Operator{}, 0, err
		}
		return s.shape(v), v[kernel.Center], nil
	}
	op := kernel.Operator{Form: kernel.Variable, Arrays: room}
	for d := range 1 + 2*s.Problem.Dimension {
		op.Arrays[d] = Resized(room[d], l.Points())
	}
	if s.d == nil {
		s.d = s.Problem.diffusion(Grown(box, 1, s.Problem.Dimension))
	}
	largest := 0.0
	for d, idx := range box.Each {
		v := s.At(idx)
		if err := s.check(idx, &v); err != nil {
			return op, largest, err
		}
		for n := range 1 + 2*s.Problem.Dimension {
			op.Arrays[n][d] = v[n]
		}
		largest = max(largest, v[kernel.Center])
	}
	return op, largest, nil
}
