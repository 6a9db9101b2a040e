package kernel

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// encoded returns values as messages hold them.
func encoded(values ...float64) []byte {
	b := make([]byte, 8*len(values))
	PutFloats(b, values)
	return b
}

// A Screen refuses a message in pieces if and only if a value is not finite and no large value came before.
func TestScreen(t *testing.T) {
	value := rapid.Custom(func(t *rapid.T) float64 {
		return rapid.OneOf(rapid.Float64(), rapid.SampledFrom([]float64{math.NaN(), math.Inf(1), math.Inf(-1),
			-math.NaN(), math.MaxFloat64, -1e101, 1e99, 0})).Draw(t, "value")
	})
	rapid.Check(t, func(t *rapid.T) {
		s := Screen{Infinite: rapid.Bool().Draw(t, "infinite")}
		diverging := false
		for range rapid.IntRange(1, 4).Draw(t, "messages") {
			all := rapid.SliceOfN(value, 0, 12).Draw(t, "values")
			cut := rapid.IntRange(0, len(all)).Draw(t, "cut")
			finite, largest := true, 0.0
			for _, v := range all {
				if s.Infinite && math.IsInf(v, 0) {
					continue
				}
				finite = finite && Finite(v)
				largest = max(largest, math.Abs(v)) // NaN: NaN
			}
			err := s.Check(encoded(all[:cut]...), encoded(all[cut:]...))
			if !finite && !diverging {
				require.ErrorIs(t, err, ErrNotFinite)
				continue
			}
			require.NoError(t, err)
			diverging = diverging || !(largest < 1e100)
		}
	})
	require.Zero(t, testing.AllocsPerRun(10, func() { _ = new(Screen).Check(nil) }))
}

// With Most, no message makes a Screen accept values that are not finite.
func TestScreenOfBoundedValues(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := Screen{Most: rapid.SampledFrom([]float64{1, 1e45, 1e200}).Draw(t, "most")}
		for range rapid.IntRange(1, 4).Draw(t, "messages") {
			v := rapid.OneOf(rapid.Float64(), rapid.SampledFrom([]float64{math.NaN(), math.Inf(-1), -1e44, 1e300})).Draw(t, "value")
			err := s.Check(encoded(0, v))
			switch {
			case !Finite(v):
				require.ErrorIs(t, err, ErrNotFinite)
			case math.Abs(v) > s.Most:
				require.ErrorIs(t, err, ErrTooLarge)
			default:
				require.NoError(t, err)
			}
		}
	})
}

// A sum of squares is not negative, and finite unless the run may diverge.
func TestScreenOfSums(t *testing.T) {
	for _, c := range []struct {
		most, sum float64
		want      error
	}{
		{0, 1e300, nil},
		{0, math.Inf(1), nil},
		{0, math.NaN(), nil},
		{0, -1, ErrNegative},
		{0, math.Inf(-1), ErrNegative},
		{1e45, math.Inf(1), ErrNotFinite},
		{1e45, math.NaN(), ErrNotFinite},
		{1e45, -math.SmallestNonzeroFloat64, ErrNegative},
		{1e45, 1e90, nil},
		{1e45, math.Copysign(0, -1), nil},
	} {
		s := Screen{Most: c.most}
		if err := s.CheckSquares(c.sum); c.want == nil {
			require.NoError(t, err, "%+v", c)
		} else {
			require.ErrorIs(t, err, c.want, "%+v", c)
			require.ErrorIs(t, err, ErrImpossible)
		}
	}
}

func BenchmarkScreen(b *testing.B) {
	data := encoded(make([]float64, 128*128)...)
	b.SetBytes(int64(len(data)))
	for b.Loop() {
		_ = new(Screen).Check(data)
	}
}
