package method

import "math"

// Edges holds the diffusion between neighbouring points of a box of a grid. Interpolation and coarse
// operators depend on it where it jumps.
type Edges struct {
	Dim     int
	Grid    [3]int     // points of the whole grid, without its boundary
	Spacing [3]float64 // in any unit
	// Lo and Hi bound the box. The points −1 and Grid lie on the boundary.
	Lo, Hi [3]int
	// Diffusion holds, for each axis and each point of the box, the diffusion between the point and the next
	// one along the axis. Edges out of the box or along the boundary are 0.
	Diffusion [3][]float64
}

// NewEdges returns the edges of a box, all 0.
func NewEdges(dim int, grid, lo, hi [3]int, spacing [3]float64) *Edges {
	e := &Edges{Dim: dim, Grid: grid, Lo: lo, Hi: hi, Spacing: spacing}
	for a := range dim {
		e.Diffusion[a] = make([]float64, (hi[0]-lo[0])*(hi[1]-lo[1])*(hi[2]-lo[2]))
	}
	return e
}

// Index returns the index of a point's edges.
func (e *Edges) Index(p [3]int) int {
	return p[0] - e.Lo[0] + (e.Hi[0]-e.Lo[0])*(p[1]-e.Lo[1]+(e.Hi[1]-e.Lo[1])*(p[2]-e.Lo[2]))
}

// above returns the edge from point p to the next one along an axis.
func (e *Edges) above(a int, p [3]int) float64 { return e.Diffusion[a][e.Index(p)] }

// onBoundary reports whether a point lies on the boundary of the grid.
func (e *Edges) onBoundary(p [3]int) bool {
	for a := range e.Dim {
		if p[a] < 0 || p[a] >= e.Grid[a] {
			return true
		}
	}
	return false
}

// margin is the number of fine points read around those of a coarse box: the ends of coarse edges,
// and the points on which interpolation there depends.
const margin = 4

// FineBox returns the box of the fine grid that Coarsen reads for the box [lo, hi) of a coarse
// grid. fine and coarse are the points of the grids.
func FineBox(fine, coarse, lo, hi [3]int, dim int) (flo, fhi [3]int) {
	fhi = [3]int{1, 1, 1}
	for a := range dim {
		flo[a] = max(-1, lo[a]*(fine[a]+1)/(coarse[a]+1)-margin)
		fhi[a] = min(fine[a]+1, (hi[a]+1)*(fine[a]+1)/(coarse[a]+1)+margin)
	}
	return flo, fhi
}

// Coarsen averages the edges for a box of the next coarser grid. Fine edges along a coarse edge are in series: their
// harmonic mean counts. Parallel lines of fine edges are averaged with the weights of the coarse edge's ends in the
// interpolation at the ends of the line. Constant diffusion is preserved. e must contain FineBox.
func (e *Edges) Coarsen(grid, lo, hi [3]int) *Edges {
	spacing := e.Spacing
	for a := range e.Dim {
		spacing[a] *= float64(e.Grid[a]+1) / float64(grid[a]+1)
	}
	out := NewEdges(e.Dim, grid, lo, hi, spacing)
	t := newInterpolation(e, grid)
	eachPoint(lo, hi, func(p [3]int) {
		for a := range e.Dim {
			if p[a]+1 < hi[a] && out.Interior(a, p) {
				out.Diffusion[a][out.Index(p)] = t.edge(a, p)
			}
		}
	})
	return out
}

// eachPoint calls f for the points lo ≤ p < hi, x fastest.
func eachPoint(lo, hi [3]int, f func(p [3]int)) {
	for z := lo[2]; z < hi[2]; z++ {
		for y := lo[1]; y < hi[1]; y++ {
			for x := lo[0]; x < hi[0]; x++ {
				f([3]int{x, y, z})
			}
		}
	}
}

// CoarsenWhole is Coarsen for the whole of the next coarser grid and its boundary. e must contain its whole grid.
func (e *Edges) CoarsenWhole(grid [3]int) *Edges {
	lo, hi := WholeGrid(e.Dim, grid)
	return e.Coarsen(grid, lo, hi)
}

// Append returns the union of the boxes of e and other, which continues along the slowest axis: the first plane of
// other is the last plane of e, and the edges from there to the next plane are other's.
func (e *Edges) Append(other *Edges) *Edges {
	hi := other.Hi
	out := NewEdges(e.Dim, e.Grid, e.Lo, hi, e.Spacing)
	for a := range e.Dim {
		copy(out.Diffusion[a], e.Diffusion[a])
		copy(out.Diffusion[a][out.Index(other.Lo):], other.Diffusion[a])
	}
	return out
}

// WholeGrid returns the box of all points of a grid and its boundary.
func WholeGrid(dim int, grid [3]int) (lo, hi [3]int) {
	hi = [3]int{1, 1, 1}
	for a := range dim {
		lo[a], hi[a] = -1, grid[a]+1
	}
	return lo, hi
}

// Interior reports whether the edge from p along an axis does not lie on the boundary.
func (e *Edges) Interior(a int, p [3]int) bool {
	if p[a] < -1 || p[a] >= e.Grid[a] {
		return false
	}
	for b := range e.Dim {
		if b != a && (p[b] < 0 || p[b] >= e.Grid[b]) {
			return false
		}
	}
	return true
}

// edge returns the average along an axis of the edge from point c of the coarser grid.
func (t *interpolation) edge(a int, c [3]int) float64 {
	e := t.fine
	first, last := t.position(a, c[a]), t.position(a, c[a]+1)
	ends := [2]int{t.nearest(a, c[a]), t.nearest(a, c[a]+1)}
	if c[a] < 0 {
		ends[0] = ends[1]
	} else if c[a]+1 == t.grid[a] {
		ends[1] = ends[0]
	}
	lo, hi := [3]int{}, [3]int{1, 1, 1}
	for b := range e.Dim {
		lo[b], hi[b] = t.support(b, c[b])
	}
	lo[a], hi[a] = ends[0], ends[0]+1
	sum, all := 0.0, 0.0
	eachPoint(lo, hi, func(p [3]int) {
		linear := 1.0
		for b := range e.Dim {
			if b != a {
				linear *= t.linear(b, p[b], c[b])
			}
		}
		q := p
		q[a] = ends[1]
		if part := t.combineEnds(t.crossWeight(p, a, c), t.crossWeight(q, a, c)); part > 0 {
			sum += float64(part*(last-first)) / t.resistance(a, p, first, last)
		}
		all += linear
	})
	return sum / all
}

// combineEnds returns the weight of a line of edges from the weights at its two ends.
func (t *interpolation) combineEnds(one, other float64) float64 {
	if t.nested {
		return math.Sqrt(float64(one * other))
	}
	return (one + other) / 2
}

// crossWeight returns the weight of coarse point c, or of the next one along axis a if p lies on
// that, in the interpolation to p across axis a.
func (t *interpolation) crossWeight(p [3]int, a int, c [3]int) float64 {
	var w [8]float64
	base := t.weights(p, 1<<a, &w)
	corner := 0
	for b := range t.fine.Dim {
		if b == a {
			continue
		}
		switch c[b] - base[b] {
		case 0:
		case 1:
			corner |= 1 << b
		default:
			return 0
		}
	}
	return w[corner]
}
