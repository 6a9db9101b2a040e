package kernel

import (
	"fmt"
	"math"
)

// Part is a block of a grid: the block's layout, the grid's interior points per axis (1 on unused
// axes) and the index in the grid of the block's own point (0, 0, 0).
type Part struct {
	Layout Layout
	Global [3]int
	Lo     [3]int
}

// Whole returns the Part of a grid that is a single block.
func Whole(l Layout) Part { return Part{Layout: l, Global: l.N} }

// Transfer moves values between two grids of one region, or between a block of each. Each grid divides every axis
// evenly, boundary to boundary. On each axis the grids are nested (N_f = 2·N_c + 1: coarse point X coincides with
// fine point 2X + 1), equal (the axis is not coarsened) or arbitrary. Interpolation is linear on each axis. A
// Transfer is read-only; several goroutines may use it at once on disjoint boxes.
//
// The order of operations: interpolation combines values along y, then z, then x; halfway between two points it takes
// their sum, and multiplies by the power of ½ last. Restriction sums in ascending order along y, then x, then z, with
// each product rounded; on nested axes the weights are 1, 2, 1 and the factor ¼ is applied last.
type Transfer struct {
	fine, coarse Part
	axes         [3]axis
	scale        float64 // factor of restricted values
	halfway      bool    // nested along x, nested or equal along the other axes
	kernel       *Kernel
	positions    positions // positions of the fine points along x
	negativeZero []float64 // a row of −0
}

// NewTransfer returns the transfers between blocks of two grids of the same dimension. The methods panic if a value
// that they need lies neither in the other block nor in its ghosts. k is the variant, Best() if nil.
func NewTransfer(fine, coarse Part, k *Kernel) (*Transfer, error) {
	if k == nil {
		k = Best()
	}
	t := &Transfer{fine: fine, coarse: coarse, scale: 1, kernel: k}
	if fine.Layout.Dim == 0 || fine.Layout.Dim != coarse.Layout.Dim {
		return nil, fmt.Errorf("kernel: a transfer needs grids of the same dimension, not of %d and %d dimensions",
			fine.Layout.Dim, coarse.Layout.Dim)
	}
	for a := range t.axes {
		for _, p := range []Part{fine, coarse} {
			if p.Lo[a] < 0 || p.Global[a] > maxAxis || p.Lo[a] > p.Global[a]-p.Layout.N[a] {
				return nil, fmt.Errorf("kernel: axis %d: a block of %d points from %d on exceeds a grid of %d points",
					a, p.Layout.N[a], p.Lo[a], p.Global[a])
			}
		}
		if a >= fine.Layout.Dim && (fine.Global[a] != 1 || coarse.Global[a] != 1) {
			return nil, fmt.Errorf("kernel: grids of %v and %v points in %d dimensions; unused axes need 1 point",
				fine.Global, coarse.Global, fine.Layout.Dim)
		}
		t.axes[a] = newAxis(fine.Global[a], fine.Lo[a], fine.Layout.N[a], coarse.Global[a], coarse.Lo[a],
			coarse.Layout.N[a])
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

// Restrict writes the restriction of r to the coarse points of b in dst: the transpose of the
// interpolation, scaled so that it preserves the mean (full weighting). The ghosts of r are read
// where they lie within the grid; beyond it r counts as 0. Both are padded arrays.
func (t *Transfer) Restrict(dst, r []float64, b Box) {
	check(t.fine.Layout, Box{}, r)
	if !check(t.coarse.Layout, b, dst) {
		return
	}
	for a := range t.axes {
		first, end := t.axes[a].fineRange(b.Lo[a], b.Hi[a])
		if first < -1 || end > t.axes[a].fine+1 {
			panic(fmt.Sprintf("kernel: coarse points %v need fine points %d to %d of axis %d; the block has %d",
				b, first, end-1, a, t.axes[a].fine))
		}
	}
	if t.kernel.loops == byPoint || !t.restrictFast(dst, r, b) {
		t.referenceRestrict(dst, r, b)
	}
}

// Prolong corrects u at the fine points of b that touch no obstacle (lower < u < upper): u ← u +
// P·e with linear interpolation P, followed by the two projections. u and e are padded; the ghosts
// of e are read. lower and upper are fields of the fine block.
func (t *Transfer) Prolong(u, e []float64, lower, upper Field, b Box) {
	t.ProlongSaving(u, nil, e, lower, upper, b)
}

// ProlongSaving is Prolong and writes the old values of u at the points of b to the padded array
// keep, if it is not nil.
func (t *Transfer) ProlongSaving(u, keep, e []float64, lower, upper Field, b Box) {
	if keep != nil {
		check(t.fine.Layout, b, keep)
	}
	check(t.coarse.Layout, Box{}, e)
	if !check(t.fine.Layout, b, u) {
		return
	}
	for a := range t.axes {
		x := &t.axes[a]
		lo, hi := reach(x.inCoarse[b.Lo[a]:b.Hi[a]])
		if lo < -1 || hi > x.coarse || a >= t.fine.Layout.Dim && (lo < 0 || hi > 0) {
			panic(fmt.Sprintf("kernel: fine points %v lie between coarse points %d and %d of axis %d; the block has %d",
				b, lo, hi, a, x.coarse))
		}
	}
	if t.kernel.loops != byPoint {
		t.prolongFast(u, keep, e, lower, upper, b)
		if keep != nil {
			fence() // keep is written with streaming stores
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

// check panics unless the arrays fit the layout and b lies within its points. It reports whether b contains a point.
func check(l Layout, b Box, arrays ...[]float64) bool {
	if !b.Empty() && !l.holds(b, 0) {
		panic(fmt.Sprintf("kernel: box %v lies outside the block of %v points", b, l.N))
	}
	for _, a := range arrays {
		if len(a) < l.Len() {
			panic(fmt.Sprintf("kernel: a padded array has %d values; the layout needs %d", len(a), l.Len()))
		}
	}
	return !b.Empty()
}
