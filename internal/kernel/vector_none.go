//go:build !amd64 || noasm

package kernel

// vectorKernels returns nil: this build has no assembly.
func vectorKernels() []*Kernel { return nil }

func bestInstructions() instructionSet { return plain }

func fence() {}

func runLoop(**float64, int) { panic("kernel: this build has no assembly") }
