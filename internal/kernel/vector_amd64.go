//go:build !noasm

package kernel

import (
	"unsafe"

	"github.com/klauspost/cpuid/v2"
)

//go:generate go run ./gen -out rows_amd64.s -stubs rows_amd64.go -pkg kernel

// vectorKernels lists the assembly variants that processor and system support.
func vectorKernels() []*Kernel {
	var k []*Kernel
	if cpuid.CPU.Supports(cpuid.AVX, cpuid.AVX2) {
		k = append(k, &Kernel{"avx2", "rows in assembly, 4 points at once (AVX2)", rowSweep(avx2)})
	}
	if cpuid.CPU.Supports(cpuid.AVX512F, cpuid.BMI2) {
		k = append(k, &Kernel{"avx512", "rows in assembly, 8 points at once (AVX-512)", rowSweep(avx512)})
	}
	return k
}

// aligned tells whether streaming stores of a whole vector may start at p.
func aligned(p *float64) bool { return uintptr(unsafe.Pointer(p))%64 == 0 }

func fence() { storeFence() }

func (s *Sweep) relaxVector(isa instructions, l *line, stream bool) {
	switch s.operator.Form {
	case Isotropic:
		s.relaxVectorIsotropic(isa, l, stream)
	case Constant:
		s.relaxVectorConstant(isa, l, stream)
	default:
		s.relaxVectorVariable(isa, l, stream)
	}
}

func (s *Sweep) relaxVectorIsotropic(isa instructions, l *line, stream bool) {
	diag, off, step, m := s.operator.Diag, s.operator.Off, s.step, len(l.dst)
	dst := &l.dst[0]
	stream = stream && aligned(dst)
	switch {
	case isa == avx512 && stream:
		relaxIsotropicStreamAVX512(dst, &l.c[0], &l.s[0], &l.n[0], &l.b[0], &l.t[0], &l.f[0], &l.phi[0], &l.psi[0], m, diag, off, step)
	case isa == avx512:
		relaxIsotropicAVX512(dst, &l.c[0], &l.s[0], &l.n[0], &l.b[0], &l.t[0], &l.f[0], &l.phi[0], &l.psi[0], m, diag, off, step)
	case stream:
		relaxIsotropicStreamAVX2(dst, &l.c[0], &l.s[0], &l.n[0], &l.b[0], &l.t[0], &l.f[0], &l.phi[0], &l.psi[0], m, diag, off, step)
	default:
		relaxIsotropicAVX2(dst, &l.c[0], &l.s[0], &l.n[0], &l.b[0], &l.t[0], &l.f[0], &l.phi[0], &l.psi[0], m, diag, off, step)
	}
}

func (s *Sweep) relaxVectorConstant(isa instructions, l *line, stream bool) {
	k, step, m := &s.rows.values, s.step, len(l.dst)
	dst := &l.dst[0]
	stream = stream && aligned(dst)
	switch {
	case isa == avx512 && stream:
		relaxConstantStreamAVX512(dst, &l.c[0], &l.s[0], &l.n[0], &l.b[0], &l.t[0], &l.f[0], &l.phi[0], &l.psi[0], m,
			k[0], k[1], k[2], k[3], k[4], k[5], k[6], step)
	case isa == avx512:
		relaxConstantAVX512(dst, &l.c[0], &l.s[0], &l.n[0], &l.b[0], &l.t[0], &l.f[0], &l.phi[0], &l.psi[0], m,
			k[0], k[1], k[2], k[3], k[4], k[5], k[6], step)
	case stream:
		relaxConstantStreamAVX2(dst, &l.c[0], &l.s[0], &l.n[0], &l.b[0], &l.t[0], &l.f[0], &l.phi[0], &l.psi[0], m,
			k[0], k[1], k[2], k[3], k[4], k[5], k[6], step)
	default:
		relaxConstantAVX2(dst, &l.c[0], &l.s[0], &l.n[0], &l.b[0], &l.t[0], &l.f[0], &l.phi[0], &l.psi[0], m,
			k[0], k[1], k[2], k[3], k[4], k[5], k[6], step)
	}
}

