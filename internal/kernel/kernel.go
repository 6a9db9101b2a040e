package kernel

// Kernel is one implementation of the sweep. All kernels compute the same bits.
type Kernel struct {
	name  string
	about string // description
	loops instructionSet
	sweep func(s *Sweep, n *Norm, dst, below, src []float64, b Box)
}

// Name returns the variant's name: "reference", "go", "avx2" or "avx512", and "simd" where the
// toolchain was built with GOEXPERIMENT=simd.
func (k *Kernel) Name() string { return k.name }

// Description returns a short description of the variant and of what it needs.
func (k *Kernel) Description() string { return k.about }

// All returns the variants that this processor can run, slowest first.
func All() []*Kernel {
	all := []*Kernel{
		{"reference", "plain loop, one point after the other", byPoint, referenceSweep},
		{"go", "rows in plain Go, tiled for the second-level cache", plain, rowSweep(plain)},
	}
	return append(append(all, simdKernels()...), vectorKernels()...)
}

// Best returns the fastest variant that this processor can run.
func Best() *Kernel {
	all := All()
	return all[len(all)-1]
}
