package method

// Edges are the diffusion between neighbouring points of a box of a grid, and so what
// interpolation and coarser operators have to follow where it jumps.
type Edges struct {
	Dim     int
	Grid    [3]int     // points of the whole grid, without its boundary
	Spacing [3]float64 // of any unit
	// Lo and Hi span the box; points −1 and Grid lie on the boundary.
	Lo, Hi [3]int
	// Of has for every axis, and every point of the box, the diffusion between it and the
	// next point along the axis. What leads out of the box, or along the boundary, is 0.
	Diffusion [3][]float64
}

// NewEdges makes the edges of a box, all 0.
func NewEdges(dim int, grid, lo, hi [3]int, spacing [3]float64) *Edges {
	e := &Edges{Dim: dim, Grid: grid, Lo: lo, Hi: hi, Spacing: spacing}
	for a := range dim {
		e.Diffusion[a] = make([]float64, (hi[0]-lo[0])*(hi[1]-lo[1])*(hi[2]-lo[2]))
	}
	return e
}

// Index is where the edges of a point lie.
func (e *Edges) Index(p [3]int) int {
	return p[0] - e.Lo[0] + (e.Hi[0]-e.Lo[0])*(p[1]-e.Lo[1]+(e.Hi[1]-e.Lo[1])*(p[2]-e.Lo[2]))
}

// above is the edge that leads on from point p along an axis.
func (e *Edges) above(a int, p [3]int) float64 { return e.Diffusion[a][e.Index(p)] }

// onBoundary reports whether a point is no unknown.
func (e *Edges) onBoundary(p [3]int) bool {
	for a := range e.Dim {
		if p[a] < 0 || p[a] >= e.Grid[a] {
			return true
		}
	}
	return false
}

// margin is how many fine points around those that a coarse box lies on are read: two of a
// coarse edge's ends, and what interpolation there depends on.
const margin = 4

// Under is the box of the next finer grid, of the given points, that the edges of a box of
// a coarser one are made from, and the weights of its points.
func FineBox(fine, coarse, lo, hi [3]int, dim int) (flo, fhi [3]int) {
	fhi = [3]int{1, 1, 1}
	for a := range dim {
		flo[a] = max(-1, lo[a]*(fine[a]+1)/(coarse[a]+1)-margin)
		fhi[a] = min(fine[a]+1, (hi[a]+1)*(fine[a]+1)/(coarse[a]+1)+margin)
	}
	return flo, fhi
}

// Coarser averages the edges for a box of the next coarser grid. Along a coarse edge the
// fine ones lie in series: their harmonic mean. Lines of fine edges side by side are
// parallel: the mean of those, each with the part that interpolation gives the coarse
// edge's ends at the line's. Constant diffusion stays as it is. e must hold what Under says.
func (e *Edges) Coarsen(grid, lo, hi [3]int) *Edges {
	spacing := e.Spacing
	for a := range e.Dim {
		spacing[a] *= float64(e.Grid[a]+1) / float64(grid[a]+1)
	}
	out := NewEdges(e.Dim, grid, lo, hi, spacing)
	t := newInterpolation(e, grid)
	for z := lo[2]; z < hi[2]; z++ {
		for y := lo[1]; y < hi[1]; y++ {
			for x := lo[0]; x < hi[0]; x++ {
				p := [3]int{x, y, z}
				i := out.Index(p)
				for a := range e.Dim {
					if p[a]+1 < hi[a] && out.Interior(a, p) {
						out.Diffusion[a][i] = t.edge(a, p)
					}
				}
			}
		}
	}
	return out
}

// Below is Coarser for all of the next coarser grid and its boundary; e holds all of its own.
func (e *Edges) CoarsenWhole(grid [3]int) *Edges {
	lo, hi := WholeGrid(e.Dim, grid)
	return e.Coarsen(grid, lo, hi)
}

// Join is the box of e and of other, which goes on along the slowest axis: its first plane
// is e's last one, whose edges to the next plane are other's.
func (e *Edges) Append(other *Edges) *Edges {
	hi := other.Hi
	out := NewEdges(e.Dim, e.Grid, e.Lo, hi, e.Spacing)
	for a := range e.Dim {
		copy(out.Diffusion[a], e.Diffusion[a])
		copy(out.Diffusion[a][out.Index(other.Lo):], other.Diffusion[a])
	}
	return out
}

// WholeGrid is the box of all points of a grid and its boundary.
func WholeGrid(dim int, grid [3]int) (lo, hi [3]int) {
	hi = [3]int{1, 1, 1}
	for a := range dim {
		lo[a], hi[a] = -1, grid[a]+1
	}
	return lo, hi
}

// Leads reports whether the edge from p along an axis lies off the boundary.
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

// edge is the average along an axis from point c of the coarser grid on.
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
	for z := lo[2]; z < hi[2]; z++ {
		for y := lo[1]; y < hi[1]; y++ {
			for x := lo[0]; x < hi[0]; x++ {
				p := [3]int{x, y, z}
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
			}
		}
	}
	return sum / all
}

// both joins the parts at the two ends of a line of edges.
func (t *interpolation) combineEnds(one, other float64) float64 {
	if t.nested {
		return squareRoot(float64(one * other))
	}
	return (one + other) / 2
}

// part is the weight of coarse point c, or of the next one along axis a where p lies on
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
