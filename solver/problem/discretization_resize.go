package problem

import (
	"slices"

	"github.com/p2pdc/p2pdc/internal/kernel"
)

// resize gives the block another extent along the slowest axis.
func (b *Discretization) resize(lo, hi int) error {
	slow := b.Layout.Dim - 1
	b.Box.Lo[slow], b.Box.Hi[slow] = lo, hi
	l, err := kernel.NewLayout(b.Layout.Dim, b.Box.Size())
	b.Layout = l
	return err
}

// arrays are the dense arrays that the block has.
func (b *Discretization) arrays() []*[]float64 {
	out := []*[]float64{&b.Source.Array, &b.Lower.Array, &b.Upper.Array}
	for d := range b.Operator.Arrays {
		out = append(out, &b.Operator.Arrays[d])
	}
	return out
}

// Drop removes planes at the low (side < 0) or the high end of the slowest axis.
func (b *Discretization) Drop(side, count int) error {
	slow := b.Layout.Dim - 1
	lo, hi := b.Box.Lo[slow], b.Box.Hi[slow]
	points := count * (b.Layout.Points() / (hi - lo))
	for _, a := range b.arrays() {
		if side < 0 {
			*a = Tail(*a, points)
		} else {
			*a = Head(*a, len(*a)-points)
		}
	}
	b.memory = nil
	if side < 0 {
		return b.resize(lo+count, hi)
	}
	return b.resize(lo, hi-count)
}

// Beside is the block of the planes that follow on one side.
func (b *Discretization) Beside(side, count int) (*Discretization, error) {
	box, slow := b.Box, b.Layout.Dim-1
	if side < 0 {
		box.Lo[slow], box.Hi[slow] = b.Box.Lo[slow]-count, b.Box.Lo[slow]
	} else {
		box.Lo[slow], box.Hi[slow] = b.Box.Hi[slow], b.Box.Hi[slow]+count
	}
	return Discretize(b.Problem, box)
}

// Join adds the block that beside gave.
func (b *Discretization) Join(side int, part *Discretization) error {
	own, more := b.Layout.Points(), part.Layout.Points()
	field := func(f, g kernel.Field) kernel.Field {
		if f.Array == nil && g.Array == nil && f.Value == g.Value {
			return f
		}
		f.Array = Joined(side, spread(f, own), spread(g, more))
		return f
	}
	b.Source, b.Lower, b.Upper = field(b.Source, part.Source), field(b.Lower, part.Lower), field(b.Upper, part.Upper)
	if b.Operator.Form == kernel.Variable {
		for d := range b.Operator.Arrays {
			b.Operator.Arrays[d] = Joined(side, b.Operator.Arrays[d], part.Operator.Arrays[d])
		}
	}
	b.Diagonal = max(b.Diagonal, part.Diagonal)
	b.memory = nil
	slow := b.Layout.Dim - 1
	return b.resize(min(b.Box.Lo[slow], part.Box.Lo[slow]), max(b.Box.Hi[slow], part.Box.Hi[slow]))
}

// FillRim writes the boundary data beside the planes of a box to a padded array.
func (b *Discretization) FillRim(dst []float64, planes Box) {
	for a := range b.Layout.Dim - 1 {
		for _, end := range []int{planes.Lo[a] - 1, planes.Hi[a]} {
			side := planes
			side.Lo[a], side.Hi[a] = end, end+1
			side.Each(func(_ int, idx [3]int) bool {
				dst[b.Index(idx)] = b.Problem.ReferenceAt(idx)
				return true
			})
		}
	}
}

// spread is a field's values at every point.
func spread(f kernel.Field, points int) []float64 {
	if f.Array != nil {
		return f.Array
	}
	return slices.Repeat([]float64{f.Value}, points)
}

// Joined is a new array of own values and those of planes on one side; nil of nothing.
func Joined(side int, own, more []float64) []float64 {
	if side < 0 {
		own, more = more, own
	}
	return append(slices.Clip(slices.Clone(own)), more...)
}

// Head returns the first n values of a without spare capacity; nil of nil.
func Head(a []float64, n int) []float64 {
	if a == nil {
		return nil
	}
	return a[:n:n]
}

// Tail returns the values of a from index n on; nil of nil.
func Tail(a []float64, n int) []float64 {
	if a == nil {
		return nil
	}
	return a[n:]
}
