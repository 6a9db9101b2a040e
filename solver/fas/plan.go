package fas

import (
	"fmt"

	"github.com/p2pdc/p2pdc/internal/kernel"
	"github.com/p2pdc/p2pdc/solver/iterate"
	"github.com/p2pdc/p2pdc/solver/method"
	"github.com/p2pdc/p2pdc/solver/problem"
)

// plan is the geometry of a run. All peers compute the same. Levels 0 to depth−1 lie on the region of each peer, level
// depth and the coarser ones on the whole domain at every peer.
type plan struct {
	hierarchy method.Hierarchy
	partition problem.Partition
	depth     int
	single    bool // right-hand sides travel as float32
}

// leastPart holds, for each number of levels on the regions, the least length of a box in spacings of the replicated level,
// along an axis with several boxes. A level more needs twice the overlap and saves seven eighths of the traffic and of the
// replicated points in three dimensions. The third pays for itself from about 120 points a side on.
var leastPart = [...]int{1, 2, 15}

// newPlan returns the geometry of a run.
func newPlan(c *problem.Config) (*plan, error) {
	p := c.Problem.AtStep(min(1, c.Problem.Steps()))
	g := &plan{hierarchy: method.NewHierarchy(p.Dimension, p.N, p.Strength()), partition: c.Partition}
	g.single = c.Tolerance >= singleFrom && p.Diffusion.Constant()
	var err error
	for l := range leastPart {
		if err = g.mayReplicate(l+1, leastPart[l]); err != nil {
			break
		}
		g.depth = l + 1
	}
	if g.depth == 0 {
		return nil, err
	}
	return g, nil
}

// mayReplicate returns an error if level l cannot be replicated. Each box needs a point of it; where boxes are small, a
// level less on the regions costs less.
func (g *plan) mayReplicate(l, leastSpacings int) error {
	if h := &g.hierarchy; l > h.Coarsest() {
		return fmt.Errorf("fas: a grid of %v points is too small for a coarser one; use method %s", h.Grids[0],
			problem.Schwarz)
	}
	for a := range 3 {
		cuts, fine, coarse := g.partition.Cuts[a], g.intervals(0, a), g.intervals(l, a)
		least := (leastSpacings*fine + coarse - 1) / coarse
		for i := 1; i < len(cuts) && len(cuts) > 2; i++ {
			if n := cuts[i] - cuts[i-1]; n < least {
				return fmt.Errorf("fas: part %d of axis %d has %d points; the method needs %d: use fewer peers, or method %s",
					i-1, a, n, least, problem.Schwarz)
			}
		}
	}
	return nil
}

// intervals returns the number of intervals of an axis on level l. The level divides the axis evenly; its points need not
// lie on points of the finer one.
func (g *plan) intervals(l, a int) int { return g.hierarchy.Grids[l][a] + 1 }

// between returns the point of level l at or before point i of level l+1 along an axis, and the weight of the next one in
// linear interpolation between the two.
func (g *plan) between(l, a, i int) (low int, next float64) {
	fine, coarse := g.intervals(l, a), g.intervals(l+1, a)
	at := (i + 1) * fine
	return at/coarse - 1, float64(at%coarse) / float64(coarse)
}

// nested reports whether the points of level l+1 are points of level l.
func (g *plan) nested(l int) bool { return g.hierarchy.Nested(l) }

// weighted is a point of an axis of the finest grid and its weight in a mean.
type weighted struct {
	at     int
	weight float64
}

// finest returns the points of the finest grid whose mean is a value at point i of level l, along an axis.
func (g *plan) finest(l, a, i int) (out []weighted) {
	if l == 0 {
		return []weighted{{i, 1}}
	}
	low, next := g.between(l-1, a, i)
	for side, weight := range [2]float64{1 - next, next} {
		if weight == 0 {
			continue
		}
		for _, q := range g.finest(l-1, a, low+side) {
			out = append(out, weighted{q.at, q.weight * weight})
		}
	}
	return out
}

// part is the part of a level on a region. Its layout includes the ring: the points around the region whose values come
// from their owners. Only the inner points are relaxed.
type part struct {
	kernel.Part
	inner kernel.Box // in own indices
}

