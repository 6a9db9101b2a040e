package problem

import (
	"math"

	"github.com/p2pdc/p2pdc/solver/method"
)

// Diffusion between two neighbours is κ half-way, where κ is smooth. Where it jumps between
// them it is the harmonic mean along the edge, what edges in series have: the flux through
// an edge is the same on both sides of the jump, so that the error stays of second order
// wherever in the edge the jump lies. A jump is told from smooth variation by halving: of a
// smooth κ each half of a short interval has about half the change of the logarithm, of one
// that jumps one half has nearly all, however short the interval.
const (
	// leastJump is the ratio of the values at the ends of half an edge below which none is
	// looked for there.
	leastJump = 1.05
	// jumpKeeps is the part of the change that the half with the jump has, at least.
	jumpKeeps = 0.75
	// jumpHalvings find the place of a jump to 2⁻³³ of an edge. One nearer to an end than a
	// few of these is at that grid point, and no jump of the edge.
	jumpHalvings = 32
)

// edge is the diffusion between p and the point h behind it along axis a, and whether κ
// jumps there; low and high are κ at the two.
func (c Coefficient) edge(p Point, a int, h, low, high float64) (float64, bool) {
	half := p
	half[a] += 0.5 * h
	middle := c.Of(half)
	if !mayJump(low, middle) && !mayJump(middle, high) {
		return middle, false
	}
	at := func(t float64) float64 {
		q := p
		q[a] += t * h
		return c.Of(q)
	}
	first, second := jump(at, 0, 0.5, low, middle), jump(at, 0.5, 1, middle, high)
	if math.IsNaN(first) && math.IsNaN(second) {
		return middle, false
	}
	resistance := 0.0
	for i, place := range [2]float64{first, second} {
		from, to := 0.5*float64(i), 0.5*float64(i)+0.5
		if math.IsNaN(place) {
			resistance += (to - from) / at((from+to)/2)
			continue
		}
		resistance += (place-from)/at((from+place)/2) + (to-place)/at((place+to)/2)
	}
	return 1 / resistance, true
}

// mayJump reports whether two values differ enough for a jump between them.
func mayJump(low, high float64) bool {
	return low > 0 && high > 0 && max(low, high) > leastJump*min(low, high)
}

// jump is the place between from and to at which κ jumps, values low and high being its
// own there; NaN: it does not.
func jump(at func(t float64) float64, from, to, low, high float64) float64 {
	if !mayJump(low, high) {
		return math.NaN()
	}
	change := math.Abs(math.Log(high / low))
	for range jumpHalvings {
		t := (from + to) / 2
		v := at(t)
		if !(v > 0) {
			return math.NaN()
		}
		left, right := math.Abs(math.Log(v/low)), math.Abs(math.Log(high/v))
		if max(left, right) < jumpKeeps*change {
			return math.NaN()
		}
		if left >= right {
			to, high, change = t, v, left
		} else {
			from, low, change = t, v, right
		}
	}
	if near := 4 * (to - from); from < near || 1-to < near {
		return math.NaN()
	}
	return (from + to) / 2
}

// diffusion is κ between the points of a box of a grid.
type diffusion struct {
	*method.Edges
	jumps [3][]bool // at edges of the finest grid; nil: it is a coarser one
}

