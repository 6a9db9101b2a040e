package kernel

import "math"

// maxColumns bounds the fine points of a row that are corrected at once: rows that replace constant
// obstacles and rows of interpolated values are on the stack.
const maxColumns = 1 << 10

// prolongation holds some rows of a plane that are being corrected. The steps are distances between rows in values, 0
// for an array of a single row. If every coarse row lies on fine rows or halfway between, e holds the four coarse
// rows around each fine row (rows of −0 where fewer are needed), and the rows begin halfway between two coarse
// points. Otherwise e[0] holds the values interpolated along y and z. Both are to be multiplied by scale.
type prolongation struct {
	u, phi, psi             []float64
	saved                   []float64 // destination of the old values, or nil
	uStep, phiStep, psiStep int
	e                       [4][]float64
	eStep                   [4]int
	nx, ny                  int
	scale                   float64
	columnPositions         []position // positions of the columns
	positions               *positions
	firstColumn             int
	first, last             int // first and last coarse point of e[0]
}

// prolongFast is Prolong by rows.
func (t *Transfer) prolongFast(u, keep, e []float64, lower, upper Field, b Box) {
	var room [3 * maxColumns]float64
	phi, psi := room[:maxColumns], room[maxColumns:2*maxColumns]
	fill(phi, lower, b.Hi[0]-b.Lo[0])
	fill(psi, upper, b.Hi[0]-b.Lo[0])
	x := t.axes[0].inCoarse
	for x0 := b.Lo[0]; x0 < b.Hi[0]; {
		x1 := min(x0+maxColumns, b.Hi[0])
		halves := t.halfway && x[x0].fraction != 0
		if t.halfway && !halves {
			x1 = x0 + 1 // the rest then begins halfway
		}
		r := prolongation{phi: phi, psi: psi, nx: x1 - x0, columnPositions: x[x0:x1], positions: &t.positions,
			firstColumn: x0}
		r.first, r.last = reach(r.columnPositions)
		for z := b.Lo[2]; z < b.Hi[2]; z++ {
			if halves {
				t.prolongPlane(&r, u, keep, e, lower, upper, x0, b.Lo[1], b.Hi[1], z)
				continue
			}
			for y := b.Lo[1]; y < b.Hi[1]; y++ {
				t.setRow(&r, u, keep, lower, upper, x0, y, z)
				r.save()
				r.e[0] = room[2*maxColumns:][:r.last-r.first+1]
				r.scale = t.interpolateRow(r.e[0], e, r.first, y, z)
				t.kernel.loops.stretch(&r)
			}
		}
		x0 = x1
	}
}

// fill writes the first n values of row if the field is a constant.
func fill(row []float64, f Field, n int) {
	if f.Array == nil {
		row = row[:min(n, len(row))]
		for i := range row {
			row[i] = f.Value
		}
	}
}

// save copies the old values of the rows to saved.
func (r *prolongation) save() {
	for y := 0; y < r.ny && r.saved != nil; y++ {
		copy(r.saved[y*r.uStep:][:r.nx], r.u[y*r.uStep:])
	}
}

// setRow sets r to a single row.
func (t *Transfer) setRow(r *prolongation, u, keep []float64, lower, upper Field, x, y, z int) {
	l := t.fine.Layout
	d := l.Dense(x, y, z)
	r.u, r.uStep = u[l.Index(x, y, z):], l.Row
	r.ny = 1
	if keep != nil {
		r.saved = keep[l.Index(x, y, z):]
	}
	if lower.Array != nil {
		r.phi, r.phiStep = lower.Array[d:], l.N[0]
	}
	if upper.Array != nil {
		r.psi, r.psiStep = upper.Array[d:], l.N[0]
	}
}

// prolongPlane corrects rows [lo, hi) of a plane. Rows on a coarse row and rows between two coarse
// rows are processed in separate passes where they alternate.
func (t *Transfer) prolongPlane(r *prolongation, u, keep, e []float64, lower, upper Field, x, lo, hi, z int) {
	l, c := t.fine.Layout, t.coarse.Layout
	every := 1 // distance between rows of the same kind
	if t.axes[1].nested {
		every = 2
	}
	for y := lo; y < min(lo+every, hi); y++ {
		t.setRow(r, u, keep, lower, upper, x, y, z)
		r.ny = (hi - y + every - 1) / every
		r.uStep = every * l.Row
		r.phiStep *= every
		r.psiStep *= every
		ty, tz := t.axes[1].inCoarse[y], t.axes[2].inCoarse[z]
		at := c.Index(t.axes[0].inCoarse[x].index, ty.index, tz.index)
		r.scale = 1
		r.e = [4][]float64{t.negativeZero, t.negativeZero, t.negativeZero, t.negativeZero}
		r.eStep = [4]int{}
		r.e[0], r.eStep[0] = e[at:], c.Row
		if ty.fraction != 0 {
			r.e[1], r.eStep[1] = e[at+c.Row:], c.Row
			r.scale *= 0.5
		}
		if tz.fraction != 0 {
			r.e[2], r.eStep[2] = e[at+c.Plane:], c.Row
			r.scale *= 0.5
			if ty.fraction != 0 {
				r.e[3], r.eStep[3] = e[at+c.Plane+c.Row:], c.Row
			}
		}
		t.kernel.loops.prolong(r)
	}
}

