//go:build !noasm

package kernel

// addRows sets ny rows of nx values of out to scale·(acc + w·in); rows lie so many
// values apart, 0 for an array that is one row.
func (isa instructions) addRows(out []float64, outStep int, acc []float64, accStep int, in []float64, inStep, nx, ny int, w, scale float64) {
	if isa < avx2 || nx == 0 || ny == 0 {
		addRowsPlain(out, outStep, acc, accStep, in, inStep, nx, ny, w, scale)
		return
	}
	_, _, _ = out[(ny-1)*outStep+nx-1], acc[(ny-1)*accStep+nx-1], in[(ny-1)*inStep+nx-1]
	t := tile{
		out: &out[0], c: &acc[0], s: &in[0], count: nx, rows: ny,
		outStep: 8 * outStep, rowStep: 8 * accStep, planeStep: 8 * inStep, step: w, source: scale,
	}
	if isa == avx512 {
		addRowsAVX512(&t.out)
	} else {
		addRowsAVX2(&t.out)
	}
}

// restrict sums ny times three rows of 2·nx + 1 points with the weights 1, 2, 1, along y
// and then x.
func (isa instructions) restrict(out, rows []float64, stride, nx, ny int) {
	if isa < avx2 || nx < 8 { // shorter than a vector
		restrictRowsPlain(out, rows, stride, nx, ny)
		return
	}
	_, _ = out[nx*ny-1], rows[2*ny*stride+2*nx]
	t := tile{
		out: &out[0], outStep: 8 * nx, s: &rows[0], c: &rows[stride], n: &rows[2*stride],
		rowStep: 16 * stride, count: nx, rows: ny,
	}
	if isa == avx512 {
		restrictRowsAVX512(&t.out)
	} else {
		restrictRowsAVX2(&t.out)
	}
}

// prolong corrects rows that begin halfway between two coarse points.
func (isa instructions) prolong(r *prolonged) {
	if isa < avx2 {
		r.rowsPlain()
		return
	}
	t := tile{
		c: &r.u[0], outStep: 8 * r.uStep, phi: &r.phi[0], phiStep: 8 * r.phiStep, psi: &r.psi[0], psiStep: 8 * r.psiStep,
		s: &r.e[0][0], xStep: 8 * r.eStep[0], n: &r.e[1][0], yStep: 8 * r.eStep[1],
		b: &r.e[2][0], zStep: 8 * r.eStep[2], t: &r.e[3][0], planeStep: 8 * r.eStep[3],
		count: r.nx, rows: r.ny, step: r.scale, source: r.scale / 2,
	}
	if isa == avx512 {
		prolongRowsAVX512(&t.out)
	} else {
		prolongRowsAVX2(&t.out)
	}
}
