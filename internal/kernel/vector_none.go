//go:build !amd64 || noasm

package kernel

// vectorKernels: this build has no assembly.
func vectorKernels() []*Kernel { return nil }

func (s *Sweep) vectorTile(instructions, bool, *Norm, []float64, []float64, []float64, int, int, int, int, int) {
	panic("kernel: this build has no assembly")
}

func (s *Sweep) colourTile(instructions, float64, []float64, int, int, int, int, int, int) {
	panic("kernel: this build has no assembly")
}

func (s *Sweep) defectTile(instructions, residualKind, *float64, int, []float64, int, int, int, int, int) {
	panic("kernel: this build has no assembly")
}

func (isa instructions) addRows(out []float64, outStep int, acc []float64, accStep int, in []float64, inStep, nx, ny int, w, scale float64) {
	addRowsPlain(out, outStep, acc, accStep, in, inStep, nx, ny, w, scale)
}

func (isa instructions) restrict(out, rows []float64, stride, nx, ny int) {
	restrictRowsPlain(out, rows, stride, nx, ny)
}

func (isa instructions) mark(words []uint64, step int, rows []float64, n int) {
	markPlain(words, step, rows, n, 0)
}

func (isa instructions) touch(words []uint64, row, phi, psi []float64) {
	touchPlain(words, row, phi, psi, 0)
}

func (isa instructions) prolong(r *prolonged) {
	r.copyRows()
	r.rowsPlain()
}

func (isa instructions) mixFour(dst, a, b, c, d []float64, y, z step) {
	mixFourPlain(dst, a, b, c, d, y, z)
}

func (isa instructions) stretch(r *prolonged) { r.rowPlain() }

func fence() {}
