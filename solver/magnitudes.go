package solver

import (
	"math"

	"github.com/p2pdc/p2pdc/internal/kernel"
)

// magnitudes adds up m² (see stagnation) over points of the block; u is padded.
func (b *block) magnitudes(u []float64, points kernel.Box) kernel.Sum {
	var sum kernel.Sum
	o := &b.operator
	for z := points.Lo[2]; z < points.Hi[2]; z++ {
		for y := points.Lo[1]; y < points.Hi[1]; y++ {
			i, d := b.layout.Index(0, y, z), b.layout.Dense(0, y, z)
			for x := points.Lo[0]; x < points.Hi[0]; x++ {
				v := u[i+x]
				if v <= b.lower.At(d+x) || v >= b.upper.At(d+x) {
					continue
				}
				center := o.Diag
				switch o.Form {
				case kernel.Constant:
					center = o.Values[kernel.Center]
				case kernel.Variable:
					center = o.Arrays[kernel.Center][d+x]
				}
				m := pointMagnitude(center, v, b.source.At(d+x))
				sum.Add(float64(m * m))
			}
		}
	}
	return sum
}

// pointMagnitude is m_i.
func pointMagnitude(center, u, f float64) float64 {
	return float64(2*center*math.Abs(u)) + math.Abs(f)
}
