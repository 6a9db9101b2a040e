package kernel

// Defect writes the VI residual of u at the points of b to r: A·u − f, of which only
// the part below 0 counts where u = φ and only the part above 0 where u = ψ (as
// Residual adds up). Where that leaves nothing, the point being in contact and staying
// there, r is −0, and nowhere else. Both are padded arrays; r's ghosts are not touched.
func (s *Sweep) Defect(r, u []float64, b Box) {
	s.check(b, r, u)
	if b.Empty() {
		return
	}
	if s.kernel.loops == byPoint {
		s.referenceDefect(r, u, b)
		return
	}
	for z := b.Lo[2]; z < b.Hi[2]; z++ {
		s.defectRows(r[s.layout.Index(b.Lo[0], b.Lo[1], z):], s.layout.Row, clampedDefect, u, b.Lo[0], b.Hi[0], b.Lo[1], b.Hi[1], z)
	}
}

// residualKind says what rows of a residual hold.
type defectKind int

const (
	clampedDefect defectKind = iota // the VI residual
	plainDefect                     // A·u − f
	operatorImage                   // A·u
)

// defectRows writes residuals of rows [lo, hi) of plane z to out, a row every step
// values.
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

func (s *Sweep) referenceDefect(dst, u []float64, b Box) {
	for z := b.Lo[2]; z < b.Hi[2]; z++ {
		for y := b.Lo[1]; y < b.Hi[1]; y++ {
			for x := b.Lo[0]; x < b.Hi[0]; x++ {
				i, d := s.layout.Index(x, y, z), s.layout.Dense(x, y, z)
				dst[i] = clampResidual(s.defectAt(u, u, i, d), u[i], s.lower.At(d), s.upper.At(d))
			}
		}
	}
}

// Apply writes A·u at the points of b to dst; the source and the obstacles play no
// part. Both are padded arrays; dst's ghosts are not touched.
func (s *Sweep) Apply(dst, u []float64, b Box) {
	s.check(b, dst, u)
	if b.Empty() {
		return
	}
	if s.kernel.loops == byPoint {
		s.referenceApply(dst, u, b)
		return
	}
	for z := b.Lo[2]; z < b.Hi[2]; z++ {
		s.defectRows(dst[s.layout.Index(b.Lo[0], b.Lo[1], z):], s.layout.Row, operatorImage, u, b.Lo[0], b.Hi[0], b.Lo[1], b.Hi[1], z)
	}
}

func (s *Sweep) referenceApply(dst, u []float64, b Box) {
	for z := b.Lo[2]; z < b.Hi[2]; z++ {
		for y := b.Lo[1]; y < b.Hi[1]; y++ {
			for x := b.Lo[0]; x < b.Hi[0]; x++ {
				i := s.layout.Index(x, y, z)
				dst[i] = positiveZero(s.applyAt(u, u, i, s.layout.Dense(x, y, z)))
			}
		}
	}
}

// Energy adds Σ (v − u)·((A·u − f) + (A·v − f)) over the points of b to e, each
// product rounded and then added exactly, so that the sum depends neither on the boxes
// nor on their order. u and v are padded arrays with the same ghosts. Over the whole
// block and for a symmetric A this is 2·(J(v) − J(u)), J(u) = ½⟨u, A·u⟩ − ⟨f, u⟩ being
// the energy: with d = v − u, ⟨d, A·u − f⟩ + ½⟨d, A·d⟩ = ½⟨d, (A·u − f) + (A·v − f)⟩.
func (s *Sweep) Energy(e *Sum, u, v []float64, b Box) {
	s.check(b, u, v)
	if b.Empty() {
		return
	}
	if s.kernel.loops == byPoint {
		s.referenceEnergy(e, u, v, b)
		return
	}
	var room [2 * residualBatch]float64
	for x := b.Lo[0]; x < b.Hi[0]; x += residualBatch {
		m := min(residualBatch, b.Hi[0]-x)
		rows := residualBatch / m // that are added up at once
		for z := b.Lo[2]; z < b.Hi[2]; z++ {
			for y := b.Lo[1]; y < b.Hi[1]; y += rows {
				n := m * min(rows, b.Hi[1]-y)
				s.energyRows(e, u, v, room[:n], room[n:2*n], x, y, z, m)
			}
		}
	}
}

// energyRows adds the part of as many rows of m points as low and high have room for.
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

func (s *Sweep) referenceEnergy(e *Sum, u, v []float64, b Box) {
	for z := b.Lo[2]; z < b.Hi[2]; z++ {
		for y := b.Lo[1]; y < b.Hi[1]; y++ {
			for x := b.Lo[0]; x < b.Hi[0]; x++ {
				i, d := s.layout.Index(x, y, z), s.layout.Dense(x, y, z)
				e.Add(float64((v[i] - u[i]) * (positiveZero(s.defectAt(u, u, i, d)) + positiveZero(s.defectAt(v, v, i, d)))))
			}
		}
	}
}
