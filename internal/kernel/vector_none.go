//go:build !amd64 || noasm

package kernel

// vectorKernels: this build has no assembly.
func vectorKernels() []*Kernel { return nil }

func (s *Sweep) relaxVector(instructions, *line, bool) {
	panic("kernel: this build has no assembly")
}

func (s *Sweep) residualVector(instructions, []float64, *line) {
	panic("kernel: this build has no assembly")
}

func fence() {}
