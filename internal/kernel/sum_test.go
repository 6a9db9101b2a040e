package kernel

import (
	"math"
	"math/big"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// anyFinite draws finite float64s of all magnitudes, often of similar ones.
func anyFinite(r *rand.Rand, n int) []float64 {
	a := make([]float64, n)
	base := r.Uint64N(0x7ff)
	wide := r.IntN(2) == 0
	for i := range a {
		exp := r.Uint64N(0x7ff)
		if !wide {
			exp = min(base+r.Uint64N(5), 0x7fe)
		}
		man := r.Uint64() & (1<<52 - 1)
		if r.IntN(4) == 0 {
			man = 0
		}
		a[i] = math.Float64frombits(r.Uint64()&(1<<63) | exp<<52 | man)
		if i > 0 && r.IntN(3) == 0 {
			a[i] = -a[i-1]
		}
	}
	return a
}

// exact adds with a big.Float whose precision excludes rounding, then rounds once.
func exact(values []float64) float64 {
	sum := new(big.Float).SetPrec(2300)
	for _, v := range values {
		sum.Add(sum, new(big.Float).SetFloat64(v))
	}
	f, _ := sum.Float64()
	return f
}

func TestSumIsExactAndRoundedCorrectly(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 2))
		v := anyFinite(r, rapid.IntRange(0, 3000).Draw(t, "n"))
		var s Sum
		for _, x := range v {
			s.Add(x)
		}
		want := exact(v)
		require.Equal(t, want, s.Float64())
		if want == 0 {
			require.False(t, math.Signbit(s.Float64()))
		}
	})
}

// Ties, subnormal results and overflow are too rare in random draws.
func TestSumRoundsHardCases(t *testing.T) {
	tiny, huge := 5e-324, math.MaxFloat64
	for _, v := range [][]float64{
		{1, 0x1p-53}, {1, 0x1p-53, tiny}, {1 + 0x1p-52, 0x1p-53}, {-1, -0x1p-53, -tiny}, {1, -0x1p-54}, {1, -0x1p-54,
			-tiny},
		{tiny}, {tiny, tiny}, {0x1p-1022, -tiny}, {0x1p-1022, tiny}, {-0x1p-1022, tiny}, {0x1p-1022 - tiny, tiny},
		{huge, 0x1p970}, {huge, 0x1p969}, {huge, 0x1p970, -tiny}, {huge, huge, -huge}, {huge, huge}, {-huge, -huge,
			-huge},
		{0}, {math.Copysign(0, -1)}, {1, -1}, {0x1p53, 1}, {0x1p53, 1, tiny}, {0x1p53, 3},
	} {
		var s Sum
		for _, x := range v {
			s.Add(x)
		}
		want := exact(v)
		if want == 0 {
			want = 0
		}
		require.Equal(t, want, s.Float64(), "%v", v)
	}
}

func TestSumDoesNotDependOnOrderOrPartition(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 3))
		v := anyFinite(r, rapid.IntRange(1, 2500).Draw(t, "n"))
		var whole, merged Sum
		whole.AddSquares(v)
		parts := make([]Sum, rapid.IntRange(1, 9).Draw(t, "parts"))
		r.Shuffle(len(v), func(i, j int) { v[i], v[j] = v[j], v[i] })
		for _, x := range v {
			parts[r.IntN(len(parts))].Add(float64(x * x))
		}
		for i := range parts {
			data, err := parts[i].MarshalBinary()
			require.NoError(t, err)
			var p Sum
			require.NoError(t, p.UnmarshalBinary(data))
			require.True(t, p.Equal(&parts[i]))
			merged.Merge(&p)
		}
		a, err := whole.MarshalBinary()
		require.NoError(t, err)
		b, err := merged.MarshalBinary()
		require.NoError(t, err)
		require.Equal(t, a, b, "equal sums have equal encodings")
		require.Equal(t, math.Float64bits(whole.Float64()), math.Float64bits(merged.Float64()))
	})
}

