package kernel

import "fmt"

// A restriction fused with sweeps has two steps: RestrictRows sums along y and x as soon as fine rows are final
// (Pass.Final), and RestrictPlanes sums along z when all planes are done. The bits are those of Restrict.

// DefectRows writes the VI residual of u, as Defect does, in rows [lo, hi) of plane z to out. The rows
// of out are contiguous.
func (s *Sweep) DefectRows(out, u []float64, lo, hi, z int) {
	b := Box{Lo: [3]int{0, lo, z}, Hi: [3]int{s.layout.N[0], hi, z + 1}}
	if !s.check(b, u) {
		return
	}
	if s.kernel.loops != byPoint {
		s.defectRows(out[:b.Points()], s.layout.N[0], clampedDefect, u, 0, b.Hi[0], lo, hi, z)
		return
	}
	first := s.layout.Dense(0, lo, z)
	s.layout.eachPoint(b, func(i, d int) { out[d-first] = s.residualAt(u, i, d) })
}

// PartialLen returns the number of values that RestrictRows writes for all fine planes together.
func (t *Transfer) PartialLen() int {
	c := &t.coarse.Layout
	return c.N[0] * c.N[1] * t.fine.Layout.N[2]
}

// RestrictedRows returns the coarse rows [from, to) that RestrictRows computes with fine rows [lo, hi) of a plane:
// those whose last fine row is among them. first is the first fine row that they need, or lo if there are none.
func (t *Transfer) RestrictedRows(lo, hi int) (from, to, first int) {
	a := &t.axes[1]
	from, to = a.complete[lo], a.complete[hi]
	if first, end := a.fineRange(from, to); end > first {
		return from, to, min(lo, first)
	}
	return from, to, lo
}

// RestrictRows sums rows of fine plane z along y and x and writes the coarse rows that
// RestrictedRows names to sums. in holds the fine rows from first to hi, contiguous. room is
// scratch memory for one fine row. Both grids must be whole.
func (t *Transfer) RestrictRows(sums, in, room []float64, lo, hi, z int) {
	f, c := &t.fine.Layout, &t.coarse.Layout
	if t.fine.Global != f.N || t.coarse.Global != c.N {
		panic(fmt.Sprintf("kernel: RestrictRows needs whole grids, not a block of %v points of %v: use Restrict",
			f.N, t.fine.Global))
	}
	from, to, first := t.RestrictedRows(lo, hi)
	if from == to {
		return
	}
	box := Box{Lo: [3]int{0, from, 0}, Hi: [3]int{c.N[0], to, 1}}
	fine := Box{Lo: [3]int{0, first, z}, Hi: [3]int{f.N[0], hi, z + 1}}
	out := sums[(z*c.N[1]+from)*c.N[0]:][:(to-from)*c.N[0]]
	if s := t.axes[1].supports[from]; s.count > 0 { // sumPlane expects the first row that it reads
		in, fine.Lo[1] = in[(s.first-first)*f.N[0]:], s.first
	}
	r := restriction{Transfer: t}
	r.sumPlane(out, in[:(hi-fine.Lo[1])*f.N[0]], f.N[0], room[:f.N[0]], box, fine)
}

// RestrictPlanes writes the restriction of the sums of RestrictRows to the coarse points of b in dst.
func (t *Transfer) RestrictPlanes(dst, sums []float64, b Box) {
	if !check(t.coarse.Layout, b, dst) {
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
