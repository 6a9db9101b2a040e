package option

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestWarnings(t *testing.T) {
	require.Empty(t, one(Put, 0).Warnings())
	require.Empty(t, several(Put, Minimum, 3).Warnings())
	require.Empty(t, several(Call, Maximum, 2).Warnings())
	for _, o := range []*Option{several(Put, Maximum, 2), several(Call, Minimum, 3)} {
		require.Len(t, o.Warnings(), 1)
		require.Contains(t, o.Warnings()[0], "ridge")
	}
	o := several(Put, Minimum, 2)
	o.Width = 2
	require.Contains(t, o.Warnings()[0], "width 2: the boundary is less than 3")
	o.Perpetual = true
	require.Contains(t, o.Warnings()[0], "compare two widths")
	o = one(Put, 0)
	o.Perpetual = true
	require.Empty(t, o.Warnings())
}

// A width of two standard deviations affects the price, one of five does not.
func TestWidthWarningIsTrue(t *testing.T) {
	o := several(Put, Minimum, 2)
	o.Steps = 4
	price := func(width float64, n int) float64 { // the spacing is equal except for the drift
		o.Width = width
		return quote(t, o, n).Price
	}
	wide := price(6, 47)
	require.InDelta(t, wide, price(5, 39), 5e-4)
	require.Greater(t, wide-price(2, 15), 0.03)
}
