package problem

import (
	"math"

	"github.com/p2pdc/p2pdc/solver/method"
)

// The diffusion between two neighbours is the harmonic mean along the edge, 1/∫(1/κ), as for resistors in series: the
// flux through the edge is then the same on both sides of an interface, and the error stays of second order wherever in
// the edge the interface lies and however thin it is. The integral is Simpson's from κ at the ends and half-way where κ
// changes little. Elsewhere adaptive quadrature halves intervals until the estimates from two and from four parts of
// each agree. A jump costs 50 to 100 evaluations of κ, a smooth change 2 to 30.
const (
	// Three values suffice if those at both ends of each half of the edge differ by less than minChange, and if the
	// mean of 1/κ at the ends differs from 1/κ half-way by less than minCurvature. The latter detects the ends of thin
	// interfaces.
	minChange    = 1.05
	minCurvature = 3e-4
	// maxSmoothChange is the ratio of the values in an interval up to which they count as smooth there.
	maxSmoothChange = 1.25
	// smoothTolerance is the difference of two estimates, relative to the whole integral, at which an interval with
	// smooth values is not halved. The extrapolated value is much more accurate.
	smoothTolerance = 1e-6
	// jumpTolerance is that difference for other intervals. The error at a jump is up to 6 times as large.
	jumpTolerance  = 1e-8
	maxEvaluations = 256 // of κ in an edge; intervals are not halved from there on
)

// edge returns the diffusion between p and the point at distance h along axis a. low and high are κ at the two points.
// If κ is not positive at a place that it evaluates, it returns κ half-way.
func (c Coefficient) edge(p Point, a int, h, low, high float64) float64 {
	half := p
	half[a] += 0.5 * h
	middle := c.Of(half)
	if !(low > 0 && middle > 0 && high > 0) || low == middle && middle == high {
		return middle
	}
	ends := [3]float64{1 / low, 1 / middle, 1 / high}
	if !differs(low, middle, high) {
		return 6 / (ends[0] + float64(4*ends[1]) + ends[2])
	}
	r := resistance{of: c.Of, from: p, axis: a, length: h}
	first, second := r.at(0.25), r.at(0.75)
	r.scale = max(min(first, second), min(max(first, second), ends[1])) // the median: blind to thin layers
	all := r.refine(0, 1, ends, first, second)
	if r.failed {
		return middle
	}
	return 1 / all
}

// differs reports whether κ at the ends and half-way differ too much for Simpson's rule.
func differs(low, middle, high float64) bool {
	least, largest := min(low, middle, high), max(low, middle, high)
	if largest <= (1+minCurvature)*least { // the usual case
		return false
	}
	return max(low, middle) > minChange*min(low, middle) || max(middle, high) > minChange*min(middle, high) ||
		math.Abs(middle/low-2+middle/high) > 2*minCurvature
}

// resistance integrates 1/κ along an edge.
type resistance struct {
	of          Function
	from        Point
	axis        int
	length      float64
	scale       float64 // estimate of the integral over the edge, of length 1
	evaluations int
	failed      bool // κ is not positive at some place
}

// at returns 1/κ at the fraction t of the edge.
func (r *resistance) at(t float64) float64 {
	q := r.from
	q[r.axis] += float64(t * r.length)
	v := r.of(q)
	r.evaluations++
	r.failed = r.failed || !(v > 0)
	return 1 / v
}

// refine returns the integral between two fractions of the edge. v holds the values at the ends and half-way, first and
// second those half-way between these.
func (r *resistance) refine(from, to float64, v [3]float64, first, second float64) float64 {
	size := (to - from) / 12
	once := 2 * size * (v[0] + float64(4*v[1]) + v[2])
	twice := size * (v[0] + float64(4*first) + float64(2*v[1]) + float64(4*second) + v[2])
	difference := twice - once
	tolerance := jumpTolerance
	least, largest := min(v[0], v[1], v[2], first, second), max(v[0], v[1], v[2], first, second)
	if largest <= maxSmoothChange*least {
		tolerance = smoothTolerance
	}
	if math.Abs(difference) <= tolerance*r.scale || r.failed || r.evaluations >= maxEvaluations {
		return twice + difference/15
	}
	half, part := (from+to)/2, (to-from)/8
	low := r.refine(from, half, [3]float64{v[0], first, v[1]}, r.at(from+part), r.at(half-part))
	return low + r.refine(half, to, [3]float64{v[1], second, v[2]}, r.at(half+part), r.at(to-part))
}

