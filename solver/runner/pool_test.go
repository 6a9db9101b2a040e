package runner

import (
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestPoolRunsEveryPieceOnce(t *testing.T) {
	for _, threads := range []int{1, 2, 3, 8} {
		for _, spin := range []int{0, spinRounds} {
			p := newPool(threads, spin)
			var seen [70]atomic.Int32
			f := func(i int) { seen[i].Add(1) }
			want := [70]int32{}
			for round := range 300 {
				n := round % (len(seen) + 1)
				p.For(n, f)
				for i := range n {
					want[i]++
				}
				for i := range want {
					require.Equal(t, want[i], seen[i].Load(), "piece %d of %d", i, n)
				}
			}
			p.Close()
		}
	}
}

func TestPoolAllocatesNothing(t *testing.T) {
	p := NewPool(3)
	defer p.Close()
	var sum atomic.Int64
	f := func(i int) { sum.Add(int64(i)) }
	require.Zero(t, testing.AllocsPerRun(200, func() { p.For(20, f) }))
}

func BenchmarkPool(b *testing.B) {
	p := NewPool(2)
	defer p.Close()
	f := func(int) {}
	b.ReportAllocs()
	for b.Loop() {
		p.For(8, f)
	}
}
