//go:build linux && (amd64 || arm64) && !nolibibverbs

package libibverbs

import (
	"runtime"
	"syscall"
	"unsafe"
)

// call is a C function with up to six integer arguments. The assembly knows its layout.
type call struct {
	fn      uintptr
	args    [6]uintptr
	errnoAt uintptr // __errno_location, when the function reports by errno; else 0
	result  uintptr
	errno   int32
}

// trampolineABI0 is the address of the C function, written in assembly, that makes the
// call that its argument points to.
var trampolineABI0 uintptr

// cgocall runs a C function on the system stack of the thread, as cgo does. purego
// gives the runtime what it needs for that.
//
//go:linkname cgocall runtime.cgocall
func cgocall(fn uintptr, arg unsafe.Pointer) int32

// do makes the call. What the arguments point to must not lie on a goroutine's stack.
func (c *call) do() {
	cgocall(trampolineABI0, unsafe.Pointer(c))
	runtime.KeepAlive(c)
}

// at is what lies at an address of C's memory, which the collector does not know.
func deref[T any](address uintptr) *T { return *(**T)(unsafe.Pointer(&address)) }

// text copies a string of C's.
func cString(address uintptr) string {
	var out []byte
	for ; *deref[byte](address) != 0; address++ {
		out = append(out, *deref[byte](address))
	}
	return string(out)
}

// invoke calls a function that returns an error number (0: none), as most verbs do.
// Pointers among the arguments are written as uintptr(unsafe.Pointer(p)) in the call
// itself, which keeps what they point to alive and off the stack.
//
//go:uintptrescapes
func (l *library) invoke(fn uintptr, args ...uintptr) syscall.Errno {
	c := &call{fn: fn}
	copy(c.args[:], args)
	c.do()
	return errnoOf(int32(c.result))
}

// pointer calls a function that returns a pointer, or null and errno.
//
//go:uintptrescapes
func (l *library) pointer(fn uintptr, args ...uintptr) (uintptr, syscall.Errno) {
	c := &call{fn: fn, errnoAt: l.errnoAt}
	copy(c.args[:], args)
	c.do()
	if c.result != 0 {
		return c.result, 0
	}
	return 0, errnoOf(c.errno)
}

// number is the error that a result stands for: some drivers return it negated, and a
// few fail without one.
func errnoOf(result int32) syscall.Errno {
	if result < 0 {
		result = -result
	}
	return syscall.Errno(result)
}
