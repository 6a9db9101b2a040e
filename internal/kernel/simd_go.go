//go:build goexperiment.simd && amd64

package kernel

import (
	"simd/archsimd"
	"unsafe"
)

const vectorWidth = 8

// simdKernels returns the variant that uses Go's own vector types. It exists only if the toolchain was built with
// GOEXPERIMENT=simd. Only the most common case is vectorised; all others use plain Go.
func simdKernels() []*Kernel {
	if !archsimd.X86.AVX512() {
		return nil
	}
	return []*Kernel{{"simd", "rows in Go with vector types, 8 points at once (GOEXPERIMENT=simd)", vectorGo,
		rowSweep(vectorGo)}}
}

// relaxSimpleVector is relaxSimple for 8 points at once. The box lies within the arrays
// (Sweep.check), so rows are read through pointers without bounds checks.
func (sw *Sweep) relaxSimpleVector(dst, below, src []float64, x0, x1, lo, hi, z int) {
	l := &sw.layout
	m := (x1 - x0) &^ (vectorWidth - 1)
	if m < x1-x0 {
		sw.relaxSimple(dst, below, src, x0+m, x1, lo, hi, z)
	}
	if m == 0 {
		return
	}
	diag, off := archsimd.BroadcastFloat64x8(sw.operator.Diag), archsimd.BroadcastFloat64x8(sw.operator.Off)
	step, f := archsimd.BroadcastFloat64x8(sw.step), archsimd.BroadcastFloat64x8(sw.source.Value)
	i, at := l.Index(x0, lo, z), l.Dense(x0, lo, z)
	for range hi - lo {
		d, c, phi := unsafe.Pointer(&dst[i]), unsafe.Pointer(&src[i]), unsafe.Pointer(&sw.lower.Array[at])
		s, n := unsafe.Pointer(&src[i-l.Row]), unsafe.Pointer(&src[i+l.Row])
		b, t := unsafe.Pointer(&below[i-l.Plane]), unsafe.Pointer(&src[i+l.Plane])
		for o := 0; o < 8*m; o += 8 * vectorWidth {
			u := load(c, o)
			sum := load(c, o-8).Add(load(c, o+8)).Add(load(s, o).Add(load(n, o))).Add(load(b, o).Add(load(t, o)))
			r := diag.Mul(u).Sub(off.Mul(sum)).Sub(f)
			v := u.Sub(step.Mul(r))
			// Max would be wrong: the compiler may exchange its operands, and the order matters for NaN and
			// for zeros of different signs.
			p := load(phi, o)
			p.Merge(v, p.Greater(v)).Store((*[vectorWidth]float64)(unsafe.Add(d, o)))
		}
		i += l.Row
		at += l.N[0]
	}
	archsimd.ClearAVXUpperBits()
}

func load(row unsafe.Pointer, offset int) archsimd.Float64x8 {
	return archsimd.LoadFloat64x8((*[vectorWidth]float64)(unsafe.Add(row, offset)))
}
