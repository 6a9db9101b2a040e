package figure

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestSparkline(t *testing.T) {
	all := Record(nil, 0, 1)
	for i := 1; i <= 8; i++ {
		all = Record(all, float64(i), math.Pow(10, -float64(i)))
	}
	require.Equal(t, "█▇▆▅▄▃▂▁", sparkline(all, 8, 8, 1e-8, 1))
	require.Equal(t, "█▇▆▅▄▃▂▁", sparkline(all, 16, 16, 1e-8, 1), "a run that took half the time has half the columns")
	require.Equal(t, "█▇▆▅▄▃▂▁", sparkline([]Sample{{0, 1}, {8, 1e-8}}, 8, 8, 1e-8, 1), "straight between samples")
	require.Empty(t, sparkline(nil, 1, 5, 1e-6, 1))
	require.Equal(t, "  ", sparkline(all, 16, 4, 1, 1), "no range")
	until, low, high := span(all, []Sample{{20, 1e-9}})
	require.Equal(t, []float64{20, 1e-9, 1}, []float64{until, low, high})
}

// Samples whose residual is unknown or unchanged are not recorded.
func TestRecord(t *testing.T) {
	all := Record(Record(Record(Record(nil, 0, 1), 1, math.NaN()), 2, 1), 3, 0)
	require.Equal(t, []Sample{{0, 1}}, all)
}

func TestBar(t *testing.T) {
	require.Equal(t, "#####++...", bar(10, []float64{0.5, 0.2, 0.3}, "#+."))
	require.Equal(t, "##########", bar(10, []float64{1.4, 0.2}, "#+"))
	require.Equal(t, ".....", bar(10, []float64{math.NaN(), -1, 0.5}, "#+."))
	require.Empty(t, bar(10, nil, "#"))
}
