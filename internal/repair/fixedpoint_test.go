package repair_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/p2pdc/p2pdc/internal/repair"
	"github.com/p2pdc/p2pdc/solver"
	"github.com/p2pdc/p2pdc/solver/iterate"
	"github.com/p2pdc/p2pdc/solver/problem"
)

// ring is a part of x[i] ← (x[i−1] + x[i+3])/2.5 + i, indices modulo the length: every block reads values of several others.
type ring struct {
	cuts []int
	rank int
	n    int
}

func ringOf(n int) iterate.FixedPoint {
	return iterate.FixedPoint{Unknowns: n, Block: func(cuts []int, rank iterate.Rank) (iterate.Block, error) {
		return ring{cuts, int(rank), n}, nil
	}}
}

func (r ring) Values() int       { return r.cuts[r.rank+1] - r.cuts[r.rank] }
func (r ring) Start(x []float64) { x[0] = 1 }

// reads returns the unknowns that a rank reads of others, ascending.
func (r ring) reads(rank int) (out []int) {
	for i := r.cuts[rank]; i < r.cuts[rank+1]; i++ {
		for _, j := range []int{(i + r.n - 1) % r.n, (i + 3) % r.n} {
			if (j < r.cuts[rank] || j >= r.cuts[rank+1]) && !slices.Contains(out, j) {
				out = append(out, j)
			}
		}
	}
	slices.Sort(out)
	return out
}

func (r ring) Neighbours() (out []iterate.Neighbour) {
	own := r.reads(r.rank)
	for q := range len(r.cuts) - 1 {
		n := iterate.Neighbour{Rank: iterate.Rank(q)}
		for at, j := range own {
			if j >= r.cuts[q] && j < r.cuts[q+1] {
				n.Receive = append(n.Receive, at)
			}
		}
		for _, j := range r.reads(q) {
			if j >= r.cuts[r.rank] && j < r.cuts[r.rank+1] {
				n.Send = append(n.Send, j-r.cuts[r.rank])
			}
		}
		if q != r.rank && len(n.Send)+len(n.Receive) > 0 {
			out = append(out, n)
		}
	}
	return out
}

func (r ring) Relax(next, x, ghosts []float64) {
	own := r.reads(r.rank)
	at := func(j int) float64 {
		if j = j % r.n; j >= r.cuts[r.rank] && j < r.cuts[r.rank+1] {
			return x[j-r.cuts[r.rank]]
		}
		return ghosts[slices.Index(own, j)]
	}
	for i := range next {
		k := r.cuts[r.rank] + i
		next[i] = (at(k+r.n-1)+at(k+3))/2.5 + float64(k)
	}
}

// Lost blocks of an iteration are computed from the values of all survivors that they read: exactly from exact values, for one
// lost block, two beside each other and two apart.
func TestLostBlocksOfAnIteration(t *testing.T) {
	const n = 20
	p := problem.FromFixedPoint("ring", ringOf(n))
	s, err := solver.Solve(t.Context(), p, solver.Options{Tolerance: 1e-14, Peers: 2})
	require.NoError(t, err)
	part := problem.Partition{Cuts: [3][]int{{0, 4, 9, 12, n}, {0, 1}, {0, 1}}}
	for _, lost := range [][]int{{1}, {0}, {1, 2}, {0, 2}, {0, 3}} {
		var holes, held []problem.Box
		for r := range part.Peers() {
			if b := part.Box(iterate.Rank(r)); slices.Contains(lost, r) {
				holes = append(holes, b)
			} else {
				held = append(held, b)
			}
		}
		f := repair.NewFaces(p, holes)
		for _, b := range held {
			require.NoError(t, f.Add(b, repair.Pack(p, holes, b, s.U[b.Lo[0]:b.Hi[0]])))
		}
		for _, group := range repair.Groups(holes) {
			fixed, err := repair.Solve(repair.Hole{
				Problem: p, Partition: part, Boxes: group, Value: f.Value, New: solver.New, Tolerance: 1e-10,
			})
			require.NoError(t, err)
			require.Equal(t, problem.FixedPoint, fixed.Method)
			require.Positive(t, fixed.Sweeps)
			require.ErrorContains(t, repair.CheckBound(p, group), "only the user of an iteration")
			for _, b := range group {
				tolerance := 1e-8 * 50
				if len(lost) > 1 { // it may read starting values of another lost block
					tolerance = 50
				}
				require.InDeltaSlice(t, s.U[b.Lo[0]:b.Hi[0]], fixed.Values(b), tolerance, "%v", lost)
			}
		}
	}
	_, err = repair.Solve(repair.Hole{Problem: p, Partition: part, Boxes: []problem.Box{{Hi: [3]int{3, 1, 1}}}})
	require.ErrorContains(t, err, "is no part of the partition")
}
