package repair_test

import (
	"slices"
	"testing"

	"github.com/p2pdc/p2pdc/internal/repair"
	"github.com/p2pdc/p2pdc/internal/solvertest"
	"github.com/p2pdc/p2pdc/solver"
	"github.com/p2pdc/p2pdc/solver/iterate"
	"github.com/p2pdc/p2pdc/solver/problem"
	"github.com/p2pdc/p2pdc/solver/verify"
	"github.com/stretchr/testify/require"
)

func TestNextCountsSweepsOn(t *testing.T) {
	u := []float64{1, 2}
	for _, c := range []struct{ most, done, left iterate.Iteration }{
		{10, 4, 6}, {10, 10, 1}, {10, 11, 1}, {0, 7, 0}, {1, 0, 1},
	} {
		part := problem.Partition{Cuts: [3][]int{{0, 1, 2}}}
		n := repair.Next(problem.Config{Rank: 3, MaxSweeps: c.most}, part, u, iterate.Progress{Sweep: c.done, Omega: 1.5})
		require.Equal(t, part, n.Partition)
		require.Equal(t, c.left, n.MaxSweeps)
		require.Equal(t, u, n.Initial)
		require.Equal(t, iterate.Rank(3), n.Rank)
		require.Equal(t, 1.5, n.Omega)
	}
}

// Cuts follow the survivors' boxes. Nobody holds planes that are on their way, and lost peers keep their boxes unless
// the ends have moved.
func TestRecut(t *testing.T) {
	for name, c := range map[string]struct {
		cuts    []int
		held    [][2]int // planes by rank; 0, 0: lost
		want    []int
		missing [][2]int
	}{
		"no move":              {[]int{0, 2, 5, 9}, [][2]int{{0, 2}, {}, {5, 9}}, []int{0, 2, 5, 9}, [][2]int{{}, {2, 5}, {}}},
		"the first":            {[]int{0, 2, 5, 9}, [][2]int{{}, {3, 5}, {5, 9}}, []int{0, 3, 5, 9}, [][2]int{{0, 3}, {}, {}}},
		"the last":             {[]int{0, 2, 5, 9}, [][2]int{{0, 2}, {2, 8}, {}}, []int{0, 2, 8, 9}, [][2]int{{}, {}, {8, 9}}},
		"two, unmoved":         {[]int{0, 3, 4, 9}, [][2]int{{}, {}, {4, 9}}, []int{0, 3, 4, 9}, [][2]int{{0, 3}, {3, 4}, {}}},
		"two, moved":           {[]int{0, 1, 2, 9}, [][2]int{{}, {}, {6, 9}}, []int{0, 3, 6, 9}, [][2]int{{0, 3}, {3, 6}, {}}},
		"planes on their way":  {[]int{0, 2, 5, 9}, [][2]int{{0, 1}, {3, 5}, {}}, []int{0, 3, 5, 9}, [][2]int{{1, 3}, {}, {5, 9}}},
		"on their way to lost": {[]int{0, 2, 5, 9}, [][2]int{{0, 2}, {2, 4}, {}}, []int{0, 2, 4, 9}, [][2]int{{}, {}, {4, 9}}},
	} {
		t.Run(name, func(t *testing.T) {
			for axis := range 3 {
				n := [3]int{3, 3, 3}
				slab := func(planes [2]int) (b problem.Box) {
					if planes[1] == 0 {
						return b
					}
					b.Hi = n
					b.Lo[axis], b.Hi[axis] = planes[0], planes[1]
					return b
				}
				part := problem.Partition{Cuts: [3][]int{{0, 3}, {0, 3}, {0, 3}}}
				want := part
				part.Cuts[axis], want.Cuts[axis] = c.cuts, c.want
				var held, missing []problem.Box
				for r := range c.held {
					held, missing = append(held, slab(c.held[r])), append(missing, slab(c.missing[r]))
				}
				next, got := repair.Recut(part, held)
				require.Equal(t, want, next)
				require.Equal(t, missing, got)
			}
		})
	}
}

// Boxes that are no slabs never change.
func TestRecutOfBoxes(t *testing.T) {
	part := problem.Partition{Cuts: [3][]int{{0, 1, 3}, {0, 2, 4}, {0, 1}}}
	held := []problem.Box{part.Box(0), {}, {}, part.Box(3)}
	next, missing := repair.Recut(part, held)
	require.Equal(t, part, next)
	require.Equal(t, []problem.Box{{}, part.Box(1), part.Box(2), {}}, missing)
}

func TestJoin(t *testing.T) {
	box, held := problem.Box{Hi: [3]int{2, 2, 1}}, problem.Box{Hi: [3]int{2, 1, 1}}
	missing := problem.Box{Lo: [3]int{0, 1, 0}, Hi: [3]int{2, 2, 1}}
	require.Equal(t, []float64{1, 2, 3, 4}, repair.Join(box, held, []float64{1, 2}, missing, []float64{3, 4}))
	require.Equal(t, []float64{1, 2}, repair.Join(held, held, []float64{1, 2}, problem.Box{}, nil))
	require.Equal(t, []float64{3, 4}, repair.Join(missing, problem.Box{}, nil, missing, []float64{3, 4}))
}

// A bound on sweeps holds for all epochs together.
func TestBoundOnSweepsHoldsAcrossEpochs(t *testing.T) {
	l := lossyRuns()[0]
	r := l.of(t, 3)
	r.config.Tolerance, r.config.MaxSweeps = solvertest.Impossible, 12
	r.play(t, loss{event: 200, ranks: []iterate.Rank{1}}, loss{event: 50, ranks: []iterate.Rank{0}})
	require.Equal(t, 3, r.epochs)
	require.Equal(t, iterate.ReachedSweeps, r.reason)
	require.LessOrEqual(t, slices.Max(r.sweeps), iterate.Iteration(12))
	require.GreaterOrEqual(t, slices.Min(r.sweeps), iterate.Iteration(10), "neighbours are an iterate apart")
}

// The residuals of all epochs are relative to the same reference, whatever values an epoch begins with.
func TestReferenceDoesNotDependOnTheStart(t *testing.T) {
	for _, l := range lossyRuns() {
		t.Run(l.name(), func(t *testing.T) {
			r := l.of(t, 3)
			c := r.config
			u := make([]float64, len(r.exact))
			for i, v := range r.exact {
				u[i] = v + 0.01*float64(i%7)
			}
			c.Tolerance = 1e30 // the run ends with its starting vector
			configs := solvertest.ConfigsFor(c)
			for i := range configs {
				own := valuesOf(c.Problem, u, c.Partition.Box(iterate.Rank(i)))
				configs[i] = repair.Next(configs[i], c.Partition, own, iterate.Progress{Sweep: 3})
			}
			n, err := solvertest.NewNetwork(1, solver.New, configs)
			require.NoError(t, err)
			require.NoError(t, n.Run())
			got := n.Assemble(c.Problem)
			require.Equal(t, u, got)
			e, err := verify.Measure(c.Problem, got, nil)
			require.NoError(t, err)
			for _, q := range n.Peers {
				require.InEpsilon(t, e.RelativeResidual, q.Outcome().Residual, 1e-12)
			}
		})
	}
}
