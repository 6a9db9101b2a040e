package host_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/p2pdc/p2pdc/obstacle/internal/host"
)

// Arrays that were returned are lent again, as zeros, to who wants as many values. Those that nobody wants are forgotten.
func TestArraysAreLentAgain(t *testing.T) {
	var a host.Arrays
	first, second, other := a.Take(100), a.Take(100), a.Take(200)
	first[7], second[8], other[9] = 1, 2, 3
	require.NotSame(t, &first[0], &second[0])
	a.Return()
	again := a.Take(100)
	require.Same(t, &first[0], &again[0])
	require.Equal(t, make([]float64, 100), again)
	a.Return()
	require.Same(t, &first[0], &a.Take(100)[0])
	require.NotSame(t, &second[0], &a.Take(100)[0], "nobody wanted it in between")
	require.NotSame(t, &other[0], &a.Take(200)[0])
	a.Return()
	a.Forget()
	require.NotSame(t, &first[0], &a.Take(100)[0])
}
