package richardson

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/p2pdc/p2pdc/internal/solvertest"
	"github.com/p2pdc/p2pdc/solver/iterate"
	"github.com/p2pdc/p2pdc/solver/problem"
	"github.com/stretchr/testify/require"
)

// Obstacles that do not change are evaluated once per block, with the same answer.
func TestSteadyObstacles(t *testing.T) {
	const n, steps = 9, 5
	var calls atomic.Int64
	at := func(t float64) *problem.Problem {
		return &problem.Problem{
			Diffusion: problem.Coefficient{Value: 1}, Source: problem.Coefficient{Value: -t},
			Obstacle: func(q problem.Point) float64 { calls.Add(1); return 0.3 - q[0]*q[0] },
			Upper:    func(q problem.Point) float64 { calls.Add(1); return 0.6 + q[1] },
			Boundary: func(problem.Point) float64 { return 0.4 },
		}
	}
	run := func(steady bool) ([]float64, int64) {
		p := at(1)
		p.Name, p.Dimension, p.N, p.Hi = "steady", 2, [3]int{n, n, 1}, problem.Point{1, 1}
		p.Evolution = &problem.Evolution{End: 1, Steps: steps, At: at, SteadyObstacles: steady}
		calls.Store(0)
		part, err := problem.Slabs(p.N, 2, nil)
		require.NoError(t, err)
		w, err := newNetwork(
			1,
			solvertest.ConfigsFor(
				problem.Config{Problem: p, Partition: part, Scheme: iterate.Synchronous(), Tolerance: 1e-8},
			),
		)
		require.NoError(t, err)
		require.NoError(t, w.Run())
		require.Len(t, w.Steps[0], steps)
		return w.Assemble(p), calls.Load()
	}
	every, often := run(false)
	once, seldom := run(true)
	require.Equal(t, every, once)
	require.Equal(t, int64((steps-1)*2*n*n), often-seldom)
}

// Obstacles that do not change move with the planes: the values that a block keeps are those of its new box.
func TestSteadyObstaclesMoveWithThePlanes(t *testing.T) {
	at := func(t float64) *problem.Problem {
		return &problem.Problem{
			Diffusion: problem.Coefficient{Value: 1}, Source: problem.Coefficient{Value: -8 * t},
			Obstacle: func(q problem.Point) float64 { return 0.2 + q[2]*(1-q[2])*(1+q[0]) - q[1] },
			Boundary: func(q problem.Point) float64 { return 2 + q[2] },
		}
	}
	p := at(1)
	p.Name, p.Dimension, p.N, p.Hi = "steady", 3, [3]int{4, 5, 24}, problem.Point{1, 1, 1}
	p.Evolution = &problem.Evolution{End: 1, Steps: 4, At: at, SteadyObstacles: false}
	want, err := SolveSequential(p, problem.Jacobi, 1e-8, 0, 0, 0)
	require.NoError(t, err)
	p.Evolution.SteadyObstacles = true
	c := problem.Config{
		Problem:       p,
		Partition:     solvertest.SlabsOf(t, p, 3),
		Scheme:        iterate.Synchronous(),
		Tolerance:     1e-8,
		Balance:       true,
		BalanceWindow: time.Millisecond,
	}
	n, err := newNetwork(3, solvertest.ConfigsFor(c))
	require.NoError(t, err)
	n.PointTime = func(rank int, now time.Duration) time.Duration {
		if slow := int(now/(40*time.Millisecond)) % 3; rank == slow {
			return 10 * time.Microsecond
		}
		return time.Microsecond
	}
	require.NoError(t, n.Run())
	solvertest.RequireSameBits(t, want.U, n.Assemble(p))
	moved := requireCover(t, n, c)
	t.Logf("%d planes moved", moved)
	require.Positive(t, moved)
}
