//go:build !goexperiment.simd || !amd64

package kernel

// simdKernels returns nil: the toolchain was built without vector types.
func simdKernels() []*Kernel { return nil }

func (sw *Sweep) relaxSimpleVector([]float64, []float64, []float64, int, int, int, int, int) {
	panic("kernel: this build has no vector types")
}
