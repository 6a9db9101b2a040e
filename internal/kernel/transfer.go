package kernel

import (
	"fmt"
	"math"
)

// Part is a block of a grid: the block's layout, the grid's interior points per axis (1
// on unused axes) and the index in it of the block's own point (0, 0, 0).
type Part struct {
	Layout Layout
	Global [3]int
	Lo     [3]int
}

// Whole is a grid that is one block.
func Whole(l Layout) Part { return Part{Layout: l, Global: l.N} }

// Transfer carries values between two grids of one region (or between two blocks of
// them), of which each divides every axis evenly, boundary to boundary. Per axis the
// grids are nested (N_f = 2·N_c + 1: coarse point X is fine point 2X + 1), the same (the
// axis is not coarsened), or any two; interpolation is linear per axis. It is read-only
// after it was made and may be used by several goroutines at once on disjoint boxes.
//
// The order of operations: interpolation combines along y, then z, then x; halfway
// between two points it takes their sum, and the product with the power of ½ comes
// last. Restriction sums ascending, along y, then x, then z, each product rounded; on
// nested axes the weights are 1, 2, 1 and the product with ¼ comes last.
type Transfer struct {
	fine, coarse Part
	axes         [3]axis
	scale        float64 // of restricted values
	halfway      bool    // nested along x; along the others nested or the same
	kernel       *Kernel
	positions    positions // of the fine points along x
	negativeZero []float64 // −0
}

// NewTransfer makes the transfers between two whole grids of the same dimension.
func NewTransfer(fine, coarse Layout) (*Transfer, error) {
	return NewTransferPart(Whole(fine), Whole(coarse), nil)
}

// NewTransferPart makes the transfers between blocks of two grids. What a call needs
// must lie in the other block or its ghosts, or the call panics. k is the variant, nil:
// Best().
func NewTransferPart(fine, coarse Part, k *Kernel) (*Transfer, error) {
	if k == nil {
		k = Best()
	}
	t := &Transfer{fine: fine, coarse: coarse, scale: 1, kernel: k}
	if fine.Layout.Dim == 0 || fine.Layout.Dim != coarse.Layout.Dim {
		return nil, fmt.Errorf("kernel: a transfer between grids of %d and %d dimensions", fine.Layout.Dim, coarse.Layout.Dim)
	}
	for a := range t.axes {
		for _, p := range []Part{fine, coarse} {
			if p.Lo[a] < 0 || p.Global[a] > maxAxis || p.Lo[a] > p.Global[a]-p.Layout.N[a] {
				return nil, fmt.Errorf("kernel: a block of %d points from %d on of a grid of %d along axis %d",
					p.Layout.N[a], p.Lo[a], p.Global[a], a)
			}
		}
		if a >= fine.Layout.Dim && (fine.Global[a] != 1 || coarse.Global[a] != 1) {
			return nil, fmt.Errorf("kernel: a transfer between grids of %v and %v points in %d dimensions",
				fine.Global, coarse.Global, fine.Layout.Dim)
		}
		t.axes[a] = newAxis(fine.Global[a], fine.Lo[a], fine.Layout.N[a], coarse.Global[a], coarse.Lo[a], coarse.Layout.N[a])
		t.scale *= t.axes[a].scale
	}
	t.halfway = t.axes[0].nested
	for a := 1; a < 3; a++ {
		t.halfway = t.halfway && (t.axes[a].nested || fine.Global[a] == coarse.Global[a])
	}
	t.positions = newPositions(t.axes[0].inCoarse)
	t.negativeZero = filled(max(fine.Layout.N[0], coarse.Layout.N[0])+2, math.Copysign(0, -1))
	return t, nil
}

// Fine is the layout of the fine block.
func (t *Transfer) Fine() Layout { return t.fine.Layout }

// Coarse is the layout of the coarse block.
func (t *Transfer) Coarse() Layout { return t.coarse.Layout }

// Nested tells whether the coarse points are every other fine point along the axis.
func (t *Transfer) Nested(a int) bool { return t.axes[a].nested }

// Injectable is the largest box of coarse points, ghosts among them, for which Inject
// finds what it reads in the fine block and its ghosts.
func (t *Transfer) Injectable() Box {
	b := t.coarse.Layout.Interior()
	for a := range t.coarse.Layout.Dim {
		x := &t.axes[a]
		held := func(j int) bool {
			lo, hi := reach(x.inFine[j+1 : j+2])
			return lo >= -1 && hi <= x.fine
		}
		b.Lo[a], b.Hi[a] = -1, x.coarse+1
		for b.Lo[a] < b.Hi[a] && !held(b.Lo[a]) {
			b.Lo[a]++
		}
		for b.Hi[a] > b.Lo[a] && !held(b.Hi[a]-1) {
			b.Hi[a]--
		}
	}
	return b
}

// Restrict writes the restriction of r to the coarse points of b in dst: the transpose
// of the interpolation, scaled so that it keeps the mean (full weighting). r's ghosts
// are read where they lie within the grid; beyond it r counts as 0. Both are padded
// arrays.
func (t *Transfer) Restrict(dst, r []float64, b Box) {
	if !t.checkRestrict(dst, r, b) {
		return
	}
	if t.kernel.loops == byPoint || !t.restrictFast(nil, dst, r, b) {
		t.referenceRestrict(dst, r, b)
	}
}

