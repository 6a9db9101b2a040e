package shm

import (
	"sync/atomic"
	"unsafe"
)

// Words of shared memory are accessed through this file only. The other end may change any of its
// words at any time: load a word once, check the value, and use only the loaded value.
//
// Go's atomic operations are sequentially consistent. Two ends that each store a word of their own
// and then load the other's cannot both miss the other's store. The race detector does not see
// accesses of another process, so tests run the same code over heap memory as well.

// word returns the word at an offset, a multiple of 8. It panics beyond the end of b.
func word(b []byte, at int) *atomic.Uint64 {
	return (*atomic.Uint64)(unsafe.Pointer(unsafe.SliceData(b[at : at+8])))
}

// offsetIn returns the offset of b in memory; −1 if b does not begin there.
func offsetIn(memory, b []byte) int {
	at := uintptr(unsafe.Pointer(unsafe.SliceData(b))) - uintptr(unsafe.Pointer(unsafe.SliceData(memory)))
	if at >= uintptr(len(memory)) { // huge if b lies before
		return -1
	}
	return int(at)
}

// alignedBytes returns heap memory that begins at a line.
func alignedBytes(n int) []byte {
	b := make([]byte, n+lineBytes)
	skip := -int(uintptr(unsafe.Pointer(unsafe.SliceData(b)))) & (lineBytes - 1)
	return b[skip : skip+n : skip+n]
}
