//go:build !amd64 || noasm

package kernel

// vectorKernels returns nil: this build has no assembly.
func vectorKernels() []*Kernel { return nil }

func (s *Sweep) vectorTile(instructionSet, bool, *Norm, []float64, []float64, []float64, int, int, int, int, int) {
	panic("kernel: this build has no assembly")
}

func (s *Sweep) colourTile(instructionSet, float64, []float64, int, int, int, int, int, int) {
	panic("kernel: this build has no assembly")
}

func (s *Sweep) defectTile(instructionSet, defectKind, *float64, int, []float64, int, int, int, int, int) {
	panic("kernel: this build has no assembly")
}

func (isa instructionSet) addRows(out []float64, outStep int, acc []float64, accStep int, in []float64, inStep, nx,
	ny int, w, scale float64) {
	addRowsPlain(out, outStep, acc, accStep, in, inStep, nx, ny, w, scale)
}

func (isa instructionSet) restrict(out, rows []float64, stride, nx, ny int) {
	restrictRowsPlain(out, rows, stride, nx, ny)
}

func (isa instructionSet) mark(words []uint64, step int, rows []float64, n int) {
	markPlain(words, step, rows, n, 0)
}

func (isa instructionSet) touch(words []uint64, row, phi, psi []float64) {
	touchPlain(words, row, phi, psi, 0)
}

func (isa instructionSet) prolong(r *prolongation) {
	r.save()
	r.rowsPlain()
}

func (isa instructionSet) mixFour(dst, a, b, c, d []float64, y, z position) {
	mixFourPlain(dst, a, b, c, d, y, z)
}

func (isa instructionSet) stretch(r *prolongation) { r.rowPlain() }

func fence() {}
