package problem_test

import (
	"math"
	"sync"
	"testing"

	"github.com/p2pdc/p2pdc/internal/kernel"
	"github.com/p2pdc/p2pdc/internal/solvertest"
	"github.com/p2pdc/p2pdc/solver/problem"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// goroutines is an Executor that runs all calls concurrently.
type goroutines struct{}

func (goroutines) For(n int, f func(i int)) {
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() { f(i) })
	}
	all.Wait()
}

// TestFieldEqualsItsFunction checks a field's values in any executor, and that it has no array if all values
// are equal, even if only a late point or a late share of the rows differs.
func TestFieldEqualsItsFunction(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := solvertest.Membrane([3]int{1, 1, 1}, rapid.IntRange(1, 3).Draw(t, "dimension"))
		for a := range p.Dimension {
			p.N[a] = rapid.IntRange(1, 40).Draw(t, "n")
		}
		odd := p.At(
			rapid.IntRange(1, p.N[0]).Draw(t, "x"),
			rapid.IntRange(1, p.N[1]).Draw(t, "y"),
			rapid.IntRange(1, p.N[2]).Draw(t, "z"),
		)
		f := rapid.SampledFrom([]problem.Function{
			func(problem.Point) float64 { return 3 },
			func(q problem.Point) float64 { return q[0] - 2*q[1] + q[2]*q[2] },
			func(q problem.Point) float64 {
				if q == odd {
					return 1
				}
				return 2
			},
			func(q problem.Point) float64 { return math.Floor(2 * q[max(0, p.Dimension-1)]) },
		}).Draw(t, "function")
		box := problem.Box{Hi: p.N}
		p.Obstacle = f
		if rapid.Bool().Draw(t, "rows") {
			p.Rows.Obstacle = rowOf(f)
		}
		b, err := problem.Discretize(p, box)
		require.NoError(t, err)
		b.Executor = rapid.SampledFrom([]problem.Executor{problem.Sequential{}, solvertest.Backwards{}, goroutines{}}).
			Draw(t, "executor")
		room := make([]float64, rapid.IntRange(0, p.Points()).Draw(t, "room"))
		field, err := problem.FieldOf(b, "obstacle", f, p.Rows.Obstacle, room, kernel.NoLower())
		require.NoError(t, err)
		varies, first := false, f(p.At(1, 1, 1))
		box.Each(func(d int, idx [3]int) bool {
			want := f(p.At(idx[0], idx[1], idx[2]))
			varies = varies || want != first
			if field.At(d) != want {
				require.Equal(t, want, field.At(d), "%v", idx)
			}
			return true
		})
		require.Equal(t, varies, field.Array != nil)
	})
}

func rowOf(f problem.Function) problem.Row {
	return func(dst, x []float64, y, z float64) {
		for i, v := range x {
			dst[i] = f(problem.Point{v, y, z})
		}
	}
}

// TestFieldErrors checks that the error names the first invalid point, in any executor, and that a function
// replaced without its Row is detected.
func TestFieldErrors(t *testing.T) {
	p := solvertest.Membrane([3]int{40, 40, 40}, 3)
	bad := []problem.Point{p.At(7, 3, 9), p.At(1, 1, 30), p.At(40, 40, 40)}
	p.Obstacle = func(q problem.Point) float64 {
		for _, b := range bad {
			if q == b {
				return math.Inf(-1)
			}
		}
		return -q[0]
	}
	l, err := kernel.NewLayout(p.Dimension, p.N)
	require.NoError(t, err)
	for _, e := range []problem.Executor{problem.Sequential{}, solvertest.Backwards{}, goroutines{}} {
		b := &problem.Discretization{Problem: p, Box: problem.Box{Hi: p.N}, Layout: l, Executor: e}
		_, err := problem.FieldOf(b, "obstacle", p.Obstacle, nil, nil, kernel.NoLower())
		require.ErrorIs(t, err, problem.ErrProblem)
		require.ErrorContains(t, err, "obstacle is -Inf at [0.17073170731707")
	}
	p.Obstacle = func(q problem.Point) float64 { return -q[0] }
	p.Rows.Obstacle = rowOf(func(q problem.Point) float64 { return -q[1] })
	_, err = problem.Discretize(p, problem.Box{Hi: p.N})
	require.ErrorContains(t, err, "point by point")
	p.Rows.Obstacle = rowOf(p.Obstacle)
	_, err = problem.Discretize(p, problem.Box{Hi: p.N})
	require.NoError(t, err)
}
