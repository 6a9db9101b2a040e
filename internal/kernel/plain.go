package kernel

// The loops of this file are plain Go. Each slice is cut to the length of the row beforehand, which
// lets the compiler omit bounds checks within a row (go build -gcflags=-d=ssa/check_bce shows them).

// relaxSimple relaxes rows [lo, hi) of a plane in the most common case: 3-D, isotropic operator,
// constant source, varying lower obstacle, no upper obstacle.
func (sw *Sweep) relaxSimple(dst, below, src []float64, x0, x1, lo, hi, z int) {
	l := &sw.layout
	row, plane, m := l.Row, l.Plane, x1-x0
	i, at := l.Index(x0, lo, z), l.Dense(x0, lo, z)
	diag, off, step, f := sw.operator.Diag, sw.operator.Off, sw.step, sw.source.Value
	for range hi - lo {
		d, phi := dst[i:][:m], sw.lower.Array[at:][:m]
		east := src[i+1:][:m]
		s, n := src[i-row:][:m], src[i+row:][:m]
		b, t := below[i-plane:][:m], src[i+plane:][:m]
		w, u := src[i-1], src[i]
		for x := range d {
			e := east[x]
			sum := ((w + e) + (s[x] + n[x])) + (b[x] + t[x])
			r := (float64(diag*u) - float64(off*sum)) - f
			v := u - float64(step*r)
			if p := phi[x]; p > v {
				v = p
			}
			d[x] = v
			w, u = u, e
		}
		i += row
		at += l.N[0]
	}
}

// defect writes A·u − f of a row to r.
func (sw *Sweep) defect(r []float64, l *line) {
	switch sw.operator.Form {
	case Isotropic:
		defectIsotropic(r, l, sw.operator.Diag, sw.operator.Off)
	case Constant:
		defectConstant(r, l, &sw.rows.values)
	default:
		sw.defectVariable(r, l)
	}
}

// project replaces A·u − f in dst by the relaxed values of the row.
func project(l *line, step float64) {
	dst := l.dst
	m := len(dst)
	c, phi, psi := l.c[1:][:m], l.phi[:m], l.psi[:m]
	for i, r := range dst {
		v := c[i] - float64(step*r)
		if p := phi[i]; p > v {
			v = p
		}
		if p := psi[i]; p < v {
			v = p
		}
		dst[i] = v
	}
}

// clampRow applies the rules of the VI residual at obstacles to a row.
func clampRow(r []float64, l *line) {
	m := len(r)
	c, phi, psi := l.c[1:][:m], l.phi[:m], l.psi[:m]
	for i, v := range r {
		r[i] = clampResidual(v, c[i], phi[i], psi[i])
	}
}

func defectIsotropic(r []float64, l *line, diag, off float64) {
	m := len(r)
	east := l.c[2:][:m]
	s, n, b, t, f := l.s[:m], l.n[:m], l.b[:m], l.t[:m], l.f[:m]
	w, u := l.c[0], l.c[1]
	for i := range r {
		e := east[i]
		sum := ((w + e) + (s[i] + n[i])) + (b[i] + t[i])
		r[i] = (float64(diag*u) - float64(off*sum)) - f[i]
		w, u = u, e
	}
}

func defectConstant(r []float64, l *line, k *[Directions]float64) {
	m := len(r)
	east := l.c[2:][:m]
	s, n, b, t, f := l.s[:m], l.n[:m], l.b[:m], l.t[:m], l.f[:m]
	w, u := l.c[0], l.c[1]
	for i := range r {
		e := east[i]
		x := float64(k[West]*w) + float64(k[East]*e)
		y := float64(k[South]*s[i]) + float64(k[North]*n[i])
		z := float64(k[Bottom]*b[i]) + float64(k[Top]*t[i])
		r[i] = (float64(k[Center]*u) - ((x + y) + z)) - f[i]
		w, u = u, e
	}
}

func (sw *Sweep) defectVariable(r []float64, l *line) {
	m := len(r)
	kc := sw.coefficient(Center, l)[:m]
	kw, ke := sw.coefficient(West, l)[:m], sw.coefficient(East, l)[:m]
	ks, kn := sw.coefficient(South, l)[:m], sw.coefficient(North, l)[:m]
	kb, kt := sw.coefficient(Bottom, l)[:m], sw.coefficient(Top, l)[:m]
	east := l.c[2:][:m]
	s, n, b, t, f := l.s[:m], l.n[:m], l.b[:m], l.t[:m], l.f[:m]
	w, u := l.c[0], l.c[1]
	for i := range r {
		e := east[i]
		x := float64(kw[i]*w) + float64(ke[i]*e)
		y := float64(ks[i]*s[i]) + float64(kn[i]*n[i])
		z := float64(kb[i]*b[i]) + float64(kt[i]*t[i])
		r[i] = (float64(kc[i]*u) - ((x + y) + z)) - f[i]
		w, u = u, e
	}
}
