package multilevel

import (
	"github.com/p2pdc/p2pdc/solver/method"
	"github.com/p2pdc/p2pdc/solver/problem"
)

// conductors are the diffusion on the grids of multigrid, where it is not constant: what
// coarse operators, and interpolation that follows it, are made from. A peer evaluates all
// that its own blocks need, beyond their ends too, so that nothing has to be exchanged and
// the numbers do not depend on the partition.
type levelDiffusion struct {
	lo, hi      [][3]int        // by grid: points around the blocks that lie in the grid
	distributed []*method.Edges // of grids that are cut, and of what is gathered of the next
	root        []*method.Edges // at the root: of those from plan.gathered on
}

// conductorReach is how many points around a block have to be known for its interpolation.
const diffusionReach = 4

// plan finds what this peer needs of the grids that are cut.
func (c *levelDiffusion) plan(m *multigrid) {
	h, rank := &m.plan.hierarchy, m.peer.config.Rank
	levels := min(m.plan.gathered, h.Coarsest()) + 1
	if m.plan.gathered == 0 {
		levels = 0 // the root evaluates all
	}
	c.lo, c.hi = make([][3]int, levels), make([][3]int, levels)
	for l := levels - 1; l >= 0; l-- {
		lo, hi := problem.GrownBy(m.plan.window(l, rank), diffusionReach, h.Dim)
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

// build makes them for a problem, whose block has been built; nothing where κ is constant.
func (c *levelDiffusion) build(m *multigrid, p *problem.Problem) {
	c.distributed, c.root = make([]*method.Edges, len(c.lo)), nil
	h := &m.plan.hierarchy
	for l := range c.distributed {
		if m.block.D == nil {
			break
		}
		if l == 0 {
			c.distributed[l] = m.block.D.Edges
			continue
		}
		c.distributed[l] = c.distributed[l-1].Coarsen(h.Grids[l], c.lo[l], c.hi[l])
	}
	m.block.D = nil
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

// follow has the corrections of each grid follow the diffusion.
func (c *levelDiffusion) attach(m *multigrid) {
	for l := 0; l+1 < len(m.levels); l++ {
		m.levels[l].SetEdges(m.levels[l+1].Level, c.distributed[l], c.distributed[l+1])
	}
	for i := 0; i+1 < len(m.rootLevels); i++ {
		m.rootLevels[i].SetEdges(m.rootLevels[i+1].Level, c.root[i], c.root[i+1])
	}
	c.distributed, c.root = nil, nil
}
