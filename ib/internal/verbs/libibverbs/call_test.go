//go:build linux && (amd64 || arm64) && !nolibibverbs

package libibverbs

import (
	"errors"
	"syscall"
	"testing"
	"unsafe"

	"github.com/ebitengine/purego"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/p2pdc/p2pdc/ib/internal/verbs"
)

// libc returns the address of a function of the C library, which is loaded already.
func libc(t testing.TB, name string) uintptr {
	t.Helper()
	fn, err := purego.Dlsym(purego.RTLD_DEFAULT, name)
	require.NoError(t, err)
	return fn
}

// mmap uses all six arguments, each of which the kernel checks, and sets errno.
func TestCall(t *testing.T) {
	mmap := &call{fn: libc(t, "mmap"), errnoAt: libc(t, "__errno_location")}
	const n = 3 << 16
	mmap.args = [6]uintptr{0, n, unix.PROT_READ | unix.PROT_WRITE, unix.MAP_ANON | unix.MAP_PRIVATE, ^uintptr(0), 0}
	mmap.do()
	require.NotEqual(t, ^uintptr(0), mmap.result, "errno %d", mmap.errno)
	memory := unsafe.Slice(deref[byte](mmap.result), n)
	for i := range memory {
		require.Zero(t, memory[i])
		memory[i] = 1
	}
	unmap := &call{fn: libc(t, "munmap"), args: [6]uintptr{mmap.result, n}}
	unmap.do()
	require.Zero(t, int32(unmap.result))

	for _, bad := range []struct {
		arg   int
		value uintptr
		errno syscall.Errno
	}{
		{1, 0, syscall.EINVAL},                  // length
		{3, unix.MAP_PRIVATE, syscall.EBADF},    // flags: without MAP_ANON it needs a file
		{5, 1, syscall.EINVAL},                  // offset
		{0, ^uintptr(0) - 4095, syscall.ENOMEM}, // an impossible address, with MAP_FIXED
	} {
		c := &call{fn: mmap.fn, errnoAt: mmap.errnoAt, args: mmap.args}
		c.args[bad.arg] = bad.value
		if bad.arg == 0 {
			c.args[3] |= unix.MAP_FIXED
		}
		c.do()
		require.Equal(t, ^uintptr(0), c.result, "argument %d", bad.arg)
		require.Equal(t, bad.errno, syscall.Errno(c.errno), "argument %d", bad.arg)
	}
}

// Calls on the hot path do not allocate.
func TestCallAllocates(t *testing.T) {
	c := &call{fn: libc(t, "getppid")}
	require.Zero(t, testing.AllocsPerRun(1000, c.do))
	require.Equal(t, syscall.Getppid(), int(c.result))
}

// Calls from many goroutines work while their stacks grow, since C runs on thread stacks.
func TestCallFromMany(t *testing.T) {
	done := make(chan bool)
	for range 16 {
		go func() {
			ok := true
			for i := range 200 {
				ok = ok && callFromDeepStack(libc(t, "labs"), i%40) == uintptr(i%40)
			}
			done <- ok
		}()
	}
	for range 16 {
		require.True(t, <-done)
	}
}

// callFromDeepStack calls a function from a stack that is n kilobytes deeper.
func callFromDeepStack(fn uintptr, n int) uintptr {
	var frame [1024]byte
	if n == 0 {
		c := &call{fn: fn}
		c.do()
		return c.result + uintptr(frame[0])
	}
	c := &call{fn: fn, args: [6]uintptr{^uintptr(0)}} // labs(-1)
	c.do()
	return callFromDeepStack(fn, n-1) + c.result + uintptr(frame[n])
}

func TestNumber(t *testing.T) {
	require.Equal(t, syscall.ENOMEM, errnoOf(int32(syscall.ENOMEM)))
	require.Equal(t, syscall.ENOMEM, errnoOf(-int32(syscall.ENOMEM)))
	require.Zero(t, errnoOf(0))
}

func TestNoLibrary(t *testing.T) {
	p := &provider{name: "libibverbs-that-nobody-has.so.1"}
	_, err := p.Devices()
	require.ErrorIs(t, err, verbs.ErrNoLibrary)
	require.ErrorContains(t, err, "install libibverbs1")
	_, err = p.Open("mlx5_0")
	require.ErrorIs(t, err, verbs.ErrNoLibrary)
}

// A library of that name with other functions is refused.
func TestWrongLibrary(t *testing.T) {
	_, err := load("libc.so.6")
	require.ErrorIs(t, err, verbs.ErrNoLibrary)
	require.ErrorContains(t, err, "lacks ibv_get_device_list")
}

// With the library there is a list of devices, or a reason why there is none.
func TestThisSystem(t *testing.T) {
	p := New()
	names, err := p.Devices()
	switch {
	case err == nil:
		t.Logf("devices: %q", names)
	case errors.Is(err, verbs.ErrNoLibrary), errors.Is(err, verbs.ErrNoKernel):
		t.Log(err)
		require.Empty(t, names)
		_, again := p.Open("mlx5_0")
		require.Equal(t, err, again)
		return
	default:
		require.NoError(t, err)
	}
	_, err = p.Open("no such device")
	require.ErrorIs(t, err, verbs.ErrNoDevice)
}

func BenchmarkCall(b *testing.B) {
	c := &call{fn: libc(b, "labs")}
	b.ReportAllocs()
	for b.Loop() {
		c.do()
	}
}
