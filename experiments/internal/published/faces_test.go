package published

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestExchangedPoints(t *testing.T) {
	for parts, want := range map[[3]int]int{
		{1, 1, 1}: 0, {1, 1, 2}: 65536, {1, 1, 4}: 2 * 65536, // slabs: one face, then two
		{1, 2, 2}: 65536, {2, 2, 2}: 49152, {2, 2, 4}: 49152, {2, 4, 4}: 36864, {4, 4, 4}: 24576, // boxes
		{2, 2, 1}: 65536, {4, 2, 1}: 81920, {4, 4, 1}: 65536, {8, 4, 1}: 49152, {8, 8, 1}: 32768, // pillars
	} {
		require.Equal(t, want, Exchanged(parts), "%v", parts)
	}
}

// The errors of the formula with boxes, which were worked out by hand before there was a program.
func TestFormulaWithBoxes(t *testing.T) {
	boxes := map[int][3]int{4: {1, 2, 2}, 8: {2, 2, 2}, 16: {2, 2, 4}, 32: {2, 4, 4}, 64: {4, 4, 4}}
	f := Formula(func(m int) [3]int { return boxes[m] })
	for c, want := range map[Column][5]float64{SyncEther: {11.1, -0.3, 6.8, 5.0, 0}, SyncIB: {3.9, -0.9, 2.8, 1.8, 0}} {
		for row, e := range want {
			require.InDelta(t, e, f.Error(Cell{c, row}), 0.06, "%v", Cell{c, row})
		}
	}
	require.InDelta(t, Sequential/8, f.At(Cell{AsyncIB, 1}), 1e-9)
}
