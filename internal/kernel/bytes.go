package kernel

import (
	"encoding/binary"
	"math"
	"unsafe"
)

// littleEndian: float64 values lie in memory as they are sent, so that rows are copied.
var littleEndian = binary.NativeEndian.Uint16([]byte{1, 0}) == 1

// PutFloats writes src to dst, which has 8 bytes for each value, as little-endian float64.
func PutFloats(dst []byte, src []float64) {
	dst = dst[: 8*len(src) : len(dst)] // panics if it is too short
	if littleEndian {
		copy(dst, bytesOf(src))
		return
	}
	for i, v := range src {
		binary.LittleEndian.PutUint64(dst[8*i:], math.Float64bits(v))
	}
}

// ReadFloats reads values that PutFloats wrote, as many as dst has.
func ReadFloats(dst []float64, src []byte) {
	src = src[: 8*len(dst) : len(src)] // panics if it is too short
	if littleEndian {
		copy(bytesOf(dst), src)
		return
	}
	for i := range dst {
		dst[i] = math.Float64frombits(binary.LittleEndian.Uint64(src[8*i:]))
	}
}

// bytesOf returns the memory of values.
func bytesOf(v []float64) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(v))), 8*len(v))
}
