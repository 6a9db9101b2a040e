package host

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"
)

// Large arrays are marked for large pages, small ones are left alone, and all are zeros.
func TestArrayIsMarked(t *testing.T) {
	for _, n := range []int{1, largeArray - 1, largeArray, 3*largeArray + 7} {
		a := Array(n)
		require.Len(t, a, n)
		for i := 0; i < n; i += 511 {
			require.Zero(t, a[i])
			a[i] = 1
		}
		if n >= largeArray {
			require.Contains(t, flagsOf(t, uintptr(unsafe.Pointer(&a[n/2]))), " hg")
		}
	}
}

// flagsOf is the line of flags of the mapping that holds an address.
func flagsOf(t *testing.T, at uintptr) string {
	text, err := os.ReadFile("/proc/self/smaps")
	require.NoError(t, err)
	inside := false
	for l := range strings.Lines(string(text)) {
		var lo, hi uintptr
		if n, _ := fmt.Sscanf(l, "%x-%x ", &lo, &hi); n == 2 {
			inside = lo <= at && at < hi
		} else if inside && strings.HasPrefix(l, "VmFlags:") {
			return l
		}
	}
	t.Fatal("the address is in no mapping")
	return ""
}

// Two maps of a file are the same memory, and only a file of the right length is mapped.
func TestSharedArray(t *testing.T) {
	a, f, err := SharedArray(1000)
	require.NoError(t, err)
	defer f.Close()
	b, err := MapArray(f, 1000)
	require.NoError(t, err)
	a[0], b[999] = 1, 2
	require.Equal(t, 1.0, b[0])
	require.Equal(t, 2.0, a[999])
	for _, n := range []int{0, -1, 999, 1001} {
		_, err = MapArray(f, n)
		require.ErrorContains(t, err, fmt.Sprintf("8000 bytes for %d values", n))
	}
}