// Inject writes u at the coarse points of b to dst: the value of the coincident fine
// point, or between points that of linear interpolation. b may hold ghosts (−1, N) of
// the coarse block, which at the end of the grid are boundary data.
func (t *Transfer) Inject(dst, u []float64, b Box) {
	check(t.coarse.Layout, b, 1, dst)
	check(t.fine.Layout, Box{}, 0, u)
	if b.Empty() {
		return
	}
	if !within(t.Injectable(), b) {
		panic(fmt.Sprintf("kernel: values for coarse points %v are not all in the fine block, for %v they are", b, t.Injectable()))
	}
	t.referenceInject(dst, u, b)
}

// Prolong corrects u at the fine points of b that touch no obstacle, lower < u < upper:
// u ← u + P·e, P being linear interpolation, and then the two projections. u and e are
// padded; e's ghosts are read. lower and upper are those of the fine block.
func (t *Transfer) Prolong(u, e []float64, lower, upper Field, b Box) {
	t.ProlongSaving(u, nil, e, lower, upper, b)
}

// ProlongKeeping is Prolong that writes to keep, padded, what u was at the points of b. nil:
// it is not kept.
func (t *Transfer) ProlongSaving(u, keep, e []float64, lower, upper Field, b Box) {
	check(t.fine.Layout, b, 0, u)
	if keep != nil {
		check(t.fine.Layout, b, 0, keep)
	}
	check(t.coarse.Layout, Box{}, 0, e)
	if b.Empty() {
		return
	}
	for a := range t.axes {
		x := &t.axes[a]
		if lo, hi := reach(x.inCoarse[b.Lo[a]:b.Hi[a]]); lo < -1 || hi > x.coarse || a >= t.fine.Layout.Dim && (lo < 0 || hi > 0) {
			panic(fmt.Sprintf("kernel: fine points %v lie between coarse points %d and %d of axis %d, the block has %d",
				b, lo, hi, a, x.coarse))
		}
	}
	if t.kernel.loops != byPoint {
		t.prolongFast(u, keep, e, lower, upper, b)
		if keep != nil {
			fence() // after stores past the caches
		}
		return
	}
	if keep != nil {
		copyBox(t.fine.Layout, keep, u, b)
	}
	t.referenceProlong(u, e, lower, upper, b)
}

func copyBox(l Layout, dst, src []float64, b Box) {
	for z := b.Lo[2]; z < b.Hi[2]; z++ {
		for y := b.Lo[1]; y < b.Hi[1]; y++ {
			i := l.Index(b.Lo[0], y, z)
			copy(dst[i:i+b.Hi[0]-b.Lo[0]], src[i:])
		}
	}
}

// RestrictDefect is Restrict of the Defect of u without an array for that: the same
// bits. t's fine block must be that of s, with fine points around all coarse ones of b.
func (s *Sweep) RestrictDefect(dst []float64, t *Transfer, u []float64, b Box) {
	s.check(Box{}, u)
	if t.fine.Layout != s.layout {
		panic(fmt.Sprintf("kernel: a transfer of a block of %v points for one of %v", t.fine.Layout.N, s.layout.N))
	}
	if !t.checkRestrict(dst, u, b) {
		return
	}
	for a := range t.axes {
		if first, end := t.axes[a].fineRange(b.Lo[a], b.Hi[a]); first < 0 || end > s.layout.N[a] {
			panic(fmt.Sprintf("kernel: coarse points %v need the defect at ghost points of axis %d", b, a))
		}
	}
	if s.kernel.loops == byPoint || !t.restrictFast(s, dst, u, b) {
		s.referenceRestrictDefect(dst, t, u, b)
	}
}

func (t *Transfer) checkRestrict(dst, r []float64, b Box) bool {
	check(t.coarse.Layout, b, 0, dst)
	check(t.fine.Layout, Box{}, 0, r)
	if b.Empty() {
		return false
	}
	for a := range t.axes {
		first, end := t.axes[a].fineRange(b.Lo[a], b.Hi[a])
		if first < -1 || end > t.axes[a].fine+1 {
			panic(fmt.Sprintf("kernel: coarse points %v need fine points %d to %d of axis %d, the block has %d",
				b, first, end-1, a, t.axes[a].fine))
		}
	}
	return true
}

// check panics unless the arrays fit the layout and b lies in it and its ghost layers.
func check(l Layout, b Box, ghosts int, arrays ...[]float64) {
	if !b.Empty() && !l.holds(b, ghosts) {
		panic(fmt.Sprintf("kernel: box %v lies outside the block of %v points", b, l.N))
	}
	for _, a := range arrays {
		if len(a) < l.Len() {
			panic(fmt.Sprintf("kernel: a padded array has %d values, the layout needs %d", len(a), l.Len()))
		}
	}
}

// within tells whether b lies in a.
func within(a, b Box) bool {
	for x := range a.Lo {
		if b.Lo[x] < a.Lo[x] || b.Hi[x] > a.Hi[x] {
			return false
		}
	}
	return true
}
