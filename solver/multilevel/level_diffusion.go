package multilevel

import (
	"github.com/p2pdc/p2pdc/solver/method"
	"github.com/p2pdc/p2pdc/solver/problem"
)

// levelDiffusion holds the diffusion on the grids of multigrid if it is not constant. Coarse operators and
// operator-dependent interpolation are computed from it. Each peer evaluates all that its blocks need,
// including points beyond their ends. Nothing is exchanged, and the numbers do not depend on the partition.
type levelDiffusion struct {
	lo, hi      [][3]int        // by grid: points around the blocks, within the grid
	distributed []*method.Edges // of the distributed grids and of the gathered part of the next one
	root        []*method.Edges // at the root: of the grids from plan.gathered on
}

// diffusionReach is the number of points around a block that its interpolation depends on.
const diffusionReach = 4

// plan computes the boxes that this peer needs of the distributed grids.
func (c *levelDiffusion) plan(m *multigrid) {
	h, rank := &m.plan.hierarchy, m.peer.config.Rank
	levels := min(m.plan.gathered, h.Coarsest()) + 1
	if m.plan.gathered == 0 {
		levels = 0 // the root evaluates all
	}
	c.lo, c.hi = make([][3]int, levels), make([][3]int, levels)
	for l := levels - 1; l >= 0; l-- {
		lo, hi := problem.Grown(m.plan.window(l, rank), diffusionReach, h.Dim)
		first, last := method.WholeGrid(h.Dim, h.Grids[l])
		var below, above [3]int
		if l+1 < levels {
			below, above = method.FineBox(h.Grids[l], h.Grids[l+1], c.lo[l+1], c.hi[l+1], h.Dim)
		} else {
			below, above = lo, hi
		}
		for a := range 3 {
			lo[a] = max(first[a], min(lo[a], below[a]))
			hi[a] = min(last[a], max(hi[a], above[a]))
		}
		c.lo[l], c.hi[l] = lo, hi
	}
}

// build evaluates the diffusion for a problem, whose block must be built. It is empty if κ is constant.
func (c *levelDiffusion) build(m *multigrid, p *problem.Problem) {
	c.distributed, c.root = make([]*method.Edges, len(c.lo)), nil
	h := &m.plan.hierarchy
	for l := range c.distributed {
		if m.block.Kept == nil {
			break
		}
		if l == 0 {
			c.distributed[l] = m.block.Kept
			continue
		}
		c.distributed[l] = c.distributed[l-1].Coarsen(h.Grids[l], c.lo[l], c.hi[l])
	}
	m.block.Kept = nil
	if !m.distributed() || !m.root() {
		return
	}
	for l := m.plan.gathered; l <= h.Coarsest(); l++ {
		var e *method.Edges
		if l == m.plan.gathered {
			lo, hi := method.WholeGrid(h.Dim, h.Grids[l])
			e = p.CoarseEdges(h, l, lo, hi)
		} else if above := c.root[l-1-m.plan.gathered]; above != nil {
			e = above.CoarsenWhole(h.Grids[l])
		}
		c.root = append(c.root, e)
	}
}

// attach makes the corrections of each grid use the diffusion.
func (c *levelDiffusion) attach(m *multigrid) {
	for i, l := range m.levels {
		l.SetEdges(c.distributed[i])
	}
	for i, l := range m.rootLevels {
		l.SetEdges(c.root[i])
	}
	c.distributed, c.root = nil, nil
}
