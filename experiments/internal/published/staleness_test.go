package published

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestMoreAtIsExactForItsLaw(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := rapid.Float64Range(-10, 40).Draw(t, "a"), rapid.Float64Range(-100, 100).Draw(t, "b")
		law := func(n int) float64 { return a/float64(n) + b/float64(n*n) }
		side := rapid.IntRange(1, 1000).Draw(t, "side")
		one := rapid.IntRange(8, 64).Draw(t, "one")
		two := one + rapid.IntRange(1, 64).Draw(t, "apart")
		got, err := MoreAt(side, Sample{one, law(one)}, Sample{two, law(two)})
		require.NoError(t, err)
		require.InDelta(t, law(side), got, 1e-8*(1+math.Abs(law(side))))
	})
}

func TestMoreAtRefuses(t *testing.T) {
	for _, c := range []struct {
		side int
		s, t Sample
	}{
		{0, Sample{32, 0.1}, Sample{64, 0.1}}, {256, Sample{32, 0.1}, Sample{32, 0.2}},
		{256, Sample{0, 0.1}, Sample{32, 0.2}},
		{256, Sample{32, math.NaN()}, Sample{64, 0.2}}, {256, Sample{32, 0.1}, Sample{64, math.Inf(1)}},
	} {
		_, err := MoreAt(c.side, c.s, c.t)
		require.Error(t, err)
	}
}
