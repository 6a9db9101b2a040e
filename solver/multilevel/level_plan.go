package multilevel

import (
	"github.com/p2pdc/p2pdc/internal/kernel"
	"github.com/p2pdc/p2pdc/solver/iterate"
	"github.com/p2pdc/p2pdc/solver/method"
	"github.com/p2pdc/p2pdc/solver/problem"
)

// levelPlan is who owns what of the grids of multigrid. A coarse point belongs to the
// peer that owns the fine point nearest to it, so each grid is cut by a partition, too.
// From grid gathered on, the root has all of a grid: those grids are small, or somebody
// would own nothing of the next one.
type levelPlan struct {
	hierarchy method.Hierarchy
	parts     []problem.Partition // of grids 0 … gathered; the last is what is gathered
	gathered  int
}

// gatherPoints is the most points of a grid that is gathered because it is small: there
// a sweep takes the root about as long as an exchange of ghosts (estimated, 32³).
const gatherPoints = 1 << 15

// maxGatherPoints bounds what is gathered because it cannot be cut.
const maxGatherPoints = 1 << 22

// planLevels plans the grids of a run. One peer owns everything, and gathers nothing.
func planLevels(c *problem.Config) levelPlan {
	p, part, small := c.Problem, c.Partition, c.GatherPoints
	if small == 0 {
		small = gatherPoints
	}
	q := p.AtStep(min(1, p.Steps()))
	h := method.NewHierarchy(p.Dimension, p.N, q.Strength(), 0)
	out := levelPlan{hierarchy: h, parts: []problem.Partition{part}}
	last := h.Coarsest()
	if part.Peers() == 1 {
		out.gathered = last + 1
		for l := range last {
			n := h.Grids[l+1]
			out.parts = append(out.parts, problem.Partition{Cuts: [3][]int{{0, n[0]}, {0, n[1]}, {0, n[2]}}})
		}
		return out
	}
	for l := range last {
		if l > 0 && boxPoints(h.Grids[l]) <= small || !out.extend(l) {
			break
		}
		out.gathered = l + 1
	}
	out.parts = out.parts[:out.gathered+1]
	return out
}

func boxPoints(n [3]int) int { return n[0] * n[1] * n[2] }

// extends appends the partition of grid l+1, if all of it can be made by the owners of
// grid l: everybody owns something, and what restriction reads lies with neighbours.
func (p *levelPlan) extend(l int) bool {
	fine, coarse := p.hierarchy.Grids[l], p.hierarchy.Grids[l+1]
	cut := p.parts[l]
	var next problem.Partition
	for a := range 3 {
		next.Cuts[a] = coarseCuts(cut.Cuts[a], fine[a], coarse[a])
	}
	if next.Validate(coarse) != nil {
		return false
	}
	for a := range 3 {
		for i := range len(cut.Cuts[a]) - 1 {
			low, high := p.reach(cut, next, l, a, i)
			if l > 0 && max(low, high) > 1 {
				return false // only grid 0 has room for more
			}
			if i > 0 && low > cut.Cuts[a][i]-cut.Cuts[a][i-1] || i+2 < len(cut.Cuts[a]) && high > cut.Cuts[a][i+2]-cut.Cuts[a][i+1] {
				return false
			}
		}
	}
	p.parts = append(p.parts[:l+1], next)
	return true
}

// coarseCuts is where the owners' parts of an axis end among the coarse points.
func coarseCuts(cuts []int, fine, coarse int) []int {
	out := make([]int, len(cuts))
	j := 0
	for i, c := range cuts {
		for j < coarse && nearestFine(j, fine, coarse) < c {
			j++
		}
		out[i] = j
	}
	return out
}

// nearestFine is the fine point nearest to coarse point j, by package method's rule.
func nearestFine(j, fine, coarse int) int {
	at := (j + 1) * (fine + 1)
	near, rest := at/(coarse+1)-1, at%(coarse+1)
	if 2*rest > coarse+1 {
		near++
	}
	return near
}

// reach is how many layers beyond part i of axis a, below and above it, restriction from
// grid l to the coarse points of that part reads: the fine points strictly between the
// coarse neighbours of each.
func (p *levelPlan) reach(fine, coarse problem.Partition, l, a, i int) (low, high int) {
	nf, nc := p.hierarchy.Grids[l][a]+1, p.hierarchy.Grids[l+1][a]+1
	first := coarse.Cuts[a][i] * nf / nc
	last := ((coarse.Cuts[a][i+1]+1)*nf+nc-1)/nc - 2
	return max(0, fine.Cuts[a][i]-first), max(0, last+1-fine.Cuts[a][i+1])
}

// reaches is reach along every axis at the place of a rank; of the last grid that is cut
// there is none.
func (p *levelPlan) reaches(l int, rank iterate.Rank) (low, high [3]int) {
	if l+1 >= len(p.parts) {
		return low, high
	}
	place := p.parts[l].Place(rank)
	for a := range 3 {
		low[a], high[a] = p.reach(p.parts[l], p.parts[l+1], l, a, place[a])
	}
	return low, high
}

// window is the block of grid l that a rank holds: its own box, and so much around it
// that what restriction reads lies in the block or its ghosts.
func (p *levelPlan) window(l int, rank iterate.Rank) problem.Box {
	b := p.parts[l].Box(rank)
	low, high := p.reaches(l, rank)
	for a := range 3 {
		b.Lo[a] -= max(0, low[a]-1)
		b.Hi[a] += max(0, high[a]-1)
	}
	return b
}

// within is a box of the grid in the indices of a window's block.
func within(b, window problem.Box) kernel.Box {
	var out kernel.Box
	for a := range 3 {
		out.Lo[a], out.Hi[a] = b.Lo[a]-window.Lo[a], b.Hi[a]-window.Lo[a]
	}
	return out
}

// deepest is the most layers that an exchange brings along an axis.
func (p *levelPlan) maxDepth(a int) int {
	most := 1
	for l := range len(p.parts) - 1 {
		for i := range len(p.parts[l].Cuts[a]) - 1 {
			low, high := p.reach(p.parts[l], p.parts[l+1], l, a, i)
			most = max(most, low, high)
		}
	}
	return most
}

// gatherBytes is the most that a message takes that gathers a grid, or scatters it.
func (p *levelPlan) gatherBytes() int {
	if p.gathered >= len(p.hierarchy.Grids) {
		return 0
	}
	n := p.hierarchy.Grids[p.gathered]
	points := 1
	for a := range p.hierarchy.Dim {
		points *= n[a] + 2
	}
	return 8 * gatherArrays * points
}

// gatherArrays is how many arrays are gathered at most: values, source, both obstacles.
const gatherArrays = 4
