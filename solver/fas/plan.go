package fas

import (
	"fmt"
	"math/bits"

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
	single    bool     // right-hand sides travel as float32
	factor    [][3]int // by level: spacing in units of the finest grid
}

// leastPart holds, for each number of levels on the regions, the least length of a box in spacings of the replicated level,
// along an axis with several boxes. A level more needs twice the overlap and saves seven eighths of the traffic and of the
// replicated points in three dimensions. The third pays for itself from about 120 points a side on.
var leastPart = [...]int{1, 2, 15}

// newPlan returns the geometry of a run.
func newPlan(c *problem.Config) (*plan, error) {
	p := c.Problem
	g := &plan{hierarchy: method.NewHierarchy(p.Dimension, p.N, p.Strength()), partition: c.Partition}
	g.single = c.Tolerance >= singleFrom
	g.factor = [][3]int{{1, 1, 1}}
	var err error
	for l := range leastPart {
		var f [3]int
		if f, err = g.next(l); err != nil {
			break
		}
		g.depth, g.factor = l+1, append(g.factor, f)
	}
	if g.depth == 0 {
		return nil, err
	}
	return g, nil
}

// next returns the spacing of level l+1, and an error if the level cannot be replicated. Each box needs a point of it; where
// boxes are small, a level less on the regions costs less.
func (g *plan) next(l int) (f [3]int, err error) {
	h := &g.hierarchy
	if l == h.Coarsest() || !h.Nested(l) {
		return f, notHalved(h)
	}
	for a := range f {
		if f[a] = g.factor[l][a]; h.Grids[l][a] != h.Grids[l+1][a] {
			f[a] *= 2
		}
		cuts := g.partition.Cuts[a]
		for i := 1; i < len(cuts) && len(cuts) > 2; i++ {
			if n, least := cuts[i]-cuts[i-1], leastPart[l]*f[a]; n < least {
				return f, fmt.Errorf("fas: part %d of axis %d has %d points; the method needs %d: use fewer peers, or method %s",
					i-1, a, n, least, problem.Schwarz)
			}
		}
	}
	return f, nil
}

// notHalved returns the error for a grid that cannot be halved once, with the nearest numbers of points that can be often.
func notHalved(h *method.Hierarchy) error {
	n := h.Grids[0][0]
	for a := range h.Dim {
		if m, next := h.Grids[0][a], h.Grids[min(1, h.Coarsest())][a]; m != next && m != 2*next+1 {
			n = m
			break
		}
	}
	above := max(3, 1<<bits.Len(uint(n))-1)
	fit := fmt.Sprint(above)
	if below := above / 2; below >= 3 {
		fit = fmt.Sprintf("%d or %d", below, above)
	}
	return fmt.Errorf("fas: %d points an axis cannot be halved: use %s points (--n), or another number one less than a "+
		"multiple of 8, or method %s", n, fit, problem.Schwarz)
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

// ring returns the planes, in indices of the finest grid that begin at 1, on which the ring of a box lies: points of
// the replicated level at least two of its spacings away from the box, or the boundary.
func (g *plan) ring(own problem.Box) (low, high [3]int) {
	high = [3]int{2, 2, 2}
	for a := range g.hierarchy.Dim {
		f, n := g.factor[g.depth][a], g.hierarchy.Grids[0][a]
		low[a] = max(0, own.Lo[a]+1-2*f) / f * f
		high[a] = min(n+1, (own.Hi[a]+3*f-1)/f*f)
	}
	return low, high
}

// part returns the part of level l, at most depth, on the region of a box.
func (g *plan) part(own problem.Box, l int) (p part, err error) {
	low, high := g.ring(own)
	p.Global = g.hierarchy.Grids[l]
	var n [3]int
	for a := range 3 {
		first, last := low[a]/g.factor[l][a], high[a]/g.factor[l][a]
		p.Lo[a] = max(first-1, 0)
		end := min(last, p.Global[a])
		n[a] = end - p.Lo[a]
		p.inner.Lo[a], p.inner.Hi[a] = first-p.Lo[a], min(last-1, p.Global[a])-p.Lo[a]
	}
	p.Layout, err = kernel.NewLayout(g.hierarchy.Dim, n)
	return p, err
}

// ownCoarse returns the points of the replicated level that lie in a box, in indices of that level.
func (g *plan) ownCoarse(own problem.Box) (b problem.Box) {
	for a, f := range g.factor[g.depth] {
		b.Lo[a], b.Hi[a] = (own.Lo[a]+f)/f-1, own.Hi[a]/f
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
