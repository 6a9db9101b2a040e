//go:build linux && (amd64 || arm64) && !nolibibverbs

package libibverbs

import (
	"runtime"
	"syscall"
	"unsafe"
)

// call is a call of a C function with up to six integer arguments. The assembly uses its layout.
type call struct {
	fn      uintptr
	args    [6]uintptr
	errnoAt uintptr // __errno_location if the function reports by errno; else 0
	result  uintptr
	errno   int32
}

// trampolineABI0 is the address of the assembly function, in C's calling convention, that
// executes a call.
var trampolineABI0 uintptr

// cgocall runs a C function on the thread's system stack, as cgo does. purego provides what
// the runtime needs for it.
//
//go:linkname cgocall runtime.cgocall
func cgocall(fn uintptr, arg unsafe.Pointer) int32

// do executes the call. Memory that the arguments point to must not be on a goroutine's stack.
func (c *call) do() {
	cgocall(trampolineABI0, unsafe.Pointer(c))
	runtime.KeepAlive(c)
}

// deref dereferences a C address that the garbage collector does not track.
func deref[T any](address uintptr) *T { return *(**T)(unsafe.Pointer(&address)) }

// invoke calls a function that returns an error number or 0, as most verbs do. Pointers among
// the arguments must be converted with uintptr(unsafe.Pointer(p)) in the call itself, which
// keeps their targets alive and off the stack.
//
//go:uintptrescapes
func (l *library) invoke(fn function, args ...uintptr) syscall.Errno {
	c := &call{fn: l[fn]}
	copy(c.args[:], args)
	c.do()
	return errnoOf(int32(c.result))
}

// pointer calls a function that returns a pointer, or null and sets errno.
//
//go:uintptrescapes
func (l *library) pointer(fn function, args ...uintptr) (uintptr, syscall.Errno) {
	c := &call{fn: l[fn], errnoAt: l[errnoLocation]}
	copy(c.args[:], args)
	c.do()
	if c.result != 0 {
		return c.result, 0
	}
	return 0, errnoOf(c.errno)
}

// errnoOf converts a result to an error number. Some drivers return it negated.
func errnoOf(result int32) syscall.Errno {
	if result < 0 {
		result = -result
	}
	return syscall.Errno(result)
}
