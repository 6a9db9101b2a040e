package kernel

// The functions of this file execute the contract of Transfer point by point.

func (t *Transfer) referenceRestrict(dst, r []float64, b Box) {
	l := t.fine.Layout
	b.each(func(x, y, z int) {
		v := t.axes[2].sum(z, func(fz int) float64 {
			return t.axes[0].sum(x, func(fx int) float64 {
				return t.axes[1].sum(y, func(fy int) float64 { return r[l.Index(fx, fy, fz)] })
			})
		})
		dst[t.coarse.Layout.Index(x, y, z)] = float64(t.scale * v)
	})
}

// sum returns the weighted sum at coarse point j along the axis.
func (a *axis) sum(j int, r func(i int) float64) float64 {
	s := a.supports[j]
	var v float64
	for i, w := range a.weights[s.firstWeight:][:s.count] {
		term := float64(w * r(s.first+i))
		if i == 0 {
			v = term
			continue
		}
		v += term
	}
	return v
}

func (t *Transfer) referenceProlong(u, e []float64, lower, upper Field, b Box) {
	l := t.fine.Layout
	b.each(func(x, y, z int) {
		i, d := l.Index(x, y, z), l.Dense(x, y, z)
		phi, psi := lower.At(d), upper.At(d)
		if !(phi < u[i] && u[i] < psi) {
			return
		}
		c, scale := t.coarse.Layout.interpolate(e, [3]position{t.axes[0].inCoarse[x], t.axes[1].inCoarse[y],
			t.axes[2].inCoarse[z]})
		u[i] = Clamp(u[i]+float64(scale*c), phi, psi)
	})
}

// interpolate returns the value of u at the position and the factor to multiply it by.
func (l Layout) interpolate(u []float64, at [3]position) (v, scale float64) {
	scale = 1
	for _, s := range at {
		if s.fraction == 0.5 {
			scale *= 0.5
		}
	}
	return at[0].interpolate(func(x int) float64 {
		return at[2].interpolate(func(z int) float64 {
			return at[1].interpolate(func(y int) float64 { return u[l.Index(x, y, z)] })
		})
	}), scale
}

// interpolate combines the values at both ends. Halfway it returns their sum instead of their mean.
func (s position) interpolate(u func(i int) float64) float64 {
	switch s.fraction {
	case 0:
		return u(s.index)
	case 0.5:
		return u(s.index) + u(s.index+1)
	default:
		return float64((1-s.fraction)*u(s.index)) + float64(s.fraction*u(s.index+1))
	}
}
