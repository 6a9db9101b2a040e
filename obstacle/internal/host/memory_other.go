//go:build !linux

package host

// Array is make.
func Array(n int) []float64 { return make([]float64, n) }
