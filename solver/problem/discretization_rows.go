package problem

import (
	"math"

	"github.com/p2pdc/p2pdc/internal/kernel"
)

// LargestMagnitude is NaN if a value is.
func LargestMagnitude(v []float64) float64 { return kernel.MaxAbs(v) }

// Larger is NaN if one of the two is.
func Larger(a, b float64) float64 {
	if b > a || math.IsNaN(b) {
		return b
	}
	return a
}

// EachRow visits the rows of a padded array, with their ghosts and those of rows
// beside the block, or without, and the grid index of their first point (0 and N+1
// are the boundary).
func (b *Discretization) EachRow(f func(row []float64, first [3]int), v []float64, ghosts bool) {
	l, in := b.Layout, b.Layout.Interior()
	if ghosts {
		for a := range l.Dim {
			in.Lo[a], in.Hi[a] = -1, l.N[a]+1
		}
	}
	m := in.Hi[0] - in.Lo[0]
	for z := in.Lo[2]; z < in.Hi[2]; z++ {
		for y := in.Lo[1]; y < in.Hi[1]; y++ {
			i := l.Index(in.Lo[0], y, z)
			f(v[i:][:m:m], [3]int{b.Box.Lo[0] + in.Lo[0] + 1, b.Box.Lo[1] + y + 1, b.Box.Lo[2] + z + 1})
		}
	}
}

// SameArray reports whether two slices begin at the same element.
func SameArray(a, b []float64) bool { return len(a) > 0 && len(b) > 0 && &a[0] == &b[0] }