// diffusion evaluates κ between the points of a box of the grid, −1 and N being the
// boundary; nil: it is constant.
func (p *Problem) diffusion(lo, hi [3]int) *diffusion {
	if p.Diffusion.Constant() {
		return nil
	}
	d := &diffusion{Edges: method.NewEdges(p.Dimension, p.N, lo, hi, NewStencil(p).h)}
	values := make([]float64, len(d.Diffusion[0]))
	for a := range p.Dimension {
		d.jumps[a] = make([]bool, len(values))
	}
	each := func(f func(i int, at [3]int, q Point)) {
		p.EachPlace(Box{Lo: lo, Hi: hi}, func(i, x, y, z int, px, py, pz float64) bool {
			f(i, [3]int{x - 1, y - 1, z - 1}, Point{px, py, pz})
			return true
		})
	}
	each(func(i int, _ [3]int, q Point) { values[i] = p.Diffusion.Of(q) })
	stride := [3]int{1, hi[0] - lo[0], (hi[0] - lo[0]) * (hi[1] - lo[1])}
	each(func(i int, at [3]int, q Point) {
		for a := range p.Dimension {
			if at[a]+1 < hi[a] && d.Interior(a, at) {
				d.Diffusion[a][i], d.jumps[a][i] = p.Diffusion.edge(q, a, d.Spacing[a], values[i], values[i+stride[a]])
			}
		}
	})
	return d
}

// edges are those of all points of a box of the grid and those around it, as a grid of their
// own; nil: κ is constant.
func (p *Problem) edges(b Box) *method.Edges {
	lo, hi := GrownBy(b, 1, p.Dimension)
	d := p.diffusion(lo, hi)
	if d == nil {
		return nil
	}
	d.Grid = b.Size()
	d.Lo, d.Hi = method.WholeGrid(p.Dimension, d.Grid)
	return d.Edges
}

// GrownBy is a box and so many points around it.
func GrownBy(b Box, by, dim int) (lo, hi [3]int) {
	for a := range dim {
		b.Lo[a], b.Hi[a] = b.Lo[a]-by, b.Hi[a]+by
	}
	return b.Lo, b.Hi
}

// Between is κ between grid point idx (1-based), which lies at here, and the next one along
// axis a, or the one before it where side is −1. The place half-way is counted from here.
func (s Stencil) Between(idx [3]int, here Point, a, side int) float64 {
	c := s.P.Diffusion
	if c.Constant() {
		return c.Value
	}
	half := float64(side) * s.h[a] / 2
	from := idx
	if side < 0 {
		from[a]--
	}
	var v float64
	var jumps bool
	if s.half {
		here[a] += half
		return c.Of(here)
	}
	if s.d != nil {
		i := s.d.Index([3]int{from[0] - 1, from[1] - 1, from[2] - 1})
		v, jumps = s.d.Diffusion[a][i], s.d.jumps[a] == nil || s.d.jumps[a][i]
	} else {
		to := from
		to[a]++
		q := s.P.At(from[0], from[1], from[2])
		v, jumps = c.edge(q, a, s.h[a], c.Of(q), c.Of(s.P.At(to[0], to[1], to[2])))
	}
	if side > 0 || jumps {
		return v
	}
	here[a] += half
	return c.Of(here)
}

// CoarseEdges are κ for a box of a grid of the hierarchy, averaged from the finest one's,
// part by part where that would take much memory; nil: κ is constant.
func (p *Problem) CoarseEdges(h *method.Hierarchy, l int, lo, hi [3]int) *method.Edges {
	if l == 0 {
		if d := p.diffusion(lo, hi); d != nil {
			return d.Edges
		}
	}
	if p.Diffusion.Constant() {
		return nil
	}
	n, slow := h.Grids[l], p.Dimension-1
	flo, fhi := method.FineBox(h.Grids[l-1], n, lo, hi, p.Dimension)
	points := (fhi[0] - flo[0]) * (fhi[1] - flo[1]) * (fhi[2] - flo[2])
	if points <= edgePoints || hi[slow]-lo[slow] < 4 {
		return p.CoarseEdges(h, l-1, flo, fhi).Coarsen(n, lo, hi)
	}
	low, high := lo, hi
	low[slow] = (lo[slow] + hi[slow]) / 2
	high[slow] = low[slow] + 1 // a plane in both
	return p.CoarseEdges(h, l, lo, high).Append(p.CoarseEdges(h, l, low, hi))
}

// edgePoints of a finer grid are evaluated at once.
const edgePoints = 1 << 22
