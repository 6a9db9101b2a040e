//go:build !noasm

package kernel

import (
	"unsafe"

	"github.com/klauspost/cpuid/v2"
)

//go:generate go run ./gen -out tile_amd64.s -stubs tile_amd64.go -pkg kernel

// vectorKernels returns the assembly variants that the processor and the system support.
func vectorKernels() []*Kernel {
	var k []*Kernel
	if cpuid.CPU.Supports(cpuid.AVX, cpuid.AVX2) {
		k = append(k, &Kernel{"avx2", "assembly, 4 points at once (AVX2)", avx2, rowSweep(avx2)})
	}
	if cpuid.CPU.Supports(cpuid.AVX512F, cpuid.BMI2) {
		k = append(k, &Kernel{"avx512", "assembly, 8 points at once (AVX-512)", avx512, rowSweep(avx512)})
	}
	return k
}

// bestInstructions returns the instruction set of the fastest assembly variant supported.
func bestInstructions() instructionSet {
	switch {
	case cpuid.CPU.Supports(cpuid.AVX512F, cpuid.BMI2):
		return avx512
	case cpuid.CPU.Supports(cpuid.AVX, cpuid.AVX2):
		return avx2
	}
	return plain
}

func fence() { storeFence() }

// vectorTile processes rows [lo, hi) of a plane in assembly.
func (s *Sweep) vectorTile(isa instructionSet, stream bool, n *Norm, dst, below, src []float64, x0, x1, lo, hi, z int) {
	var t tile
	s.setConstants(&t)
	if n != nil {
		s.setTile(&t, below, src, x0, x1, lo, hi, z)
		r := n.scratch((hi - lo) * (x1 - x0))
		t.out, t.outStep = &r[0], 8*(x1-x0)
		s.residualTile(isa, &t)
		isa.addRow(n, r)
	}
	if dst != nil {
		s.setTile(&t, below, src, x0, x1, lo, hi, z)
		t.out, t.outStep = &dst[s.layout.Index(x0, lo, z)], t.rowStep
		s.relaxTile(isa, stream && aligned(&t), &t)
	}
}

// aligned reports whether streaming stores of whole vectors may start at every row.
func aligned(t *tile) bool {
	return (uintptr(unsafe.Pointer(t.out))|uintptr(t.outStep))%64 == 0
}

func (s *Sweep) relaxTile(isa instructionSet, stream bool, t *tile) {
	switch {
	case s.rows.simple && stream:
		relaxSimpleStream(isa, t)
	case s.rows.simple:
		relaxSimple(isa, t)
	case s.operator.Form == Isotropic && stream:
		relaxIsotropicStream(isa, t)
	case s.operator.Form == Isotropic:
		relaxIsotropic(isa, t)
	case s.operator.Form == Constant && stream:
		relaxConstantStream(isa, t)
	case s.operator.Form == Constant:
		relaxConstant(isa, t)
	default:
		relaxVariable(isa, t)
	}
}

func (s *Sweep) residualTile(isa instructionSet, t *tile) {
	switch s.operator.Form {
	case Isotropic:
		residualIsotropic(isa, t)
	case Constant:
		residualConstant(isa, t)
	default:
		residualVariable(isa, t)
	}
}

// colourTile relaxes the points of a colour in rows [lo, hi) of a plane in place.
func (s *Sweep) colourTile(isa instructionSet, factor float64, u []float64, x0, x1, lo, hi, z, odd int) {
	var t tile
	s.setConstants(&t)
	s.setTile(&t, u, u, x0, x1, lo, hi, z)
	t.step, t.odd = factor, odd
	switch {
	case s.rows.simple:
		relaxColourSimple(isa, &t)
	case s.operator.Form == Isotropic:
		relaxColourIsotropic(isa, &t)
	case s.operator.Form == Constant:
		relaxColourConstant(isa, &t)
	default:
		relaxColourVariable(isa, &t)
	}
}

// defectTile writes values of that kind in rows [lo, hi) of a plane to out; rows of out are step bytes apart.
func (s *Sweep) defectTile(isa instructionSet, kind defectKind, out *float64, step int, u []float64, x0, x1, lo, hi,
	z int) {
	var t tile
	s.setConstants(&t)
	s.setTile(&t, u, u, x0, x1, lo, hi, z)
	t.out, t.outStep = out, step
	if kind == operatorImage {
		t.f, t.fStep = &s.rows.positiveZero[0], 0
	}
	if kind != clampedDefect {
		t.phi, t.phiStep = &s.rows.notANumber[0], 0
		t.psi, t.psiStep = &s.rows.notANumber[0], 0
	}
	s.residualTile(isa, &t)
}
