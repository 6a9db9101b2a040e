package repair

import (
	"fmt"
	"slices"

	"github.com/p2pdc/p2pdc/internal/kernel"
	"github.com/p2pdc/p2pdc/solver/problem"
)

// Shell returns the points of a survivor's box that share a face of the grid with a point of a lost box, as
// disjoint boxes. Their order does not depend on the order of lost. The lost boxes are disjoint, and box is
// disjoint from them. A lost block of an iteration may read any value of others: Shell then returns the box.
func Shell(p *problem.Problem, lost []problem.Box, box problem.Box) (shell []problem.Box) {
	if p.FixedPoint != nil && len(lost) > 0 {
		return []problem.Box{box}
	}
	lost = slices.SortedFunc(slices.Values(lost), func(a, b problem.Box) int {
		return slices.Compare([]int{a.Lo[2], a.Lo[1], a.Lo[0]}, []int{b.Lo[2], b.Lo[1], b.Lo[0]})
	})
	for _, hole := range lost {
		for a := range 3 {
			for _, at := range [2]int{hole.Lo[a] - 1, hole.Hi[a]} {
				layer := hole
				layer.Lo[a], layer.Hi[a] = at, at+1
				for c := range 3 {
					layer.Lo[c], layer.Hi[c] = max(layer.Lo[c], box.Lo[c]), min(layer.Hi[c], box.Hi[c])
				}
				shell = append(shell, without(layer, shell)...)
			}
		}
	}
	return shell
}

// without returns the points of b outside the others, as disjoint boxes.
func without(b problem.Box, others []problem.Box) []problem.Box {
	if b.Empty() {
		return nil
	}
	parts := []problem.Box{b}
	for _, o := range others {
		var rest []problem.Box
		for _, p := range parts {
			rest = append(rest, difference(p, o)...)
		}
		parts = rest
	}
	return parts
}

// difference returns the points of b outside o as at most six disjoint boxes: what lies before and behind o along
// an axis is cut off, and the rest is cut along the next axis.
func difference(b, o problem.Box) (parts []problem.Box) {
	for a := range 3 {
		if o.Hi[a] <= b.Lo[a] || b.Hi[a] <= o.Lo[a] {
			return append(parts, b)
		}
		if b.Lo[a] < o.Lo[a] {
			before := b
			before.Hi[a], b.Lo[a] = o.Lo[a], o.Lo[a]
			parts = append(parts, before)
		}
		if o.Hi[a] < b.Hi[a] {
			behind := b
			behind.Lo[a], b.Hi[a] = o.Hi[a], o.Hi[a]
			parts = append(parts, behind)
		}
	}
	return parts
}

// Pack returns the values of a survivor at the points of Shell, for Faces.Add. u holds the values of its box,
// [z][y][x].
func Pack(p *problem.Problem, lost []problem.Box, box problem.Box, u []float64) (values []float64) {
	for _, b := range Shell(p, lost, box) {
		values = append(values, extract(box, u, b)...)
	}
	return values
}

// extract returns the values of a part of box. u holds those of box.
func extract(box problem.Box, u []float64, part problem.Box) []float64 {
	out := make([]float64, part.Points())
	rows(box, part, func(row, at, n int) { copy(out[at:][:n], u[row:]) })
	return out
}

// insert writes the values of a part of box into u, which holds those of box.
func insert(box problem.Box, u []float64, part problem.Box, values []float64) {
	rows(box, part, func(row, at, n int) { copy(u[row:], values[at:][:n]) })
}

// rows calls f for each row of n points of a part of box, with its place in an array of box and in one of the part.
func rows(box, part problem.Box, f func(row, at, n int)) {
	if part.Empty() {
		return
	}
	n, size := box.Size(), part.Size()
	part = part.From(box.Lo)
	at := 0
	for z := part.Lo[2]; z < part.Hi[2]; z++ {
		for y := part.Lo[1]; y < part.Hi[1]; y++ {
			f(part.Lo[0]+n[0]*(y+n[1]*z), at, size[0])
			at += size[0]
		}
	}
}

// Faces holds the values that survivors hold next to lost boxes. Its memory is that of these values.
type Faces struct {
	of     *problem.Problem
	lost   []problem.Box
	boxes  []problem.Box
	values [][]float64 // by box
}

// NewFaces returns an empty Faces for lost boxes, which are disjoint.
func NewFaces(p *problem.Problem, lost []problem.Box) *Faces { return &Faces{of: p, lost: lost} }

// Add adds the values that a survivor with this box has packed. It does not keep values.
func (f *Faces) Add(box problem.Box, values []float64) error {
	shell := Shell(f.of, f.lost, box)
	points := 0
	for _, b := range shell {
		points += b.Points()
	}
	if len(values) != points {
		return fmt.Errorf("repair: %d values of box %v beside the lost boxes; there must be %d: "+
			"do both peers know of the same losses?", len(values), box, points)
	}
	if i := slices.IndexFunc(values, func(v float64) bool { return !kernel.Finite(v) }); i >= 0 {
		return fmt.Errorf("repair: value %d of box %v beside the lost boxes is %v; it must be finite", i, box, values[i])
	}
	for _, b := range shell {
		n := b.Points()
		f.boxes, f.values = append(f.boxes, b), append(f.values, slices.Clone(values[:n]))
		values = values[n:]
	}
	return nil
}

// Value returns the value at the point of a grid index (1-based), and whether a survivor has sent it.
func (f *Faces) Value(idx [3]int) (v float64, known bool) {
	i := find(f.boxes, idx)
	if i < 0 {
		return 0, false
	}
	b := f.boxes[i]
	n := b.Size()
	x, y, z := idx[0]-1-b.Lo[0], idx[1]-1-b.Lo[1], idx[2]-1-b.Lo[2]
	return f.values[i][x+n[0]*(y+n[1]*z)], true
}
