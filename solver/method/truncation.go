package method

import (
	"math"

	"github.com/p2pdc/p2pdc/internal/kernel"
)

// Truncated stencil arms represent fine points in contact, where a correction is 0, between two coarse
// points. Without them a coarse grid would know contact at its own points only, that is, the free boundary
// to half a spacing, and a cycle would gain little (in one dimension almost nothing).
//
// An arm of the stencil of a coarse point ends at the first contact point, at the part θ of the way to
// the neighbour. The value there is 0: the coefficient divided by θ remains on the diagonal, and the
// neighbour is not read. Along an axis this is the Galerkin product with interpolation truncated at
// points in contact (Kornhuber, Numer. Math. 69, 1994).
//
// The arms of a point are encoded in one number with 7 bits per arm, low axes and low sides first: 0 for a
// complete arm, else 128·θ. The array of these numbers is exchanged like arrays of values.
const (
	armBits  = 7
	armScale = 1 << armBits
)

// truncatedPoint is a point with truncated arms and its row of the operator.
type truncatedPoint struct {
	at     [3]int
	index  int // in padded arrays
	dense  int // in dense arrays
	colour int
	center float64
	off    [2 * 3]float64 // coefficients of the neighbours, 0 for truncated arms
}

// arm returns the code of arm d (0 for West) of a point.
func arm(codes float64, d int) int {
	return int(uint64(codes)>>(armBits*d)) & (armScale - 1)
}

// fractionCode returns the code of θ, 0 < θ < 1.
func fractionCode(theta float64) uint64 {
	return uint64(max(1, min(armScale-1, math.Round(armScale*theta))))
}

// If the diffusion varies, θ is the resistance of the truncated arm relative to that of the whole arm. It
// may be any positive number, so its code has a mantissa of 2 bits and an exponent of 5 bits.
const (
	armMantissa = 2
	armExponent = 24 // exponent of the code 0
)

// armCode returns the code of an arm truncated at θ on the level below l.
func (l *Level) armCode(theta float64) uint64 {
	if l.edges == nil {
		return fractionCode(theta)
	}
	fraction, exponent := math.Frexp(theta)
	code := (exponent+armExponent)<<armMantissa + int((2*fraction-1)*(1<<armMantissa))
	return uint64(max(1, min(armScale-1, code)))
}

// theta returns θ of a nonzero code of l.
func (l *Level) theta(code int) float64 {
	if l.edges == nil {
		return float64(code) / armScale
	}
	fraction := (1 + (float64(code&(1<<armMantissa-1))+0.5)/(1<<armMantissa)) / 2
	return math.Ldexp(fraction, code>>armMantissa-armExponent)
}

// conductance returns the conductance between own point q and the next point along axis a. The level must have edges.
func (l *Level) conductance(a int, q [3]int) float64 {
	for b := range q {
		q[b] += l.Part.Lo[b]
	}
	h := l.edges.Spacing[a]
	return l.edges.above(a, q) / float64(h*h)
}

// truncationAt returns the codes of the arms of point at of the next coarser grid, which lies on or next to the
// fine point p.
func (l *Level) truncationAt(coarse *Level, at, p [3]int) uint64 {
	var code uint64
	c := coarse.Part
	for a := range c.Layout.Dim {
		for side := range 2 {
			step := 2*side - 1
			end := int(l.nearestFine[a][at[a]+step+1])
			if theta := l.contactDistance(coarse, at, p, a, step, end); theta > 0 {
				code |= l.armCode(theta) << (armBits * (2*a + side))
			}
		}
	}
	return code
}

// contactDistance returns θ of the first contact point between coarse own point c and the next coarse point
// along axis a, or 0 if there is none. c lies on or next to the fine point p; the next coarse point lies on or
// next to index end.
func (l *Level) contactDistance(coarse *Level, c, p [3]int, a, step, end int) float64 {
	d := 2*a + (step+1)/2
	spacing := float64(l.Part.Global[a]+1) / float64(coarse.Part.Global[a]+1)
	from := float64(coarse.Part.Lo[a]+c[a]+1)*spacing - float64(l.Part.Lo[a]+1) // exact where grids are nested
	length := (float64(p[a]) - from) * float64(step)
	all, edge := spacing, 1.0
	if l.edges != nil { // lengths are resistances
		all /= coarse.conductanceAlong(c, a, step) * float64(spacing*spacing)
		edge = 1 / l.conductanceAlong(p, a, step)
		length *= edge
	}
	for q := p; q[a] != end; q[a] += step {
		held := q != p && l.contact.has(q)
		rest := 0.0
		if l.edges != nil {
			edge = 1 / l.conductanceAlong(q, a, step)
		}
		if !held && l.Truncation != nil {
			if code := arm(l.Truncation[l.Part.Layout.Index(q[0], q[1], q[2])], d); code > 0 {
				held, rest = true, float64(edge*l.theta(code))
			}
		}
		if !held {
			length += edge
			continue
		}
		theta := (length + rest) / all
		if l.edges == nil {
			theta = ((float64(q[a])-from)*float64(step) + rest) / spacing
			if theta >= 1 {
				return 0
			}
		}
		return max(theta, math.SmallestNonzeroFloat64)
	}
	return 0
}

