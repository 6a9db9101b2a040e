//go:build !noasm

package kernel

import "github.com/klauspost/cpuid/v2"

//go:generate go run ./gen -out tile_amd64.s

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

// fence orders streaming stores before all later stores.
func fence()

// runLoop runs the assembly loop with an index of the table. The argument is the address of the tile's first field.
//
//go:noescape
func runLoop(tile **float64, index int)
