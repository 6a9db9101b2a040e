package problem

import (
	"math"

	"github.com/p2pdc/p2pdc/internal/kernel"
)

// MaxOrNaN returns the larger of a and b, or NaN if b is NaN.
func MaxOrNaN(a, b float64) float64 {
	if b > a || math.IsNaN(b) {
		return b
	}
	return a
}

// EachRow calls f for the rows of a padded array with the grid index of their first point (0 and N+1 denote the
// boundary). With ghosts it includes the ghost points and the ghost rows beside the block.
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

// Magnitudes sums m² over points of the block that are not in contact, where m bounds the magnitude of the
// terms of the point's residual. The stagnation test uses it. u is padded.
func (b *Discretization) Magnitudes(u []float64, points kernel.Box) kernel.Sum {
	var sum kernel.Sum
	o := &b.Operator
	for z := points.Lo[2]; z < points.Hi[2]; z++ {
		for y := points.Lo[1]; y < points.Hi[1]; y++ {
			i, d := b.Layout.Index(0, y, z), b.Layout.Dense(0, y, z)
			for x := points.Lo[0]; x < points.Hi[0]; x++ {
				v := u[i+x]
				if v <= b.Lower.At(d+x) || v >= b.Upper.At(d+x) {
					continue
				}
				center := o.Diag
				switch o.Form {
				case kernel.Constant:
					center = o.Values[kernel.Center]
				case kernel.Variable:
					center = o.Arrays[kernel.Center][d+x]
				}
				m := PointMagnitude(center, v, b.Source.At(d+x))
				sum.Add(float64(m * m))
			}
		}
	}
	return sum
}

// PointMagnitude returns m for a point with diagonal entry center, value u and source f.
func PointMagnitude(center, u, f float64) float64 {
	return float64(2*center*math.Abs(u)) + math.Abs(f)
}