// conductanceAlong returns the conductance between own point q and its neighbour on one side along an axis.
func (l *Level) conductanceAlong(q [3]int, a, step int) float64 {
	if step < 0 {
		q[a]--
	}
	return l.conductance(a, q)
}

// UpdateTruncated updates the list of truncated points from Truncation after Restrict has written all of it.
// allRows must be true if Truncation was written by other means: then every row is read.
func (l *Level) UpdateTruncated(allRows bool) {
	layout := l.Part.Layout
	n := layout.N
	if len(l.truncated) > 0 {
		clear(l.truncatedSet.words)
		l.truncated = l.truncated[:0]
	}
	for row := range l.truncatedRows {
		l.rowStart[row] = int32(len(l.truncated))
		if !allRows && !l.truncatedRows[row] {
			continue
		}
		y, z := row%n[1], row/n[1]
		words := l.truncatedSet.of(y, z)
		i, d := layout.Index(0, y, z), layout.Dense(0, y, z)
		for x, code := range l.Truncation[i : i+n[0]] {
			if code != 0 {
				l.truncatedRows[row] = true
				setBit(words, x)
				l.truncated = append(l.truncated, l.stencilAt([3]int{x, y, z}, i+x, d+x, code))
			}
		}
	}
	l.rowStart[len(l.truncatedRows)] = int32(len(l.truncated))
}

// stencilAt returns the operator's row at a point with truncated arms.
func (l *Level) stencilAt(at [3]int, i, d int, code float64) truncatedPoint {
	w := truncatedPoint{at: at, index: i, dense: d, center: l.coefficient(kernel.Center, d)}
	w.colour = (at[0] + at[1] + at[2] + l.parity) & 1
	reaction := decodeReaction(code)
	for k := range 2 * l.Part.Layout.Dim {
		off := l.coefficient(kernel.West+k, d)
		w.center += reaction * math.Abs(off)
		if c := arm(code, k); c > 0 {
			w.center += off/l.theta(c) - off
			continue
		}
		w.off[k] = off
	}
	return w
}

func (l *Level) coefficient(direction, d int) float64 { return Coefficient(&l.operator, direction, d) }

// Coefficient returns an operator's coefficient in a direction at dense index d; Center selects the diagonal.
func Coefficient(op *kernel.Operator, direction, d int) float64 {
	switch {
	case op.Form == kernel.Constant:
		return op.Values[direction]
	case op.Form == kernel.Variable:
		return op.Arrays[direction][d]
	case direction == kernel.Center:
		return op.Diag
	}
	return op.Off
}

// neighbourSum returns Σ coefficient·neighbour at a point with truncated arms.
func (l *Level) neighbourSum(w *truncatedPoint) float64 {
	u, i := l.Values, w.index
	stride := [3]int{1, l.Part.Layout.Row, l.Part.Layout.Plane}
	sum := 0.0
	for a := range l.Part.Layout.Dim {
		sum += float64(w.off[2*a]*u[i-stride[a]]) + float64(w.off[2*a+1]*u[i+stride[a]])
	}
	return sum
}

// relaxTruncated relaxes the truncated points of one colour in b with factor 1. The kernels have
// already relaxed them with the complete stencil.
func (l *Level) relaxTruncated(colour int, b kernel.Box) {
	for z := b.Lo[2]; z < b.Hi[2]; z++ {
		walled := l.truncatedIn(b.Lo[1], b.Hi[1], z)
		for i := range walled {
			w := &walled[i]
			if w.colour != colour || w.at[0] < b.Lo[0] || w.at[0] >= b.Hi[0] {
				continue
			}
			v := (l.neighbourSum(w) + l.Source.At(w.dense)) / w.center
			if lo := l.Lower.At(w.dense); lo > v {
				v = lo
			}
			if hi := l.Upper.At(w.dense); hi < v {
				v = hi
			}
			l.Values[w.index] = v
		}
	}
}

// truncatedIn returns the truncated points of rows [lo, hi) of a plane.
func (l *Level) truncatedIn(lo, hi, z int) []truncatedPoint {
	if len(l.truncated) == 0 {
		return nil
	}
	at := l.Part.Layout.N[1] * z
	return l.truncated[l.rowStart[at+lo]:l.rowStart[at+hi]]
}

// defectTruncated returns the residual at a truncated point.
func (l *Level) defectTruncated(w *truncatedPoint) float64 {
	u := l.Values[w.index]
	r := (float64(w.center*u) - l.neighbourSum(w)) - l.Source.At(w.dense) + 0 // −0 is reserved for points in contact
	if u <= l.Lower.At(w.dense) && r >= 0 || u >= l.Upper.At(w.dense) && r <= 0 {
		return math.Copysign(0, -1)
	}
	return r
}
