package host

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// largeArray is the number of values from which an array is worth pages of its own kind.
const largeArray = 1 << 19

// Array is make, in pages as large as the system gives on request: a fault and an entry of
// the processor's tables for 2 MiB instead of 4 KiB.
func Array(n int) []float64 {
	a := make([]float64, n)
	if n < largeArray {
		return a
	}
	b := unsafe.Slice((*byte)(unsafe.Pointer(&a[0])), 8*n)
	page := uintptr(unix.Getpagesize())
	skip := int(-uintptr(unsafe.Pointer(&a[0])) % page)
	_ = unix.Madvise(b[skip:], unix.MADV_HUGEPAGE) // or there are none
	return a
}
