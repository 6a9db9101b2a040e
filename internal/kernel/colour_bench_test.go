package kernel

import (
	"fmt"
	"testing"
)

// BenchmarkRedBlack measures red-black sweeps of the membrane on one core. A sweep of both colours
// counts as one update of every point.
func BenchmarkRedBlack(b *testing.B) {
	for _, n := range []int{15, 31, 63, 127, 255} {
		for _, k := range All()[1:] {
			for sweeps := range 4 {
				b.Run(fmt.Sprintf("n=%d/%s/sweeps=%d", n, k.Name(), sweeps), func(b *testing.B) {
					s, u, _ := membrane(b, n, k)
					b.ReportAllocs()
					for b.Loop() {
						if sweeps == 0 { // colour after colour, for comparison
							s.RelaxColour(u, 0, 1.2, s.layout.Interior())
							s.RelaxColour(u, 1, 1.2, s.layout.Interior())
						}
						s.RedBlack(u, 1.2, sweeps, Sequential{})
					}
					report(b, s.layout.Points()*max(1, sweeps), 24/float64(max(1, sweeps)))
				})
			}
		}
	}
}

// report reports the points per second and the least memory traffic of the loop per point.
func report(b *testing.B, points int, bytes float64) {
	b.ReportMetric(float64(b.N)*float64(points)/float64(b.Elapsed().Nanoseconds()), "GLUP/s")
	b.ReportMetric(bytes, "B/point")
}
