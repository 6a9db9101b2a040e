package kernel

import "unsafe"

// addRows sets ny rows of nx values of out to scale·(acc + w·in). The steps are distances between
// rows in values, 0 for an array of a single row.
func (isa instructionSet) addRows(
	out []float64, outStep int, acc []float64, accStep int, in []float64, inStep, nx, ny int, w, scale float64,
) {
	if isa < avx2 || nx == 0 || ny == 0 {
		addRowsPlain(out, outStep, acc, accStep, in, inStep, nx, ny, w, scale)
		return
	}
	_, _, _ = out[(ny-1)*outStep+nx-1], acc[(ny-1)*accStep+nx-1], in[(ny-1)*inStep+nx-1]
	t := tile{
		out: &out[0], c: &acc[0], s: &in[0], count: nx, rows: ny,
		outStep: 8 * outStep, rowStep: 8 * accStep, planeStep: 8 * inStep, step: w, source: scale,
	}
	isa.run(addRows, &t)
}

// restrict applies the weights 1, 2, 1 along y and then x to ny times three rows of 2·nx + 1 points.
func (isa instructionSet) restrict(out, rows []float64, stride, nx, ny int) {
	if isa < avx2 || nx < 8 { // shorter than a vector
		restrictRowsPlain(out, rows, stride, nx, ny)
		return
	}
	_, _ = out[nx*ny-1], rows[2*ny*stride+2*nx]
	t := tile{
		out: &out[0], outStep: 8 * nx, s: &rows[0], c: &rows[stride], n: &rows[2*stride],
		rowStep: 16 * stride, count: nx, rows: ny,
	}
	isa.run(restrictRows, &t)
}

// prolong corrects rows that begin halfway between two coarse points.
func (isa instructionSet) prolong(r *prolongation) {
	if isa < avx2 {
		r.save()
		r.rowsPlain()
		return
	}
	t := tile{
		c: &r.u[0], rowStep: 8 * r.uStep, phi: &r.phi[0], phiStep: 8 * r.phiStep, psi: &r.psi[0],
		psiStep: 8 * r.psiStep,
		s:       &r.e[0][0], xStep: 8 * r.eStep[0], n: &r.e[1][0], yStep: 8 * r.eStep[1],
		b: &r.e[2][0], zStep: 8 * r.eStep[2], t: &r.e[3][0], planeStep: 8 * r.eStep[3],
		count: r.nx, rows: r.ny, step: r.scale, source: r.scale / 2,
	}
	if r.saved != nil {
		t.out, t.outStep = &r.saved[0], t.rowStep
		if aligned(&t) {
			isa.run(prolongRowsKeeping, &t)
			return
		}
		r.save()
	}
	isa.run(prolongRows, &t)
}

// mixFour interpolates between a and b and between c and d along y, and between the results along z.
func (isa instructionSet) mixFour(dst, a, b, c, d []float64, y, z position) {
	if isa < avx2 {
		mixFourPlain(dst, a, b, c, d, y, z)
		return
	}
	last := len(dst) - 1
	_, _, _, _ = a[last], b[last], c[last], d[last]
	t := tile{out: &dst[0], s: &a[0], n: &b[0], b: &c[0], t: &d[0], count: len(dst), rows: 1}
	t.k[0], t.k[1] = y.weights()
	t.k[2], t.k[3] = z.weights()
	isa.run(mixRows, &t)
}

// stretch corrects one row from the values in e[0].
func (isa instructionSet) stretch(r *prolongation) {
	if isa != avx512 {
		r.rowPlain()
		return
	}
	x := r.positions
	t := tile{
		c: &r.u[0], t: &r.e[0][0], s: &x.low[r.firstColumn], n: &x.high[r.firstColumn], b: &x.factor[r.firstColumn],
		f:   &x.index[r.firstColumn],
		phi: &r.phi[0], psi: &r.psi[0], source: r.scale, odd: r.first, count: r.nx, rows: 1,
	}
	isa.run(stretchRow, &t)
}

// mark sets the bits of values that are −0 in rows of n values; the words of consecutive rows are step apart.
func (isa instructionSet) mark(words []uint64, step int, rows []float64, n int) {
	if isa < avx2 || n < 8 {
		markPlain(words, step, rows, n, 0)
		return
	}
	count := len(rows) / n
	_ = words[(count-1)*step+(n-1)/64]
	t := tile{c: &rows[0], rowStep: 8 * n, out: (*float64)(unsafe.Pointer(&words[0])), outStep: 8 * step, count: n,
		rows: count}
	isa.run(markRows, &t)
	if isa == avx2 { // the AVX2 loop omits a rest of fewer than 8 values
		markPlain(words, step, rows, n, n&^7)
	}
}

// touch sets the bits of the values of a row that are not between φ and ψ.
func (isa instructionSet) touch(words []uint64, row, phi, psi []float64) {
	if isa < avx2 || len(row) < 8 {
		touchPlain(words, row, phi, psi, 0)
		return
	}
	t := tile{c: &row[0], phi: &phi[0], psi: &psi[0], out: (*float64)(unsafe.Pointer(&words[0])), count: len(row),
		rows: 1}
	isa.run(touchRows, &t)
	touchPlain(words, row, phi, psi, len(row)&^7)
}
