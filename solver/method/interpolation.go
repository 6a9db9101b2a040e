package method

import (
	"math"
	"math/bits"
)

// interpolation computes the positions of the points of a grid in the next coarser grid, and the weights of
// interpolation that follows the diffusion.
type interpolation struct {
	fine   *Edges
	grid   [3]int // points of the coarser grid
	nested bool   // along every axis that is coarsened
}

func newInterpolation(fine *Edges, grid [3]int) *interpolation {
	return &interpolation{fine: fine, grid: grid, nested: nested(fine.Grid, grid)}
}

// position returns the position of a coarse point on the fine grid; the first fine point has position 0.
func (t *interpolation) position(a, c int) float64 {
	return float64((c+1)*(t.fine.Grid[a]+1))/float64(t.grid[a]+1) - 1
}

// nearest returns the fine point, not on the boundary, nearest to a coarse point.
func (t *interpolation) nearest(a, c int) int {
	f := (2*(c+1)*(t.fine.Grid[a]+1)+t.grid[a]+1)/(2*(t.grid[a]+1)) - 1
	return max(0, min(t.fine.Grid[a]-1, f))
}

// support returns the fine points, not on the boundary, strictly between the neighbours of a coarse point.
func (t *interpolation) support(a, c int) (lo, hi int) {
	nf, nc := t.fine.Grid[a]+1, t.grid[a]+1
	lo = c * nf / nc
	hi = ((c+2)*nf+nc-1)/nc - 1
	return max(0, lo), min(t.fine.Grid[a], hi)
}

// coarseIndex returns the coarse point at or before a fine point, and whether the fine point lies
// between coarse points.
func (t *interpolation) coarseIndex(a, f int) (at int, between bool) {
	nf, nc := t.fine.Grid[a]+1, t.grid[a]+1
	return (f+1)*nc/nf - 1, (f+1)*nc%nf != 0
}

// linear returns the weight of coarse point c at fine point f in linear interpolation.
func (t *interpolation) linear(a, f, c int) float64 {
	nf, nc := t.fine.Grid[a]+1, t.grid[a]+1
	far := (f+1)*nc - (c+1)*nf
	return max(0, 1-math.Abs(float64(far))/float64(nf))
}

// resistance returns the resistance of the line through p along an axis between two positions.
func (t *interpolation) resistance(a int, p [3]int, from, to float64) float64 {
	sum := 0.0
	for i := int(math.Floor(from)); float64(i) < to; i++ {
		length := min(to, float64(i+1)) - max(from, float64(i))
		p[a] = i
		if length > 0 {
			sum += length / t.fine.above(a, p)
		}
	}
	return sum
}

// weights computes the weights of interpolation to fine point p, without the axes of the bit mask
// skip. base is the lower coarse point. w receives the weight of each corner (bit a set: the next
// coarse point along axis a); the weights sum to 1.
//
// On nested grids the value at p is the mean of its neighbours along the axes on which it lies between coarse points,
// weighted by the edges to them, and the same holds for these neighbours: it solves the equation at p except for the
// terms across. On other grids the weights are products over the axes, by resistance.
func (t *interpolation) weights(p [3]int, skip uint, w *[8]float64) (base [3]int) {
	between := uint(0)
	for a := range t.fine.Dim {
		at, off := t.coarseIndex(a, p[a])
		if base[a] = at; off && skip>>a&1 == 0 {
			between |= 1 << a
		}
	}
	*w = [8]float64{}
	if t.nested {
		t.distribute(p, between, 0, 1, w)
		return base
	}
	w[0] = 1
	for a := range t.fine.Dim {
		if between>>a&1 == 0 {
			continue
		}
		first, last := t.position(a, base[a]), t.position(a, base[a]+1)
		low := t.resistance(a, p, first, float64(p[a]))
		part := low / (low + t.resistance(a, p, float64(p[a]), last))
		for corner := range 1 << a {
			w[corner|1<<a] = float64(w[corner] * part)
			w[corner] = float64(w[corner] * (1 - part))
		}
	}
	return base
}

// distribute adds the part of p's weight, for the corner reached along the axes already processed,
// to the weights of the corners.
func (t *interpolation) distribute(p [3]int, between, corner uint, part float64, w *[8]float64) {
	if between == 0 {
		w[corner] += part
		return
	}
	rim := t.fine.onBoundary(p)
	if between&(between-1) == 0 { // one axis is left: its neighbours are corners
		a := bits.TrailingZeros(between)
		low, high := t.conductances(p, a, rim)
		sum := low + high
		w[corner] += float64(part * (low / sum))
		w[corner|1<<a] += float64(part * (high / sum))
		return
	}
	e := t.fine
	var edges [3][2]float64
	sum := 0.0
	for a := range e.Dim {
		if between>>a&1 == 0 {
			continue
		}
		edges[a][0], edges[a][1] = t.conductances(p, a, rim)
		sum += edges[a][0] + edges[a][1]
	}
	for a := range e.Dim {
		if between>>a&1 == 0 {
			continue
		}
		for side := range uint(2) {
			q := p
			q[a] += 2*int(side) - 1
			t.distribute(q, between&^(1<<a), corner|side<<a, float64(part*(edges[a][side]/sum)), w)
		}
	}
}

// conductances returns the conductances from p along an axis, in a unit common to all axes. On the
// boundary both are 1.
func (t *interpolation) conductances(p [3]int, a int, rim bool) (low, high float64) {
	e := t.fine
	if rim {
		return 1, 1
	}
	scale := 1 / float64(e.Spacing[a]*e.Spacing[a])
	i, stride := e.Index(p), 1
	for b := range a {
		stride *= e.Hi[b] - e.Lo[b]
	}
	return float64(scale * e.Diffusion[a][i-stride]), float64(scale * e.Diffusion[a][i])
}
