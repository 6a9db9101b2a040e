package kernel

import "fmt"

// A restriction beside the sweeps (Pass.Done) is done in two steps: SumRows along y and x
// as soon as fine rows are final, and Combine along z when all planes have been summed. The
// bits are those of Restrict.

// DefectRows writes the VI residual of u (as Defect does) in rows [lo, hi) of plane z to
// out, a row after the other without gaps.
func (s *Sweep) DefectRows(out, u []float64, lo, hi, z int) {
	b := Box{Lo: [3]int{0, lo, z}, Hi: [3]int{s.layout.N[0], hi, z + 1}}
	s.check(b, u)
	if b.Empty() {
		return
	}
	if s.kernel.loops != byPoint {
		s.defectRows(out[:b.Points()], s.layout.N[0], clampedDefect, u, 0, b.Hi[0], lo, hi, z)
		return
	}
	for y := lo; y < hi; y++ {
		for x := range b.Hi[0] {
			i, d := s.layout.Index(x, y, z), s.layout.Dense(x, y, z)
			out[(y-lo)*b.Hi[0]+x] = clampResidual(s.defectAt(u, u, i, d), u[i], s.lower.At(d), s.upper.At(d))
		}
	}
}

// Sums is how many values the sums of SumRows are.
func (t *Transfer) PartialLen() int {
	c := &t.coarse.Layout
	return c.N[0] * c.N[1] * t.fine.Layout.N[2]
}

// Summed is the coarse rows [from, to) that SumRows makes of fine rows [lo, hi) of a plane, those whose
// last fine row is among them, and the first fine row that they need, lo if none.
func (t *Transfer) RestrictedRows(lo, hi int) (from, to, first int) {
	a := &t.axes[1]
	from, to, first = a.complete[lo], a.complete[hi], lo
	for _, s := range a.supports[from:to] {
		if s.count > 0 {
			return from, to, min(lo, s.first)
		}
	}
	return from, to, first
}

// SumRows sums rows of fine plane z along y and x into sums, as Summed says: in holds the
// rows from first to hi, whole, one after the other. room is scratch memory of a row. Both
// grids must be whole.
func (t *Transfer) RestrictRows(sums, in, room []float64, lo, hi, z int) {
	f, c := &t.fine.Layout, &t.coarse.Layout
	if t.fine.Global != f.N || t.coarse.Global != c.N {
		panic(fmt.Sprintf("kernel: rows of a block of %v points of a grid of %v to be summed: Restrict can, SumRows cannot", f.N, t.fine.Global))
	}
	from, to, first := t.RestrictedRows(lo, hi)
	if from == to {
		return
	}
	box := Box{Lo: [3]int{0, from, 0}, Hi: [3]int{c.N[0], to, 1}}
	fine := Box{Lo: [3]int{0, first, z}, Hi: [3]int{f.N[0], hi, z + 1}}
	out := sums[(z*c.N[1]+from)*c.N[0]:][:(to-from)*c.N[0]]
	if s := t.axes[1].supports[from]; s.count > 0 { // plane begins with the first row that it needs
		in, fine.Lo[1] = in[(s.first-first)*f.N[0]:], s.first
	}
	r := restriction{Transfer: t}
	r.sumPlane(out, in[:(hi-fine.Lo[1])*f.N[0]], f.N[0], room[:f.N[0]], box, fine)
}

// Combine writes the restriction of what was summed to the coarse points of b in dst.
func (t *Transfer) RestrictPlanes(dst, sums []float64, b Box) {
	check(t.coarse.Layout, b, 0, dst)
	if b.Empty() {
		return
	}
	n := &t.coarse.Layout.N
	r := restriction{Transfer: t, dst: dst, b: b}
	r.clearEmpty(b)
	for z := b.Lo[2]; z < b.Hi[2]; z++ {
		s := t.axes[2].supports[z]
		for fz := s.first; fz < s.end(); fz++ {
			r.addPlane(sums[(fz*n[1]+b.Lo[1])*n[0]+b.Lo[0]:], n[0], b, z, fz)
		}
	}
}
