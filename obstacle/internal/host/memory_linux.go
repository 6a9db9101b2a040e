package host

import (
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"
)

// largeArray is the number of values from which an array gets huge pages.
const largeArray = 1 << 17

// Array returns n zeros. A large array lies in huge pages if the system provides them, so that 2 MiB instead of 4 KiB
// take one page fault and one TLB entry.
func Array(n int) []float64 {
	if n < largeArray {
		return make([]float64, n)
	}
	b := unzeroed(8 * n)
	size := uintptr(unix.Getpagesize())
	skip := int(-uintptr(unsafe.Pointer(&b[0])) % size)
	end := len(b) - int((uintptr(unsafe.Pointer(&b[0]))+uintptr(len(b)))%size)
	pages := b[skip:end]
	_ = unix.Madvise(pages, unix.MADV_HUGEPAGE) // on failure the pages stay small
	if unix.Madvise(pages, unix.MADV_DONTNEED) != nil {
		clear(pages)
	}
	clear(b[:skip])
	clear(b[end:])
	return unsafe.Slice((*float64)(unsafe.Pointer(&b[0])), n)
}

// unzeroed returns heap memory of arbitrary content. make would write zeros to memory that was used before, 4 KiB
// page by page; pages that the system zeroes on a fault cost nothing here.
func unzeroed(n int) []byte {
	var b strings.Builder
	b.Grow(n)
	b.WriteByte(0)
	return unsafe.Slice(unsafe.StringData(b.String()), n)
}