// The values that fill a limb fastest have all mantissa bits set and the largest shift.
func TestSumDoesNotOverflowItsLimbs(t *testing.T) {
	const n = 40000
	v := math.Float64frombits(1023<<52 | (1<<52 - 1)) // 1023 = 31 modulo 32
	var added, subtracted, squares Sum
	for range n {
		added.Add(v)
		subtracted.Add(-v)
	}
	want := n * v // n·(2^53 − 1) needs rounding in its last place only
	require.InDelta(t, want, added.Float64(), 1e-11)
	require.Equal(t, -added.Float64(), subtracted.Float64())
	added.Merge(&subtracted)
	require.Zero(t, added.Float64())
	root := math.Sqrt(math.Float64frombits(1023<<52 | (1<<52 - 1<<20)))
	squares.AddSquares(filled(n, root))
	require.InDelta(t, n*root*root, squares.Float64(), 1e-9)
}

func TestSumKeepsInfinitiesAndNaN(t *testing.T) {
	inf := math.Inf(1)
	for _, c := range []struct {
		v    []float64
		want float64
	}{
		{[]float64{1, inf, -5}, inf}, {[]float64{-inf, 3}, -inf}, {[]float64{inf, -inf},
			math.NaN()}, {[]float64{math.NaN(), inf}, math.NaN()},
	} {
		var s, o Sum
		for _, x := range c.v {
			s.Add(x)
		}
		o.Add(-2)
		o.Merge(&s)
		sameBits(t, []float64{c.want, c.want}, []float64{s.Float64(), o.Float64()}, "sum")
	}
}

// 2^40 additions of the largest value, executed quickly by merging a sum with itself.
func TestSumHoldsManyLargeValues(t *testing.T) {
	var s Sum
	for range 1 << 11 {
		s.Add(math.MaxFloat64)
	}
	for range 29 {
		o := s
		s.Merge(&o)
	}
	require.True(t, math.IsInf(s.Float64(), 1))
	neg := Sum{}
	for range 1 << 11 {
		neg.Add(-math.MaxFloat64)
	}
	for range 29 {
		o := neg
		neg.Merge(&o)
	}
	s.Add(0.5)
	s.Merge(&neg)
	require.Equal(t, 0.5, s.Float64())
	data, err := neg.MarshalBinary()
	require.NoError(t, err)
	var back Sum
	require.NoError(t, back.UnmarshalBinary(data), "a valid sum is never refused")
}

func TestSumRefusesBadEncodings(t *testing.T) {
	var s Sum
	s.Add(1.5)
	good, err := s.MarshalBinary()
	require.NoError(t, err)
	mutate := func(f func(b []byte) []byte) []byte { return f(append([]byte(nil), good...)) }
	for says, data := range map[string][]byte{
		"wrong length":  good[:len(good)-1],
		"version 9":     mutate(func(b []byte) []byte { b[0] = 9; return b }),
		"unknown flags": mutate(func(b []byte) []byte { b[1] = 0x80; return b }),
		"limbs 250":     mutate(func(b []byte) []byte { b[2] = 250; return b }),
		"limbs 67":      {1, 0, 67, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0},
		"top limb":      mutate(func(b []byte) []byte { b[len(b)-1] = 0x7f; return b }),
	} {
		require.ErrorContains(t, s.UnmarshalBinary(data), says)
		require.Equal(t, 1.5, s.Float64(), "an error leaves the sum as it was")
	}
	require.Error(t, s.UnmarshalBinary(nil))
	require.Error(t, s.UnmarshalBinary(append(good, 0)))
}

func FuzzSumUnmarshal(f *testing.F) {
	for _, v := range [][]float64{{}, {1}, {-1e300, 1e-300}, {math.Inf(1)}, {math.NaN(), 3}} {
		var s Sum
		for _, x := range v {
			s.Add(x)
		}
		data, _ := s.MarshalBinary()
		f.Add(data)
	}
	f.Add([]byte{1, 0, 66, 1, 0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0, 0, 0, 0, 0x80})
	f.Fuzz(func(t *testing.T, data []byte) {
		var s, again Sum
		if s.UnmarshalBinary(data) != nil {
			return
		}
		_ = s.Float64()
		out, err := s.MarshalBinary()
		require.NoError(t, err)
		require.NoError(t, again.UnmarshalBinary(out))
		require.True(t, again.Equal(&s))
		again.Merge(&s)
		again.Add(1)
	})
}

func BenchmarkSumAddSquares(b *testing.B) {
	row := make([]float64, 256)
	for i := range row {
		row[i] = math.Sin(float64(i)) * 1e-3
	}
	var s Sum
	b.ReportAllocs()
	for b.Loop() {
		s.AddSquares(row)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(row)), "ns/value")
}
