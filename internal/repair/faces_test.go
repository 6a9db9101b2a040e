package repair_test

import (
	"math"
	"slices"
	"testing"

	"github.com/p2pdc/p2pdc/internal/repair"
	"github.com/p2pdc/p2pdc/internal/solvertest"
	"github.com/p2pdc/p2pdc/solver/iterate"
	"github.com/p2pdc/p2pdc/solver/problem"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// beside reports whether a point of the grid shares a face of the grid with a point of one of the boxes.
func beside(boxes []problem.Box, at [3]int) bool {
	for a := range 3 {
		for _, side := range []int{-1, 1} {
			next := at
			next[a] += side
			if slices.ContainsFunc(boxes, func(b problem.Box) bool { return b.Contains(next) }) {
				return true
			}
		}
	}
	return false
}

// The shell has exactly the survivor's points beside the lost boxes, each once, in an order that does not depend on
// that of the lost boxes.
func TestShell(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p, part := anyRun(t)
		lost, held := split(t, part)
		for _, box := range held {
			shell, seen := repair.Shell(p, lost, box), map[[3]int]bool{}
			for _, b := range shell {
				require.False(t, b.Empty())
				for _, idx := range b.Each {
					require.False(t, seen[idx], "twice")
					seen[idx] = true
				}
			}
			for _, idx := range box.Each {
				require.Equal(t, beside(lost, [3]int{idx[0] - 1, idx[1] - 1, idx[2] - 1}), seen[idx], idx)
				delete(seen, idx)
			}
			require.Empty(t, seen, "points outside the box")
			require.Equal(t, shell, repair.Shell(p, rapid.Permutation(lost).Draw(t, "order"), box))
		}
	})
}

// Faces returns what survivors have packed, and nothing else.
func TestFaces(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p, part := anyRun(t)
		lost, held := split(t, part)
		u := make([]float64, p.Points())
		for i := range u {
			u[i] = float64(i)
		}
		f := faces(t, p, u, rapid.Permutation(lost).Draw(t, "order"), held)
		for d, idx := range (problem.Box{Hi: p.N}).Each {
			at := [3]int{idx[0] - 1, idx[1] - 1, idx[2] - 1}
			v, known := f.Value(idx)
			survives := slices.ContainsFunc(held, func(b problem.Box) bool { return b.Contains(at) })
			require.Equal(t, survives && beside(lost, at), known)
			if known {
				require.Equal(t, float64(d), v)
			}
		}
	})
}

func TestFacesRefuse(t *testing.T) {
	lost, box := []problem.Box{{Hi: [3]int{2, 2, 1}}}, problem.Box{Lo: [3]int{2, 0, 0}, Hi: [3]int{4, 2, 1}}
	f := repair.NewFaces(&problem.Problem{}, lost)
	require.ErrorContains(t, f.Add(box, make([]float64, 3)), "there must be 2")
	require.ErrorContains(t, f.Add(box, []float64{0, math.Inf(1)}), "value 1 of box")
	require.ErrorContains(t, f.Add(box, []float64{math.NaN(), 0}), "must be finite")
	_, known := f.Value([3]int{3, 1, 1})
	require.False(t, known)
	values := []float64{7, 8}
	require.NoError(t, f.Add(box, values))
	clear(values)
	v, known := f.Value([3]int{3, 2, 1})
	require.True(t, known)
	require.Equal(t, 8.0, v)
}

// The groups are the connected components of the lost boxes.
func TestGroups(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p, part := anyRun(t)
		lost, _ := split(t, part)
		groups := repair.Groups(lost)
		require.ElementsMatch(t, lost, slices.Concat(groups...))
		owner := map[problem.Box]int{}
		for i, g := range groups {
			reached := []problem.Box{g[0]}
			for j := 0; j < len(reached); j++ {
				for _, b := range g {
					if !slices.Contains(reached, b) && len(repair.Shell(p, []problem.Box{reached[j]}, b)) > 0 {
						reached = append(reached, b)
					}
				}
			}
			require.Len(t, reached, len(g), "connected")
			for _, b := range g {
				owner[b] = i
			}
		}
		for r := range part.Peers() {
			for _, n := range part.Neighbours(iterate.Rank(r)) {
				a, lostA := owner[part.Box(iterate.Rank(r))]
				b, lostB := owner[part.Box(n.Rank)]
				if lostA && lostB {
					require.Equal(t, a, b)
				}
			}
		}
	})
}

// Boxes that share only an edge are solved apart.
func TestBoxesThatShareAnEdge(t *testing.T) {
	a, b := problem.Box{Hi: [3]int{2, 2, 1}}, problem.Box{Lo: [3]int{2, 2, 0}, Hi: [3]int{4, 4, 1}}
	require.Len(t, repair.Groups([]problem.Box{a, b}), 2)
	between := problem.Box{Lo: [3]int{2, 0, 0}, Hi: [3]int{4, 2, 1}}
	require.Len(t, repair.Groups([]problem.Box{a, b, between}), 1)
}

// What is sent about a hole in the middle of a grid is six faces.
func TestShellIsSmall(t *testing.T) {
	p := solvertest.Membrane([3]int{30, 30, 30}, 3)
	part, err := problem.GridOf(p.N, [3]int{3, 3, 3})
	require.NoError(t, err)
	points := 0
	for r := range part.Peers() {
		if r == 13 {
			continue
		}
		for _, b := range repair.Shell(p, []problem.Box{part.Box(13)}, part.Box(iterate.Rank(r))) {
			points += b.Points()
		}
	}
	require.Equal(t, 6*10*10, points)
}
