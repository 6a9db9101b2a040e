package problem

import (
	"math"

	"github.com/p2pdc/p2pdc/internal/kernel"
)

// Magnitudes adds up m² (see stagnation) over points of the block; u is padded.
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

// PointMagnitude is m_i.
func PointMagnitude(center, u, f float64) float64 {
	return float64(2*center*math.Abs(u)) + math.Abs(f)
}
