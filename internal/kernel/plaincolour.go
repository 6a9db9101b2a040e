package kernel

// The loops of this file are plain Go. They relax every other point of a row in place, from index odd on.

func colourIsotropic(l *line, odd int, diag, off, factor float64) {
	m := len(l.s)
	c, s, n, b, t := l.c[:m+2], l.s[:m], l.n[:m], l.b[:m], l.t[:m]
	f, phi, psi := l.f[:m], l.phi[:m], l.psi[:m]
	for i := odd; i < m; i += 2 {
		u := c[i+1]
		sum := ((c[i] + c[i+2]) + (s[i] + n[i])) + (b[i] + t[i])
		r := (float64(diag*u) - float64(off*sum)) - f[i]
		c[i+1] = Clamp(u-float64(factor*r), phi[i], psi[i])
	}
}

func colourConstant(l *line, odd int, k *[Directions]float64, factor float64) {
	m := len(l.s)
	c, s, n, b, t := l.c[:m+2], l.s[:m], l.n[:m], l.b[:m], l.t[:m]
	f, phi, psi := l.f[:m], l.phi[:m], l.psi[:m]
	for i := odd; i < m; i += 2 {
		u := c[i+1]
		x := float64(k[West]*c[i]) + float64(k[East]*c[i+2])
		y := float64(k[South]*s[i]) + float64(k[North]*n[i])
		z := float64(k[Bottom]*b[i]) + float64(k[Top]*t[i])
		r := (float64(k[Center]*u) - ((x + y) + z)) - f[i]
		c[i+1] = Clamp(u-float64(factor*r), phi[i], psi[i])
	}
}

func (sw *Sweep) colourVariable(l *line, odd int, factor float64) {
	m := len(l.s)
	kc := sw.coefficient(Center, l)[:m]
	kw, ke := sw.coefficient(West, l)[:m], sw.coefficient(East, l)[:m]
	ks, kn := sw.coefficient(South, l)[:m], sw.coefficient(North, l)[:m]
	kb, kt := sw.coefficient(Bottom, l)[:m], sw.coefficient(Top, l)[:m]
	c, s, n, b, t := l.c[:m+2], l.s[:m], l.n[:m], l.b[:m], l.t[:m]
	f, phi, psi := l.f[:m], l.phi[:m], l.psi[:m]
	for i := odd; i < m; i += 2 {
		u := c[i+1]
		x := float64(kw[i]*c[i]) + float64(ke[i]*c[i+2])
		y := float64(ks[i]*s[i]) + float64(kn[i]*n[i])
		z := float64(kb[i]*b[i]) + float64(kt[i]*t[i])
		r := (float64(kc[i]*u) - ((x + y) + z)) - f[i]
		c[i+1] = Clamp(u-float64(factor*(r/kc[i])), phi[i], psi[i])
	}
}

// Clamp returns v limited to [phi, psi]. A NaN is returned unchanged.
func Clamp(v, phi, psi float64) float64 {
	if phi > v {
		v = phi
	}
	if psi < v {
		v = psi
	}
	return v
}
