package simulate

import (
	"context"
	"testing"

	"github.com/p2pdc/p2pdc/solver/iterate"
	"github.com/p2pdc/p2pdc/solver/problem"
	"github.com/p2pdc/p2pdc/solver/richardson"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// Lent memory is not reused too early. On networks that lose a frame in ten, so that messages are
// sent again, the bits are those of the sequential method, for peers and for scaled peers.
func TestLentMemory(t *testing.T) {
	p := membrane(8)
	want, err := richardson.SolveSequential(p, problem.Jacobi, 1e-12, 0, 0, 60)
	require.NoError(t, err)
	for _, standing := range []int{1, 4} {
		for _, late := range []bool{false, true} {
			m := gigabit(8)
			m.Networks[0].Loss = 0.1
			run := runOf(t, m, p, iterate.Synchronous(), 8)
			run.Scale = standing
			run.NoOverlap = late
			run.Solver.Tolerance = 1e-12
			run.Solver.MaxSweeps = 60
			r, err := Run(context.Background(), run)
			require.NoError(t, err)
			require.Equal(t, want.U, r.U, "standing %d, late %v", standing, late)
		}
	}
}

// The used parts of the messages stay when others are written, and when the memory grows.
func TestPaddedBuffers(t *testing.T) {
	o, kept := paddedBuffers{used: 4}, [][]byte{}
	for i, n := range []int{8, 40, 4, 400, 12} {
		b := o.Take(i, n)
		require.Len(t, b, n)
		copy(b, []byte{byte(i), 1, 2, 3})
		kept = append(kept, b)
	}
	for i, b := range kept {
		require.Equal(t, []byte{byte(i), 1, 2, 3}, b[:4])
	}
	require.Less(t, len(o.memory), 430)
}

// Every length has the number of the size that it is rounded up to, which wastes at most a quarter.
func TestSizeOf(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(0, 1<<31).Draw(t, "n")
		size, k := sizeOf(n)
		require.GreaterOrEqual(t, size, n)
		require.LessOrEqual(t, size, max(1<<leastBuffer, n+n/4))
		require.Less(t, k, sizes)
		same, l := sizeOf(size)
		require.Equal(t, size, same)
		require.Equal(t, k, l)
		if n > 0 {
			smaller, l := sizeOf(n - 1)
			require.Equal(t, smaller == size, l == k)
			require.LessOrEqual(t, l, k)
		}
	})
}