func (s *Sweep) relaxVectorVariable(isa instructions, l *line, stream bool) {
	k, step, m := s.coefficients(l), s.step, len(l.dst)
	dst := &l.dst[0]
	stream = stream && aligned(dst)
	switch {
	case isa == avx512 && stream:
		relaxVariableStreamAVX512(dst, &l.c[0], &l.s[0], &l.n[0], &l.b[0], &l.t[0], &l.f[0], &l.phi[0], &l.psi[0],
			k[0], k[1], k[2], k[3], k[4], k[5], k[6], m, step)
	case isa == avx512:
		relaxVariableAVX512(dst, &l.c[0], &l.s[0], &l.n[0], &l.b[0], &l.t[0], &l.f[0], &l.phi[0], &l.psi[0],
			k[0], k[1], k[2], k[3], k[4], k[5], k[6], m, step)
	case stream:
		relaxVariableStreamAVX2(dst, &l.c[0], &l.s[0], &l.n[0], &l.b[0], &l.t[0], &l.f[0], &l.phi[0], &l.psi[0],
			k[0], k[1], k[2], k[3], k[4], k[5], k[6], m, step)
	default:
		relaxVariableAVX2(dst, &l.c[0], &l.s[0], &l.n[0], &l.b[0], &l.t[0], &l.f[0], &l.phi[0], &l.psi[0],
			k[0], k[1], k[2], k[3], k[4], k[5], k[6], m, step)
	}
}

// coefficients are the rows of all seven coefficient arrays.
func (s *Sweep) coefficients(l *line) (k [Directions]*float64) {
	for d := range k {
		k[d] = &s.coefficient(d, l)[0]
	}
	return k
}

func (s *Sweep) residualVector(isa instructions, r []float64, l *line) {
	m, op := len(r), &s.operator
	switch {
	case op.Form == Isotropic && isa == avx512:
		residualIsotropicAVX512(&r[0], &l.c[0], &l.s[0], &l.n[0], &l.b[0], &l.t[0], &l.f[0], &l.phi[0], &l.psi[0], m, op.Diag, op.Off)
	case op.Form == Isotropic:
		residualIsotropicAVX2(&r[0], &l.c[0], &l.s[0], &l.n[0], &l.b[0], &l.t[0], &l.f[0], &l.phi[0], &l.psi[0], m, op.Diag, op.Off)
	case op.Form == Constant && isa == avx512:
		k := &s.rows.values
		residualConstantAVX512(&r[0], &l.c[0], &l.s[0], &l.n[0], &l.b[0], &l.t[0], &l.f[0], &l.phi[0], &l.psi[0], m,
			k[0], k[1], k[2], k[3], k[4], k[5], k[6])
	case op.Form == Constant:
		k := &s.rows.values
		residualConstantAVX2(&r[0], &l.c[0], &l.s[0], &l.n[0], &l.b[0], &l.t[0], &l.f[0], &l.phi[0], &l.psi[0], m,
			k[0], k[1], k[2], k[3], k[4], k[5], k[6])
	case isa == avx512:
		k := s.coefficients(l)
		residualVariableAVX512(&r[0], &l.c[0], &l.s[0], &l.n[0], &l.b[0], &l.t[0], &l.f[0], &l.phi[0], &l.psi[0],
			k[0], k[1], k[2], k[3], k[4], k[5], k[6], m)
	default:
		k := s.coefficients(l)
		residualVariableAVX2(&r[0], &l.c[0], &l.s[0], &l.n[0], &l.b[0], &l.t[0], &l.f[0], &l.phi[0], &l.psi[0],
			k[0], k[1], k[2], k[3], k[4], k[5], k[6], m)
	}
}
