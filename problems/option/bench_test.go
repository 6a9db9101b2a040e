package option

import (
	"testing"

	"github.com/p2pdc/p2pdc/solver/problem"
)

// BenchmarkPoint measures the payoff, the initial value and the boundary data at a grid point of three assets.
func BenchmarkPoint(b *testing.B) {
	for basket := Minimum; basket <= Geometric; basket++ {
		o := several(Put, basket, 3)
		p, err := o.Problem("p", [3]int{63, 63, 63})
		if err != nil {
			b.Fatal(err)
		}
		for name, f := range map[string]problem.Function{"payoff": p.Obstacle, "start": p.Evolution.Initial,
			"boundary": p.Evolution.At(0.5).Boundary} {
			b.Run(basket.String()+"/"+name, func(b *testing.B) {
				sum := 0.0
				for b.Loop() {
					for k := 1; k <= 63; k += 6 {
						for j := 1; j <= 63; j += 2 {
							for i := 1; i <= 63; i++ {
								sum += f(p.At(i, j, k))
							}
						}
					}
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/(11*32*63), "ns/point")
			})
		}
	}
}