// interpolateRow interpolates along y and z to row, which begins at coarse point x. It returns the
// factor to multiply the row by.
func (t *Transfer) interpolateRow(row, e []float64, x, y, z int) float64 {
	c, ty, tz := t.coarse.Layout, t.axes[1].inCoarse[y], t.axes[2].inCoarse[z]
	at := c.Index(x, ty.index, tz.index)
	isa := t.kernel.loops
	switch {
	case ty.fraction == 0 && tz.fraction == 0:
		copy(row, e[at:])
	case tz.fraction == 0:
		isa.mixFour(row, e[at:], e[at+c.Row:], t.negativeZero, t.negativeZero, ty, tz)
	case ty.fraction == 0:
		isa.mixFour(row, e[at:], e[at+c.Plane:], t.negativeZero, t.negativeZero, tz, ty)
	default:
		isa.mixFour(row, e[at:], e[at+c.Row:], e[at+c.Plane:], e[at+c.Plane+c.Row:], ty, tz)
	}
	return ty.remainingFactor() * tz.remainingFactor()
}

// weights returns the weights of both ends. Halfway they are 1, and remainingFactor applies the factor ½ later.
func (s position) weights() (low, high float64) {
	if s.fraction == 0.5 {
		return 1, 1
	}
	return 1 - s.fraction, s.fraction
}

// positions holds the positions of a row as separate arrays: the bits of the indices, the weights
// of both ends and the remaining factors.
type positions struct{ index, low, high, factor []float64 }

func newPositions(steps []position) (p positions) {
	for _, s := range steps {
		low, high := s.weights()
		p.index = append(p.index, math.Float64frombits(uint64(s.index)))
		p.low, p.high, p.factor = append(p.low, low), append(p.high, high), append(p.factor, s.remainingFactor())
	}
	return p
}

// remainingFactor returns the factor that weights leaves out.
func (s position) remainingFactor() float64 {
	if s.fraction == 0.5 {
		return 0.5
	}
	return 1
}

func mixFourPlain(dst, a, b, c, d []float64, y, z position) {
	m := len(dst)
	a, b, c, d = a[:m], b[:m], c[:m], d[:m]
	yv, yw := y.weights()
	zv, zw := z.weights()
	for i := range dst {
		low := float64(yv*a[i]) + float64(yw*b[i])
		high := float64(yv*c[i]) + float64(yw*d[i])
		dst[i] = float64(zv*low) + float64(zw*high)
	}
}

// rowPlain corrects one row from the values in e[0].
func (r *prolongation) rowPlain() {
	u, phi, psi := r.u[:r.nx], r.phi[:r.nx], r.psi[:r.nx]
	for i, at := range r.columnPositions[:r.nx] {
		if !(phi[i] < u[i] && u[i] < psi[i]) {
			continue
		}
		v := r.e[0][at.index-r.first]
		scale := r.scale
		if at.fraction != 0 {
			low, high := at.weights()
			v = float64(low*v) + float64(high*r.e[0][at.index+1-r.first])
			scale *= at.remainingFactor()
		}
		u[i] = Clamp(u[i]+float64(scale*v), phi[i], psi[i])
	}
}

// rowsPlain corrects rows that begin halfway between two coarse points.
func (r *prolongation) rowsPlain() {
	half := (r.nx + 1) / 2
	for y := range r.ny {
		u, phi, psi := r.u[y*r.uStep:][:r.nx], r.phi[y*r.phiStep:][:r.nx], r.psi[y*r.psiStep:][:r.nx]
		var e [4][]float64
		for i := range e {
			e[i] = r.e[i][y*r.eStep[i]:][:half+1]
		}
		last := (e[0][0] + e[1][0]) + (e[2][0] + e[3][0])
		for i := range half {
			v := (e[0][i+1] + e[1][i+1]) + (e[2][i+1] + e[3][i+1])
			correctPoint(u, phi, psi, 2*i, float64(r.scale/2*(last+v)))
			if 2*i+1 < r.nx {
				correctPoint(u, phi, psi, 2*i+1, float64(r.scale*v))
			}
			last = v
		}
	}
}

// correctPoint adds d to the value at i and projects it, unless it touches an obstacle.
func correctPoint(u, phi, psi []float64, i int, d float64) {
	if p, q := phi[i], psi[i]; p < u[i] && u[i] < q {
		u[i] = Clamp(u[i]+d, p, q)
	}
}
