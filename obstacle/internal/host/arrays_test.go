package host_test

import (
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/p2pdc/p2pdc/obstacle/internal/host"
)

// Take returns memory that was returned, as zeros. Return drops memory that was not taken since the call before.
func TestArraysAreLentAgain(t *testing.T) {
	const small, large = 1 << 17, 5 << 20
	var a host.Arrays
	first, second, own := a.Take(small), a.Take(2*small), a.Take(large)
	first[7], second[8], own[9] = 1, 2, 3
	a.Return()
	again := a.Take(2 * small)
	require.Same(t, &first[0], &again[0])
	require.Equal(t, make([]float64, 2*small), again, "it has values of two former arrays")
	a.Return()
	require.NotSame(t, &own[0], &a.Take(large)[0], "nobody wanted it in between")
	require.Same(t, &first[0], &a.Take(small)[0])
	a.Return()
	var other host.Arrays
	there := other.Take(small)
	there[3] = 1
	a.Forget()
	a.Merge(&other)
	merged := a.Take(small)
	require.Same(t, &there[0], &merged[0])
	require.Zero(t, merged[3])
	require.NotSame(t, &there[0], &other.Take(small)[0])
	a.Return()
	a.Forget()
	require.NotSame(t, &first[0], &a.Take(small)[0])
}

// Whatever is lent is zero and shares no value with anything else that is lent.
func TestArraysShareNothing(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		var a host.Arrays
		for epoch := range 3 {
			var lent [][]float64
			for k := range rapid.IntRange(0, 6).Draw(r, "arrays") {
				u := a.Take(rapid.SampledFrom([]int{0, 10, 1 << 16, 1<<16 + 1, 1 << 20}).Draw(r, "values"))
				if len(u) >= 1<<16 {
					require.Zero(r, uintptr(unsafe.Pointer(&u[0]))%64, "it begins within a cache line")
				}
				for i := range u {
					if u[i] != 0 {
						r.Fatalf("epoch %d, array %d: value %d is %v", epoch, k, i, u[i])
					}
					u[i] = float64(k + 1)
				}
				lent = append(lent, u)
			}
			for k, u := range lent {
				for i, v := range u {
					if v != float64(k+1) {
						r.Fatalf("epoch %d: value %d of array %d is %v", epoch, i, k, v)
					}
				}
			}
			a.Return()
		}
	})
}
