package kernel

// Defect writes the VI residual of u at the points of b to r: A·u − f, of which only the part below 0 counts where u
// = φ and only the part above 0 where u = ψ (as in Residual). r is −0 at points in contact that stay there, where
// nothing of it is left, and nowhere else. Both are padded arrays; the ghosts of r are not written.
func (s *Sweep) Defect(r, u []float64, b Box) {
	if !s.check(b, r, u) {
		return
	}
	if s.kernel.loops == byPoint {
		s.layout.eachPoint(b, func(i, d int) { r[i] = s.residualAt(u, i, d) })
		return
	}
	s.defectBox(r, clampedDefect, u, b)
}

// defectKind selects the values that defectRows writes.
type defectKind int

const (
	clampedDefect defectKind = iota // the VI residual
	plainDefect                     // A·u − f
	operatorImage                   // A·u
)

// defectBox writes values of that kind at the points of b to the padded array out.
func (s *Sweep) defectBox(out []float64, kind defectKind, u []float64, b Box) {
	for z := b.Lo[2]; z < b.Hi[2]; z++ {
		first := s.layout.Index(b.Lo[0], b.Lo[1], z)
		s.defectRows(out[first:], s.layout.Row, kind, u, b.Lo[0], b.Hi[0], b.Lo[1], b.Hi[1], z)
	}
}

// defectRows writes values of that kind in rows [lo, hi) of plane z to out; consecutive rows of out
// are step values apart.
func (s *Sweep) defectRows(out []float64, step int, kind defectKind, u []float64, x0, x1, lo, hi, z int) {
	if s.kernel.loops >= avx2 {
		s.defectTile(s.kernel.loops, kind, &out[0], 8*step, u, x0, x1, lo, hi, z)
		return
	}
	for y := lo; y < hi; y++ {
		l := s.line(nil, u, u, x0, x1, y, z)
		r := out[(y-lo)*step:][:x1-x0]
		if kind == operatorImage {
			l.f = s.rows.positiveZero[:x1-x0]
		}
		s.defect(r, &l)
		if kind == clampedDefect {
			clampRow(r, &l)
			continue
		}
		for i := range r {
			r[i] = positiveZero(r[i])
		}
	}
}

// Apply writes A·u at the points of b to dst. The source and the obstacles have no effect. Both are
// padded arrays; the ghosts of dst are not written.
func (s *Sweep) Apply(dst, u []float64, b Box) {
	if !s.check(b, dst, u) {
		return
	}
	if s.kernel.loops == byPoint {
		s.layout.eachPoint(b, func(i, d int) { dst[i] = positiveZero(s.applyAt(u, u, i, d)) })
		return
	}
	s.defectBox(dst, operatorImage, u, b)
}

// Energy adds Σ (v − u)·((A·u − f) + (A·v − f)) over the points of b to e. Each product is rounded and then added
// exactly, so the sum depends neither on the boxes nor on their order. u and v are padded arrays with equal ghosts.
// Over the whole block and for a symmetric A the sum is 2·(J(v) − J(u)) with the energy
//
//	J(u) = ½⟨u, A·u⟩ − ⟨f, u⟩,
//
// because ⟨d, A·u − f⟩ + ½⟨d, A·d⟩ = ½⟨d, (A·u − f) + (A·v − f)⟩ for d = v − u.
func (s *Sweep) Energy(e *Sum, u, v []float64, b Box) {
	if !s.check(b, u, v) {
		return
	}
	if s.kernel.loops == byPoint {
		s.layout.eachPoint(b, func(i, d int) {
			low, high := positiveZero(s.defectAt(u, u, i, d)), positiveZero(s.defectAt(v, v, i, d))
			e.Add(float64((v[i] - u[i]) * (low + high)))
		})
		return
	}
	var room [2 * residualBatch]float64
	for x := b.Lo[0]; x < b.Hi[0]; x += residualBatch {
		m := min(residualBatch, b.Hi[0]-x)
		rows := residualBatch / m // rows added at once
		for z := b.Lo[2]; z < b.Hi[2]; z++ {
			for y := b.Lo[1]; y < b.Hi[1]; y += rows {
				n := m * min(rows, b.Hi[1]-y)
				s.energyRows(e, u, v, room[:n], room[n:2*n], x, y, z, m)
			}
		}
	}
}

// energyRows adds the terms of rows of m points from (x, y, z) on, as many rows as low and high hold.
func (s *Sweep) energyRows(e *Sum, u, v, low, high []float64, x, y, z, m int) {
	rows := len(low) / m
	s.defectRows(low, m, plainDefect, u, x, x+m, y, y+rows, z)
	s.defectRows(high, m, plainDefect, v, x, x+m, y, y+rows, z)
	for k := range rows {
		i := s.layout.Index(x, y+k, z)
		a, b, l, h := u[i:][:m], v[i:][:m], low[k*m:][:m], high[k*m:][:m]
		for i := range l {
			l[i] = float64((b[i] - a[i]) * (l[i] + h[i]))
		}
	}
	s.kernel.loops.addValues(e, low)
}