// diffusion evaluates κ between the points of a box of the grid, where −1 and N denote the boundary. It returns
// nil if κ is constant.
func (p *Problem) diffusion(lo, hi [3]int) *method.Edges {
	if p.Diffusion.Constant() {
		return nil
	}
	d := method.NewEdges(p.Dimension, p.N, lo, hi, NewStencil(p).h)
	values := make([]float64, len(d.Diffusion[0]))
	each := func(f func(i int, at [3]int, q Point)) {
		p.EachPoint(Box{Lo: lo, Hi: hi}, func(i, x, y, z int, px, py, pz float64) bool {
			f(i, [3]int{x - 1, y - 1, z - 1}, Point{px, py, pz})
			return true
		})
	}
	each(func(i int, _ [3]int, q Point) { values[i] = p.Diffusion.Of(q) })
	stride := [3]int{1, hi[0] - lo[0], (hi[0] - lo[0]) * (hi[1] - lo[1])}
	each(func(i int, at [3]int, q Point) {
		for a := range p.Dimension {
			if at[a]+1 < hi[a] && d.Interior(a, at) {
				d.Diffusion[a][i] = p.Diffusion.edge(q, a, d.Spacing[a], values[i], values[i+stride[a]])
			}
		}
	})
	return d
}

// edges returns κ on the edges of a box and the points around it, as a grid of its own. It returns nil if κ is
// constant.
func (p *Problem) edges(b Box) *method.Edges {
	lo, hi := Grown(b, 1, p.Dimension)
	d := p.diffusion(lo, hi)
	if d == nil {
		return nil
	}
	d.Grid = b.Size()
	d.Lo, d.Hi = method.WholeGrid(p.Dimension, d.Grid)
	return d
}

// Grown returns the corners of b extended by the given number of points along the used axes.
func Grown(b Box, by, dim int) (lo, hi [3]int) {
	for a := range dim {
		b.Lo[a], b.Hi[a] = b.Lo[a]-by, b.Hi[a]+by
	}
	return b.Lo, b.Hi
}

// Between returns κ between grid point idx (1-based), which lies at here, and its neighbour along axis a: the
// next one if side is 1, the previous one if side is −1.
func (s Stencil) Between(idx [3]int, here Point, a, side int) float64 {
	c := s.Problem.Diffusion
	if c.Constant() {
		return c.Value
	}
	if s.half {
		here[a] += float64(side) * s.h[a] / 2
		return c.Of(here)
	}
	from := idx
	if side < 0 {
		from[a]--
	}
	if s.d != nil {
		return s.d.Diffusion[a][s.d.Index([3]int{from[0] - 1, from[1] - 1, from[2] - 1})]
	}
	to := from
	to[a]++
	q := s.Problem.At(from[0], from[1], from[2])
	return c.edge(q, a, s.h[a], c.Of(q), c.Of(s.Problem.At(to[0], to[1], to[2])))
}

// CoarseEdges returns κ for a box of grid l of the hierarchy, averaged from the finest grid. Large boxes are
// evaluated in parts to bound the memory. It returns nil if κ is constant.
func (p *Problem) CoarseEdges(h *method.Hierarchy, l int, lo, hi [3]int) *method.Edges {
	if l == 0 {
		return p.diffusion(lo, hi)
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

// edgePoints bounds the points of a finer grid that are evaluated at once.
const edgePoints = 1 << 22
