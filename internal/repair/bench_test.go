package repair_test

import (
	"fmt"
	"testing"

	"github.com/p2pdc/p2pdc/internal/repair"
	"github.com/p2pdc/p2pdc/internal/solvertest"
	"github.com/p2pdc/p2pdc/solver"
	"github.com/p2pdc/p2pdc/solver/problem"
)

// BenchmarkSolve repairs one of eight boxes of 64³ points, on one thread, early in a run and near its end.
func BenchmarkSolve(b *testing.B) {
	p := solvertest.Membrane([3]int{128, 128, 128}, 3)
	p.Rows.Obstacle = func(dst, x []float64, y, z float64) {
		for i := range dst {
			dst[i] = p.Obstacle(problem.Point{x[i], y, z})
		}
	}
	h := repair.Hole{Problem: p, Boxes: []problem.Box{{Hi: [3]int{64, 64, 64}}}, New: solver.New}
	h.Value = func(idx [3]int) (float64, bool) { return max(0, p.Obstacle(p.At(idx[0], idx[1], idx[2]))), true }
	for _, h.Tolerance = range []float64{1e-2, 1e-6} {
		b.Run(fmt.Sprint(h.Tolerance), func(b *testing.B) {
			for b.Loop() {
				r, err := repair.Solve(h)
				if err != nil || r.Method == "" {
					b.Fatal("the hole is not repaired: ", err)
				}
				b.ReportMetric(float64(r.Sweeps), "cycles")
			}
		})
	}
}
