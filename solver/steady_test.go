package solver

import (
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
)

// Obstacles that do not change are evaluated once a block, and nothing else comes of it.
func TestSteadyObstacles(t *testing.T) {
	const n, steps = 9, 5
	var calls atomic.Int64
	at := func(t float64) *Problem {
		return &Problem{
			Diffusion: Coefficient{Value: 1}, Source: Coefficient{Value: -t},
			Obstacle: func(q Point) float64 { calls.Add(1); return 0.3 - q[0]*q[0] },
			Upper:    func(q Point) float64 { calls.Add(1); return 0.6 + q[1] },
			Boundary: func(Point) float64 { return 0.4 },
		}
	}
	run := func(steady bool) ([]float64, int64) {
		p := at(1)
		p.Name, p.Dimension, p.N, p.Hi = "steady", 2, [3]int{n, n, 1}, Point{1, 1}
		p.Evolution = &Evolution{End: 1, Steps: steps, At: at, SteadyObstacles: steady}
		calls.Store(0)
		part, err := Slabs(p.N, 2, nil)
		require.NoError(t, err)
		w, err := newNetwork(1, configsFor(Config{Problem: p, Partition: part, Scheme: Synchronous(), Tolerance: 1e-8}))
		require.NoError(t, err)
		require.NoError(t, w.run())
		require.Len(t, w.steps[0], steps)
		return w.assemble(p, part), calls.Load()
	}
	every, often := run(false)
	once, seldom := run(true)
	require.Equal(t, every, once)
	require.Equal(t, int64((steps-1)*2*n*n), often-seldom)
}
