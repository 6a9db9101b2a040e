package kernel

import (
	"fmt"
	"testing"
)

// BenchmarkMultigrid measures the parts of a multigrid cycle at the fine points of the membrane on one
// core. The coarse grids are nested if n is odd.
func BenchmarkMultigrid(b *testing.B) {
	for _, n := range []int{63, 64, 127, 255, 256} {
		for _, k := range All()[1:] {
			s, u, r := membrane(b, n, k)
			coarse, err := NewLayout(3, [3]int{(n - 1) / 2, (n - 1) / 2, (n - 1) / 2})
			if err != nil {
				b.Fatal(err)
			}
			t, err := NewTransfer(Whole(s.layout), Whole(coarse), k)
			if err != nil {
				b.Fatal(err)
			}
			e := make([]float64, coarse.Len())
			var sum Sum
			for _, part := range []struct {
				name  string
				bytes float64
				do    func()
			}{
				{"defect", 32, func() { s.Defect(r, u, s.layout.Interior()) }},
				{"restrict", 9, func() { t.Restrict(e, u, coarse.Interior()) }},
				{"prolong", 25, func() { t.Prolong(u, e, s.lower, s.upper, s.layout.Interior()) }},
				{"energy", 16, func() { s.Energy(&sum, u, r, s.layout.Interior()) }},
			} {
				b.Run(fmt.Sprintf("n=%d/%s/%s", n, part.name, k.Name()), func(b *testing.B) {
					b.ReportAllocs()
					for b.Loop() {
						part.do()
					}
					report(b, s.layout.Points(), part.bytes)
				})
			}
		}
	}
}
