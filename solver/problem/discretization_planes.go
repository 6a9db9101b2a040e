package problem

import (
	"slices"

	"github.com/p2pdc/p2pdc/internal/kernel"
)

// resize changes the extent of the block along the slowest axis.
func (b *Discretization) resize(lo, hi int) error {
	slow := b.Layout.Dim - 1
	b.Box.Lo[slow], b.Box.Hi[slow] = lo, hi
	l, err := kernel.NewLayout(b.Layout.Dim, b.Box.Size())
	b.Layout = l
	return err
}

// arrays returns pointers to the block's dense arrays.
func (b *Discretization) arrays() []*[]float64 {
	out := []*[]float64{&b.Source.Array, &b.Lower.Array, &b.Upper.Array}
	for d := range b.Operator.Arrays {
		out = append(out, &b.Operator.Arrays[d])
	}
	return out
}

// RemovePlanes removes planes at the low (side < 0) or high end of the slowest axis.
func (b *Discretization) RemovePlanes(side, count int) error {
	slow := b.Layout.Dim - 1
	lo, hi := b.Box.Lo[slow], b.Box.Hi[slow]
	points := count * (b.Layout.Points() / (hi - lo))
	if side < 0 {
		lo += count
	} else {
		hi -= count
	}
	for _, a := range b.arrays() {
		if side < 0 {
			*a = Tail(*a, points)
		} else {
			*a = Head(*a, len(*a)-points)
		}
	}
	b.stepSource = nil
	return b.resize(lo, hi)
}

// Adjacent returns the discretization of the count planes that follow on one side.
func (b *Discretization) Adjacent(side, count int) (*Discretization, error) {
	box, slow := b.Box, b.Layout.Dim-1
	lo := box.Hi[slow]
	if side < 0 {
		lo = box.Lo[slow] - count
	}
	box.Lo[slow], box.Hi[slow] = lo, lo+count
	return Discretize(b.Problem, box)
}

// AddPlanes appends planes that Adjacent returned for the same side.
func (b *Discretization) AddPlanes(side int, part *Discretization) error {
	own, more := b.Layout.Points(), part.Layout.Points()
	field := func(f, g kernel.Field) kernel.Field {
		if f.Array == nil && g.Array == nil && f.Value == g.Value {
			return f
		}
		f.Array = Joined(side, FieldArray(f, own), FieldArray(g, more))
		return f
	}
	b.Source = field(b.Source, part.Source)
	b.Lower = field(b.Lower, part.Lower)
	b.Upper = field(b.Upper, part.Upper)
	if b.Operator.Form == kernel.Variable {
		for d := range b.Operator.Arrays {
			b.Operator.Arrays[d] = Joined(side, b.Operator.Arrays[d], part.Operator.Arrays[d])
		}
	}
	b.Diagonal = max(b.Diagonal, part.Diagonal)
	b.stepSource = nil
	slow := b.Layout.Dim - 1
	return b.resize(min(b.Box.Lo[slow], part.Box.Lo[slow]), max(b.Box.Hi[slow], part.Box.Hi[slow]))
}

// FillSideGhosts writes the boundary data beside the planes of a box to a padded array.
func (b *Discretization) FillSideGhosts(dst []float64, planes Box) {
	for a := range b.Layout.Dim - 1 {
		for _, end := range []int{planes.Lo[a] - 1, planes.Hi[a]} {
			side := planes
			side.Lo[a], side.Hi[a] = end, end+1
			for _, idx := range side.Each {
				dst[b.Index(idx)] = b.Problem.ReferenceAt(idx)
			}
		}
	}
}

// FieldArray returns a field's values at every point.
func FieldArray(f kernel.Field, points int) []float64 {
	if f.Array != nil {
		return f.Array
	}
	return slices.Repeat([]float64{f.Value}, points)
}

// Joined returns a new array of own values and those of planes added on one side, or nil if both are empty.
func Joined(side int, own, more []float64) []float64 {
	if side < 0 {
		own, more = more, own
	}
	return append(slices.Clip(slices.Clone(own)), more...)
}

// Head returns the first n values of a without spare capacity, or nil if a is nil.
func Head(a []float64, n int) []float64 {
	if a == nil {
		return nil
	}
	return a[:n:n]
}

// Tail returns the values of a from index n on, or nil if a is nil.
func Tail(a []float64, n int) []float64 {
	if a == nil {
		return nil
	}
	return a[n:]
}
