package kernel

import "fmt"

// Kernel is one implementation of the sweep. All compute the same bits.
type Kernel struct {
	name  string
	about string
	loops instructionSet
	sweep func(s *Sweep, n *Norm, dst, below, src []float64, b Box)
}

// Name is the variant's name: "reference", "go", "avx2" or "avx512" ("simd"
// too where the toolchain was built with GOEXPERIMENT=simd).
func (k *Kernel) Name() string { return k.name }

// About says in a few words what the variant is and why it can be used here.
func (k *Kernel) Description() string { return k.about }

// All lists the variants that this processor can run, slowest first.
func All() []*Kernel {
	all := []*Kernel{
		{"reference", "plain loop, one point after the other", byPoint, referenceSweep},
		{"go", "rows in plain Go, tiled for the second-level cache", plain, rowSweep(plain)},
	}
	return append(append(all, simdKernels()...), vectorKernels()...)
}

// Best is the fastest variant that this processor can run.
func Best() *Kernel {
	all := All()
	return all[len(all)-1]
}

// ByName finds a variant; the error says which there are.
func ByName(name string) (*Kernel, error) {
	var names []string
	for _, k := range All() {
		if k.name == name {
			return k, nil
		}
		names = append(names, k.name)
	}
	return nil, fmt.Errorf("kernel: no variant %q on this processor; there are %v", name, names)
}
