package multilevel

import (
	"cmp"

	"github.com/p2pdc/p2pdc/solver/iterate"
	"github.com/p2pdc/p2pdc/solver/method"
	"github.com/p2pdc/p2pdc/solver/problem"
)

// levelPlan is the distribution of the multigrid grids. A coarse point belongs to the peer that owns the
// nearest fine point, so each grid is cut by a partition as well. From grid gathered on, the root holds the
// whole grid: such a grid is small, or some peer would own none of the next one.
type levelPlan struct {
	hierarchy method.Hierarchy
	parts     []problem.Partition // of grids 0 … gathered; the last describes the gather
	gathered  int
}

// gatherPoints is the size up to which a grid is gathered because it is small. A sweep over it takes the root
// about as long as an exchange of ghosts (estimated, 32³).
const gatherPoints = 1 << 15

// maxGatherPoints bounds a grid that is gathered because it cannot be distributed.
const maxGatherPoints = 1 << 22

// planLevels plans the grids of a run. A single peer owns all and gathers nothing.
func planLevels(c *problem.Config) levelPlan {
	p, part, small := c.Problem, c.Partition, cmp.Or(c.GatherPoints, gatherPoints)
	q := p.AtStep(min(1, p.Steps()))
	h := method.NewHierarchy(p.Dimension, p.N, q.Strength())
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

// extend appends the partition of grid l+1 and returns true if the owners of grid l can compute it: every peer
// owns a point, and restriction reads from neighbours only.
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
			if i > 0 && low > cut.Cuts[a][i]-cut.Cuts[a][i-1] ||
				i+2 < len(cut.Cuts[a]) && high > cut.Cuts[a][i+2]-cut.Cuts[a][i+1] {
				return false
			}
		}
	}
	p.parts = append(p.parts[:l+1], next)
	return true
}

// coarseCuts returns the cuts of an axis of the coarse grid.
func coarseCuts(cuts []int, fine, coarse int) []int {
	out := make([]int, len(cuts))
	j := 0
	for i, c := range cuts {
		for j < coarse && method.NearestFine(j, fine, coarse) < c {
			j++
		}
		out[i] = j
	}
	return out
}

// reach returns the number of layers below and above part i of axis a that restriction from grid l to the
// part's coarse points reads: the fine points strictly between the coarse neighbours of each.
func (p *levelPlan) reach(fine, coarse problem.Partition, l, a, i int) (low, high int) {
	nf, nc := p.hierarchy.Grids[l][a]+1, p.hierarchy.Grids[l+1][a]+1
	first := coarse.Cuts[a][i] * nf / nc
	last := ((coarse.Cuts[a][i+1]+1)*nf+nc-1)/nc - 2
	return max(0, fine.Cuts[a][i]-first), max(0, last+1-fine.Cuts[a][i+1])
}

// reaches returns reach along every axis for a rank, or 0 for the last distributed grid.
func (p *levelPlan) reaches(l int, rank iterate.Rank) (low, high [3]int) {
	if l+1 >= len(p.parts) {
		return low, high
	}
	place := p.parts[l].Position(rank)
	for a := range 3 {
		low[a], high[a] = p.reach(p.parts[l], p.parts[l+1], l, a, place[a])
	}
	return low, high
}

// window returns the block of grid l that a rank holds: its own box, extended so that restriction reads only
// the block and its ghosts.
func (p *levelPlan) window(l int, rank iterate.Rank) problem.Box {
	b := p.parts[l].Box(rank)
	low, high := p.reaches(l, rank)
	for a := range 3 {
		b.Lo[a] -= max(0, low[a]-1)
		b.Hi[a] += max(0, high[a]-1)
	}
	return b
}

// maxDepth returns the largest number of layers that an exchange transfers along an axis.
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

// gatherBytes bounds the length of gather and scatter messages.
func (p *levelPlan) gatherBytes() int {
	if p.gathered >= len(p.hierarchy.Grids) {
		return 0
	}
	bytes := 8 * gatherArrays
	for _, n := range p.hierarchy.Grids[p.gathered][:p.hierarchy.Dim] {
		bytes *= n + 2
	}
	return bytes
}

// gatherArrays bounds the number of gathered arrays: values, source, both obstacles.
const gatherArrays = 4
