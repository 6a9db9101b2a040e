package launch

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"github.com/p2pdc/p2pdc/internal/repair"
	"github.com/p2pdc/p2pdc/obstacle/internal/blocks"
	"github.com/p2pdc/p2pdc/obstacle/internal/rendezvous"
	"github.com/p2pdc/p2pdc/problems/file"
	"github.com/p2pdc/p2pdc/solver"
	"github.com/p2pdc/p2pdc/solver/iterate"
	"github.com/p2pdc/p2pdc/solver/problem"
	"github.com/p2pdc/p2pdc/solver/richardson"
	"github.com/p2pdc/p2pdc/solver/verify"
)

// solved returns a run whose peers hold the solution of a problem, except those in lost.
func solved(t *testing.T, name string, n []int, params []string, parts int, lost ...int) (r *shell, exact []float64) {
	t.Helper()
	spec, err := file.Open(nil, name, params)
	require.NoError(t, err)
	p, err := spec.BuildValid(n)
	require.NoError(t, err)
	s, err := richardson.SolveSequential(p, problem.InTurn, 1e-11, 0, 0, 0)
	require.NoError(t, err)
	cut, err := problem.Boxes(p.N, parts)
	if parts < 4 {
		cut, err = problem.Slabs(p.N, parts, nil)
	}
	require.NoError(t, err)
	r = shellOf(t, &run{Plan: Plan{Problem: p, Spec: rendezvous.Spec{Partition: cut, Tolerance: 1e-8}, Log: zerolog.Nop()}})
	r.u = append([]float64(nil), s.U...)
	r.alloc.Do(func() {})
	for rank := range parts {
		r.members = append(r.members, &member{rank: rank, box: cut.Box(iterate.Rank(rank))})
	}
	r.holes = r.resetHoles(&Outcome{Missing: lost})
	return r, s.U
}

// Lost blocks, adjacent or not, are filled with the solution that the surviving blocks belong to.
func TestFill(t *testing.T) {
	for name, c := range map[string]struct {
		problem string
		n       []int
		params  []string
		parts   int
		lost    []int
		groups  int
	}{
		"a slab":            {"membrane", []int{15}, nil, 3, []int{1}, 1},
		"the first slab":    {"membrane", []int{15}, nil, 3, []int{0}, 1},
		"two slabs":         {"membrane", []int{15}, nil, 3, []int{1, 2}, 1},
		"outer slabs":       {"membrane", []int{15}, nil, 3, []int{0, 2}, 2},
		"a corner":          {"membrane", []int{12}, nil, 8, []int{5}, 1},
		"opposite corners":  {"membrane", []int{12}, nil, 8, []int{0, 7}, 2},
		"three in an angle": {"membrane", []int{12}, nil, 8, []int{0, 1, 2}, 1},
		"all but one":       {"membrane", []int{12}, nil, 8, []int{0, 1, 2, 3, 4, 6, 7}, 1},
		"in a plane":        {"ball2d", []int{31}, nil, 4, []int{1, 2}, 2},
		"on a line":         {"torsion1d", []int{40}, nil, 3, []int{1}, 1},
		"with coefficients": {"varying2d", []int{31}, nil, 4, []int{0, 1, 2}, 1},
		"in a flow":         {"convection2d", []int{31}, nil, 4, []int{3}, 1},
		"two obstacles":     {"torsion", []int{31}, nil, 4, []int{0, 1, 2}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			r, exact := solved(t, c.problem, c.n, c.params, c.parts, c.lost...)
			var o Outcome
			r.fill(t.Context(), &o)
			require.Len(t, o.Filled, c.groups)
			points := 0
			for _, f := range o.Filled {
				require.LessOrEqual(t, float64(f.Residual), r.Tolerance)
				points += f.Points
			}
			want := 0
			for _, rank := range c.lost {
				want += r.members[rank].box.Points()
			}
			require.Equal(t, want, points)
			require.InDeltaSlice(t, exact, r.u, 1e-6)
			for _, m := range r.members {
				if !slices.Contains(r.holes, m.box) {
					require.Equal(t, blocks.Extract(exact, r.Problem.N, m.box), blocks.Extract(r.u, r.Problem.N, m.box),
						"values of a surviving block")
				}
			}
			e, err := verify.Evaluate(r.Problem, r.u, nil)
			require.NoError(t, err)
			require.LessOrEqual(t, e.RelativeResidual, r.Tolerance, "of the whole grid")
		})
	}
}

// Without a surviving block nothing is filled.
func TestFillNeedsASurvivingBlock(t *testing.T) {
	r, _ := solved(t, "membrane", []int{7}, nil, 2, 0, 1)
	before := append([]float64(nil), r.u...)
	var o Outcome
	r.fill(t.Context(), &o)
	require.Empty(t, o.Filled)
	require.Equal(t, before, r.u)
}

// endless is a block of one value whose relaxation does not return before it is released.
type endless struct{ release chan struct{} }

func (endless) Values() int                     { return 1 }
func (endless) Neighbours() []iterate.Neighbour { return nil }
func (endless) Start([]float64)                 {}
func (e endless) Relax(_, _, _ []float64)       { <-e.release }

// A repair whose code does not return is left behind.
func TestRepairThatDoesNotReturn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := endless{make(chan struct{})}
		defer close(e.release)
		p := problem.FromFixedPoint("endless", iterate.FixedPoint{
			Unknowns: 2, Block: func([]int, iterate.Rank) (iterate.Block, error) { return e, nil },
		})
		cut, err := problem.Slabs(p.N, 2, nil)
		require.NoError(t, err)
		begin, asked := time.Now(), time.Minute
		_, err = solveHole(repair.Hole{
			Problem: p, Partition: cut, Boxes: []problem.Box{cut.Box(1)}, New: solver.New, Tolerance: 1e-6,
			Value: func([3]int) (float64, bool) { return 0, true },
		}, func() bool { return time.Since(begin) >= asked })
		require.ErrorIs(t, err, errNoReturn)
		require.InDelta(t, asked+stopsWithin, time.Since(begin), float64(stopsWithin/10))
	})
}
