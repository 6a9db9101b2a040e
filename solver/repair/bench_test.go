package repair_test

import (
	"testing"

	"github.com/p2pdc/p2pdc/solver"
	"github.com/p2pdc/p2pdc/solver/internal/solvertest"
	"github.com/p2pdc/p2pdc/solver/problem"
	"github.com/p2pdc/p2pdc/solver/repair"
)

// BenchmarkSolve repairs one of eight boxes of 64³ points, on one thread.
func BenchmarkSolve(b *testing.B) {
	p := solvertest.Membrane([3]int{128, 128, 128}, 3)
	h := repair.Hole{
		Problem: p, Boxes: []problem.Box{{Hi: [3]int{64, 64, 64}}}, New: solver.New, Tolerance: 1e-6,
		Value: func(idx [3]int) (float64, bool) {
			return max(0, p.Obstacle(p.At(idx[0], idx[1], idx[2]))), true
		},
	}
	for b.Loop() {
		r, err := repair.Solve(h)
		if err != nil || r.Method == "" {
			b.Fatal("the hole is not repaired: ", err)
		}
		b.ReportMetric(float64(r.Sweeps), "cycles")
	}
}
