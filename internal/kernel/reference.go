package kernel

import "math"

// referenceSweep executes the contract of the package comment point by point. All other variants
// are tested against it bit by bit.
func referenceSweep(s *Sweep, n *Norm, dst, below, src []float64, b Box) {
	s.layout.eachPoint(b, func(i, d int) {
		r := s.defectAt(below, src, i, d)
		u, phi, psi := src[i], s.lower.At(d), s.upper.At(d)
		if n != nil {
			n.Add(clampResidual(r, u, phi, psi))
		}
		if dst != nil {
			dst[i] = Clamp(u-float64(s.step*r), phi, psi)
		}
	})
}

// eachPoint calls f for the own points of b with the padded and the dense index, x fastest.
func (l Layout) eachPoint(b Box, f func(i, d int)) {
	b.each(func(x, y, z int) { f(l.Index(x, y, z), l.Dense(x, y, z)) })
}

// each calls f for the points of b, x fastest.
func (b Box) each(f func(x, y, z int)) {
	for z := b.Lo[2]; z < b.Hi[2]; z++ {
		for y := b.Lo[1]; y < b.Hi[1]; y++ {
			for x := b.Lo[0]; x < b.Hi[0]; x++ {
				f(x, y, z)
			}
		}
	}
}

// residualAt returns the VI residual of u at padded index i, dense index d.
func (s *Sweep) residualAt(u []float64, i, d int) float64 {
	return clampResidual(s.defectAt(u, u, i, d), u[i], s.lower.At(d), s.upper.At(d))
}

// defectAt returns A·u − f at padded index i, dense index d.
func (s *Sweep) defectAt(below, src []float64, i, d int) float64 {
	return s.applyAt(below, src, i, d) - s.source.At(d)
}

// applyAt returns A·u at padded index i, dense index d.
func (s *Sweep) applyAt(below, src []float64, i, d int) float64 {
	l := &s.layout
	strides, low := [3]int{1, l.Row, l.Plane}, src
	sum := contactResidual // −0: adding it changes no bit
	for a := range l.Dim {
		if a == l.Dim-1 {
			low = below
		}
		sum += s.neighbourTerm(West+2*a, d, low[i-strides[a]]) + s.neighbourTerm(East+2*a, d, src[i+strides[a]])
	}
	switch s.operator.Form {
	case Constant:
		return float64(s.operator.Values[Center]*src[i]) - sum
	case Variable:
		return float64(s.operator.Arrays[Center][d]*src[i]) - sum
	default:
		return float64(s.operator.Diag*src[i]) - float64(s.operator.Off*sum)
	}
}

// neighbourTerm returns the term of one neighbour in the sum.
func (s *Sweep) neighbourTerm(direction, d int, u float64) float64 {
	switch s.operator.Form {
	case Constant:
		return float64(s.operator.Values[direction] * u)
	case Variable:
		return float64(s.operator.Arrays[direction][d] * u)
	default:
		return u
	}
}

// clampResidual returns the residual of the variational inequality at a point. It is −0 where the
// point is in contact and stays there, and nowhere else.
func clampResidual(r, u, phi, psi float64) float64 {
	r = positiveZero(r)
	if u <= phi && r >= 0 {
		r = contactResidual
	}
	if u >= psi && r <= 0 {
		r = contactResidual
	}
	return r
}

// contactResidual is the residual of a point in contact that stays there.
var contactResidual = math.Copysign(0, -1)

// positiveZero returns r with −0 replaced by +0.
func positiveZero(r float64) float64 { return r + 0 }
