package solver

import (
	"slices"

	"github.com/p2pdc/p2pdc/internal/kernel"
)

// resize gives the block another extent along the slowest axis.
func (b *block) resize(lo, hi int) error {
	slow := b.layout.Dim - 1
	b.box.Lo[slow], b.box.Hi[slow] = lo, hi
	l, err := kernel.NewLayout(b.layout.Dim, b.box.Size())
	b.layout = l
	return err
}

// arrays are the dense arrays that the block has.
func (b *block) arrays() []*[]float64 {
	out := []*[]float64{&b.source.Array, &b.lower.Array, &b.upper.Array}
	for d := range b.operator.Arrays {
		out = append(out, &b.operator.Arrays[d])
	}
	return out
}

func (b *block) drop(side, count int) error {
	slow := b.layout.Dim - 1
	lo, hi := b.box.Lo[slow], b.box.Hi[slow]
	points := count * (b.layout.Points() / (hi - lo))
	for _, a := range b.arrays() {
		if side < 0 {
			*a = tail(*a, points)
		} else {
			*a = head(*a, len(*a)-points)
		}
	}
	b.memory = nil
	if side < 0 {
		return b.resize(lo+count, hi)
	}
	return b.resize(lo, hi-count)
}

// beside is the block of the planes that follow on one side.
func (b *block) beside(side, count int) (*block, error) {
	box, slow := b.box, b.layout.Dim-1
	if side < 0 {
		box.Lo[slow], box.Hi[slow] = b.box.Lo[slow]-count, b.box.Lo[slow]
	} else {
		box.Lo[slow], box.Hi[slow] = b.box.Hi[slow], b.box.Hi[slow]+count
	}
	return newBlock(b.problem, box)
}

// join adds the block that beside gave.
func (b *block) join(side int, part *block) error {
	own, more := b.layout.Points(), part.layout.Points()
	field := func(f, g kernel.Field) kernel.Field {
		if f.Array == nil && g.Array == nil && f.Value == g.Value {
			return f
		}
		f.Array = joined(side, spread(f, own), spread(g, more))
		return f
	}
	b.source, b.lower, b.upper = field(b.source, part.source), field(b.lower, part.lower), field(b.upper, part.upper)
	if b.operator.Form == kernel.Variable {
		for d := range b.operator.Arrays {
			b.operator.Arrays[d] = joined(side, b.operator.Arrays[d], part.operator.Arrays[d])
		}
	}
	b.diagonal = max(b.diagonal, part.diagonal)
	b.memory = nil
	slow := b.layout.Dim - 1
	return b.resize(min(b.box.Lo[slow], part.box.Lo[slow]), max(b.box.Hi[slow], part.box.Hi[slow]))
}

// fillRim writes the boundary data beside the planes of a box to a padded array.
func (b *block) fillRim(dst []float64, planes Box) {
	for a := range b.layout.Dim - 1 {
		for _, end := range []int{planes.Lo[a] - 1, planes.Hi[a]} {
			side := planes
			side.Lo[a], side.Hi[a] = end, end+1
			side.each(func(_ int, idx [3]int) bool {
				dst[b.index(idx)] = b.problem.referenceAt(idx)
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

// joined is a new array of own values and those of planes on one side; nil of nothing.
func joined(side int, own, more []float64) []float64 {
	if side < 0 {
		own, more = more, own
	}
	return append(slices.Clip(slices.Clone(own)), more...)
}

func head(a []float64, n int) []float64 {
	if a == nil {
		return nil
	}
	return a[:n:n]
}

func tail(a []float64, n int) []float64 {
	if a == nil {
		return nil
	}
	return a[n:]
}
