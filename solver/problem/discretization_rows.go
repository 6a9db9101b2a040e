package problem

import (
	"math"

	"github.com/p2pdc/p2pdc/internal/kernel"
	"github.com/p2pdc/p2pdc/solver/method"
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
	box := b.Box
	if ghosts {
		box.Lo, box.Hi = Grown(box, 1, b.Layout.Dim)
	}
	b.EachRowOf(box, func(at, n int, first [3]int) bool {
		f(v[at:][:n:n], first)
		return true
	})
}

// SameArray reports whether two slices begin at the same element.
func SameArray(a, b []float64) bool { return len(a) > 0 && len(b) > 0 && &a[0] == &b[0] }

// Magnitudes sums m² over points of the block that are not in contact, or whose residual is not 0, where m bounds the
// magnitude of the terms of the point's residual. The stagnation test uses it. u is padded, and its ghosts are those of
// the residual.
func (b *Discretization) Magnitudes(u []float64, points kernel.Box) kernel.Sum {
	var sum kernel.Sum
	s, err := b.Sweep(1) // its step is not used
	if err != nil {
		return sum // no block relaxes without a kernel
	}
	residual := make([]float64, b.Layout.N[0])
	for z := points.Lo[2]; z < points.Hi[2]; z++ {
		for y := points.Lo[1]; y < points.Hi[1]; y++ {
			i, d := b.Layout.Index(0, y, z), b.Layout.Dense(0, y, z)
			s.DefectRows(residual, u, y, y+1, z)
			for x := points.Lo[0]; x < points.Hi[0]; x++ {
				v := u[i+x]
				if residual[x] == 0 && (v <= b.Lower.At(d+x) || v >= b.Upper.At(d+x)) {
					continue
				}
				m := PointMagnitude(method.Coefficient(&b.Operator, kernel.Center, d+x), v, b.Source.At(d+x))
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
