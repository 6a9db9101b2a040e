package host

import (
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"
)

// largeArray is the number of values from which an array is worth pages of its own kind.
const largeArray = 1 << 17

// Array is make, in pages as large as the system gives on request: a fault and an entry of
// the processor's tables for 2 MiB instead of 4 KiB.
func Array(n int) []float64 {
	if n < largeArray {
		return make([]float64, n)
	}
	b := unzeroed(8 * n)
	size := uintptr(unix.Getpagesize())
	skip := int(-uintptr(unsafe.Pointer(&b[0])) % size)
	end := len(b) - int((uintptr(unsafe.Pointer(&b[0]))+uintptr(len(b)))%size)
	pages := b[skip:end]
	_ = unix.Madvise(pages, unix.MADV_HUGEPAGE) // or there are none
	if unix.Madvise(pages, unix.MADV_DONTNEED) != nil {
		clear(pages)
	}
	clear(b[:skip])
	clear(b[end:])
	return unsafe.Slice((*float64)(unsafe.Pointer(&b[0])), n)
}

// unzeroed is memory of the heap that may hold anything. make touches all of an array, 4 KiB
// at a time, where a part of its place was used before: the system's pages of zeros are free.
func unzeroed(n int) []byte {
	var b strings.Builder
	b.Grow(n)
	b.WriteByte(0)
	return unsafe.Slice(unsafe.StringData(b.String()), n)
}