// box returns the points of the part in the indices of its grid.
func (p *part) box() problem.Box {
	b := problem.Box{Lo: p.Lo}
	for a, n := range p.Layout.N {
		b.Hi[a] = p.Lo[a] + n
	}
	return b
}

// ring returns the planes of level l, in indices that begin at 1, on which the ring of a box lies: on the replicated level
// at least two spacings away from the box, or the boundary, on a finer one at the same place or next to it outside.
func (g *plan) ring(own problem.Box, l int) (low, high [3]int) {
	high = [3]int{2, 2, 2}
	for a := range g.hierarchy.Dim {
		fine, coarse := g.intervals(0, a), g.intervals(g.depth, a)
		low[a] = max(0, (own.Lo[a]+1)*coarse/fine-2)
		high[a] = min(coarse, (own.Hi[a]*coarse+fine-1)/fine+2)
		for k := g.depth - 1; k >= l; k-- {
			fine, coarse = g.intervals(k, a), g.intervals(k+1, a)
			low[a], high[a] = low[a]*fine/coarse, (high[a]*fine+coarse-1)/coarse
		}
	}
	return low, high
}

// part returns the part of level l, at most depth, on the region of a box.
func (g *plan) part(own problem.Box, l int) (p part, err error) {
	first, last := g.ring(own, l)
	p.Global = g.hierarchy.Grids[l]
	var n [3]int
	for a := range 3 {
		p.Lo[a] = max(first[a]-1, 0)
		end := min(last[a], p.Global[a])
		n[a] = end - p.Lo[a]
		p.inner.Lo[a], p.inner.Hi[a] = first[a]-p.Lo[a], min(last[a]-1, p.Global[a])-p.Lo[a]
	}
	p.Layout, err = kernel.NewLayout(g.hierarchy.Dim, n)
	return p, err
}

// ownCoarse returns the points of the replicated level that lie in a box, in indices of that level.
func (g *plan) ownCoarse(own problem.Box) (b problem.Box) {
	for a := range 3 {
		fine, coarse := g.intervals(0, a), g.intervals(g.depth, a)
		b.Lo[a], b.Hi[a] = own.Lo[a]*coarse/fine, own.Hi[a]*coarse/fine
	}
	return b
}

// ringBoxes returns the points of reader's ring that sender owns, as disjoint boxes of the finest grid. If the two share
// a face, the first box is sender's layer behind it: its values enter reader's residual only.
func (g *plan) ringBoxes(reader, sender iterate.Rank) (out []problem.Box, face bool) {
	own, theirs := g.partition.Box(reader), g.partition.Box(sender)
	for _, n := range g.partition.Neighbours(reader) {
		if n.Rank != sender {
			continue
		}
		b := own
		if a := n.Axis; n.Side < 0 {
			b.Lo[a], b.Hi[a] = own.Lo[a]-1, own.Lo[a]
		} else {
			b.Lo[a], b.Hi[a] = own.Hi[a], own.Hi[a]+1
		}
		out, face = append(out, b), true
	}
	p, err := g.part(own, 0)
	if err != nil {
		return nil, false
	}
	rest := p.box()
	add := func(b problem.Box) {
		for a := range 3 {
			b.Lo[a], b.Hi[a] = max(b.Lo[a], theirs.Lo[a]), min(b.Hi[a], theirs.Hi[a])
		}
		if !b.Empty() {
			out = append(out, b)
		}
	}
	for a := 2; a >= 0; a-- {
		low, high := rest, rest
		low.Hi[a] = p.Lo[a] + p.inner.Lo[a]
		high.Lo[a] = p.Lo[a] + p.inner.Hi[a]
		add(low)
		add(high)
		rest.Lo[a], rest.Hi[a] = low.Hi[a], high.Lo[a]
	}
	return out, face
}

// bytesOf returns the length of the values at boxes.
func bytesOf(boxes []problem.Box) (n int) {
	for _, b := range boxes {
		n += 8 * b.Points()
	}
	return n
}
