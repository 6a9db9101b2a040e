//go:build !linux

package host

import (
	"errors"
	"os"
)

// Batch does nothing: only Linux has SCHED_BATCH.
func Batch() error { return nil }

// Array returns n zeros.
func Array(n int) []float64 { return make([]float64, n) }

// hugePages returns n zeros.
func hugePages(n int) []float64 { return make([]float64, n) }

// Memory returns the memory of this machine in bytes, 0 if it is unknown.
func Memory() uint64 { return 0 }

// SharedArray returns nil, nil: this system has no such memory.
func SharedArray(int) ([]float64, *os.File, error) { return nil, nil, nil }

// Populate does nothing.
func Populate([]float64) {}

// MapArray returns an error.
func MapArray(*os.File, int) ([]float64, error) {
	return nil, errors.New("this system has no shared memory")
}
