package kernel

import (
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// descending calls f in descending order: calls that may run concurrently may run in any order.
type descending struct{}

func (descending) For(n int, f func(i int)) {
	for i := range n {
		f(n - 1 - i)
	}
}

// concurrent runs each call of f on its own goroutine.
type concurrent struct{}

func (concurrent) For(n int, f func(i int)) {
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() { f(i) })
	}
	all.Wait()
}

func TestTimeTilesComputeTheBitsOfSingleSweeps(t *testing.T) {
	ref := All()[0]
	rapid.Check(t, func(t *rapid.T) {
		b := drawBlockUpTo(t, 25)
		k := rapid.SampledFrom(All()).Draw(t, "kernel")
		tiling := Tiling{rapid.IntRange(0, 9).Draw(t, "sweeps"), rapid.IntRange(0, 9).Draw(t, "rows"),
			rapid.IntRange(0, 5).Draw(t, "pieces")}
		sweeps := rapid.IntRange(0, 20).Draw(t, "of")
		e := rapid.SampledFrom([]Executor{Sequential{}, descending{}, concurrent{}}).Draw(t, "executor")

		b.config.Kernel = ref
		single, err := New(b.config)
		require.NoError(t, err)
		b.config.Kernel = k
		s, err := New(b.config)
		require.NoError(t, err)
		l := s.layout
		for i := range b.dst { // both arrays have the same ghosts
			b.dst[i] = b.src[i]
		}
		u, v := slices.Clone(b.src), slices.Clone(b.src)
		for range sweeps {
			single.Relax(v, u, u, l.Interior())
			u, v = v, u
		}
		NewTimeTiles(s, tiling).RelaxMany(b.src, b.dst, sweeps, e)
		got := b.src
		if sweeps%2 == 1 {
			got = b.dst
		}
		sameBits(t, u, got, "after the last sweep")
	})
}

// The points of all parts together are those of the sweeps, so no point is relaxed twice.
func TestTimeTilesRelaxEveryPointOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		dim := rapid.IntRange(1, 3).Draw(t, "dim")
		n := [3]int{1, 1, 1}
		for a := range dim {
			n[a] = rapid.IntRange(1, 60).Draw(t, "n")
		}
		l, err := NewLayout(dim, n)
		require.NoError(t, err)
		s, err := New(Config{Layout: l, Step: 1, Lower: NoLower(), Upper: NoUpper()})
		require.NoError(t, err)
		p := NewTimeTiles(s, Tiling{rapid.IntRange(1, 12).Draw(t, "sweeps"), rapid.IntRange(1, 30).Draw(t, "rows"),
			rapid.IntRange(1, 6).Draw(t, "pieces")})
		sweeps, points := rapid.IntRange(1, p.Sweeps()).Draw(t, "of"), 0
		for part := range p.Parts(sweeps) {
			points += p.Points(part, sweeps)
		}
		require.Equal(t, sweeps*l.Points(), points)
	})
}

func TestTimeTilesAllocateNothing(t *testing.T) {
	l, err := NewLayout(3, [3]int{33, 20, 40})
	require.NoError(t, err)
	s, err := New(Config{Layout: l, Step: 0.1, Lower: NoLower(), Upper: NoUpper(), Operator: Operator{Diag: 6, Off: 1}})
	require.NoError(t, err)
	a, b := make([]float64, l.Len()), make([]float64, l.Len())
	p := NewTimeTiles(s, Tiling{Sweeps: 4, Rows: 8, Pieces: 3})
	require.Zero(t, testing.AllocsPerRun(5, func() { p.RelaxMany(a, b, 7, Sequential{}) }))
}

// A chosen tiling fits its cache, unless not even the smallest does.
func TestTilingFitsTheCache(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 3000).Draw(t, "n")
		l, err := NewLayout(3, [3]int{n, 8, 8})
		require.NoError(t, err)
		s, err := New(Config{Layout: l, Step: 1, Lower: NoLower(), Upper: NoUpper()})
		require.NoError(t, err)
		cache := rapid.SampledFrom([]int{256 << 10, 1 << 20, 2 << 20}).Draw(t, "cache")
		got := s.tiling(Tiling{}, cache)
		require.GreaterOrEqual(t, got.Rows, minRows)
		require.GreaterOrEqual(t, got.Sweeps, 1)
		if got.Sweeps > 1 {
			require.LessOrEqual(t, (got.Sweeps+2)*(got.Rows+got.Sweeps)*n*8*2, cache)
			require.Less(t, got.Rows+got.Sweeps, got.Rows*got.Sweeps, "a group reads less than single sweeps")
		}
		require.Equal(t, Tiling{3, 5, 2}, s.tiling(Tiling{3, 5, 2}, cache), "requested values are kept")
	})
}

// For a cache of 2 MiB and the reference case at 256³ the sizes measured as best are chosen (ADR 31).
func TestTilingOfTheReferenceCase(t *testing.T) {
	const n, cache = 256, 2 << 20
	l, err := NewLayout(3, [3]int{n, n, 4})
	require.NoError(t, err)
	c := Config{Layout: l, Step: 1, Lower: Field{Array: make([]float64, l.Points())}, Upper: NoUpper()}
	s, err := New(c)
	require.NoError(t, err)
	got := s.tiling(Tiling{}, cache)
	require.InDelta(t, 8, got.Sweeps, 1)
	require.InDelta(t, 16, got.Rows, 3)
	require.Equal(t, 1, s.tiling(Tiling{}, 8*3*l.Points()).Sweeps, "a block that fits the cache needs no groups")
}

// BenchmarkTimeTiles sweeps an n³ block of the reference case in groups.
func BenchmarkTimeTiles(b *testing.B) {
	for _, n := range []int{64, 128, 256} {
		for _, c := range []Tiling{{}, {4, 24, 1}, {8, 24, 1}, {16, 16, 1}} {
			b.Run(fmt.Sprintf("n=%d/%v", n, c), func(b *testing.B) {
				s, src, dst := membrane(b, n, Best())
				p := NewTimeTiles(s, c)
				b.ReportAllocs()
				sweeps := 0
				for b.Loop() {
					p.RelaxMany(src, dst, 2*p.Sweeps(), Sequential{})
					sweeps += 2 * p.Sweeps()
				}
				b.ReportMetric(float64(sweeps)*float64(s.layout.Points())/float64(b.Elapsed().Nanoseconds()), "GLUP/s")
			})
		}
	}
}
