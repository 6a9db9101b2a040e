package kernel

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// Rows are added exactly for any range of values.
func TestRowsAreAddedExactly(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 4))
		row := make([]float64, rapid.OneOf(rapid.IntRange(0, 40), rapid.IntRange(1000, 2100)).Draw(t, "values"))
		top := rapid.SampledFrom([]int{0, -30, 400, 490, 505, 511, 900, 1000, 1020, -390, -410, -500, -900,
			-1050}).Draw(t, "largest exponent")
		spread := rapid.SampledFrom([]int{1, 10, 40, 70, 200, 2000}).Draw(t, "spread")
		odd := rapid.SampledFrom([]float64{0, 0.3, 0.001}).Draw(t, "odd")
		for i := range row {
			row[i] = math.Ldexp(1+r.Float64(), top-r.IntN(spread)) * float64(1-2*r.IntN(2))
			switch {
			case spread == 1 && odd == 0: // the largest values: their sums barely fit
				row[i] = math.Ldexp(math.Nextafter(2, 0), top)
			case r.Float64() < odd:
				row[i] = special[r.IntN(len(special))]
			}
		}
		for _, k := range All() {
			var want, got Norm
			var wantSum, gotSum Sum
			for _, v := range row {
				want.Add(v)
				wantSum.Add(v)
			}
			k.loops.addRow(&got, row)
			k.AddValues(&gotSum, row)
			require.True(t, want.Squares.Equal(&got.Squares), "%s: squares %v, %v", k.Name(), want.Squares.Float64(),
				got.Squares.Float64())
			require.True(t, wantSum.Equal(&gotSum), "%s: %v, %v", k.Name(), wantSum.Float64(), gotSum.Float64())
			sameBits(t, []float64{want.Max}, []float64{got.Max}, "largest")
			largest := 0.0
			for _, v := range row {
				if v = math.Abs(v); !(v <= largest) {
					largest = v
				}
				if math.IsNaN(v) {
					break
				}
			}
			require.Equal(t, math.IsNaN(largest), math.IsNaN(k.loops.largestRow(row)), k.Name())
			if !math.IsNaN(largest) {
				require.Equal(t, largest, k.loops.largestRow(row), k.Name())
				require.Equal(t, largest, MaxAbs(row))
			}
		}
	})
}
