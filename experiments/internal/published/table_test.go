package published

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestMeasuredTableHasNoErrors(t *testing.T) {
	v, err := Evaluate(Measured())
	require.NoError(t, err)
	require.Zero(t, v.Worst)
	require.Zero(t, v.Median)
	require.Empty(t, v.Wrong)
	require.Equal(t, 20, v.Cells)
	require.Equal(t, 3+3+5+5+6, v.Pairs, "counted by hand, row by row")
}

// The efficiencies that the paper states.
func TestEfficienciesOfThePaper(t *testing.T) {
	m := Measured()
	for c, want := range map[Column]float64{SyncIB: 0.60, SyncEther: 0.33, AsyncIB: 0.83, AsyncEther: 0.78} {
		require.InDelta(t, want, Efficiency(64, m.At(Cell{c, 4})), 0.006, "%v", c)
	}
}

func TestEvaluateFindsWorstMedianAndOrder(t *testing.T) {
	p := Measured()
	p[AsyncEther][4] *= 1.5 // 288 s: slower than sync IB with 247
	p[SyncIB][0] *= 0.9
	v, err := Evaluate(p)
	require.NoError(t, err)
	require.InDelta(t, 50, v.Worst, 1e-9)
	require.Equal(t, Cell{AsyncEther, 4}, v.At)
	require.Zero(t, v.Median)
	require.Equal(t, []string{"64 machines: sync IB is slower than async Eth, and predicted faster"}, v.Wrong)
	require.InDelta(t, -10, p.Error(Cell{SyncIB, 0}), 1e-9)

	v, err = Evaluate(p, Cell{AsyncEther, 4})
	require.NoError(t, err)
	require.InDelta(t, 10, v.Worst, 1e-9, "a fitted cell is no prediction")
	require.Equal(t, 19, v.Cells)
	require.Len(t, v.Wrong, 1, "its order counts all the same")
}

func TestMedianOfEvenNumber(t *testing.T) {
	p := Measured()
	for i, c := range Cells() {
		p[c.Column][c.Row] *= 1 + float64(i+1)/100
	}
	v, err := Evaluate(p)
	require.NoError(t, err)
	require.InDelta(t, 10.5, v.Median, 1e-9)
	v, err = Evaluate(p, Cells()[19])
	require.NoError(t, err)
	require.InDelta(t, 10, v.Median, 1e-9)
}

func TestEvaluateRefusesNonFiniteValues(t *testing.T) {
	for _, x := range []float64{0, -1, math.NaN(), math.Inf(1)} {
		p := Measured()
		p[SyncEther][2] = x
		_, err := Evaluate(p)
		require.ErrorContains(t, err, "sync Eth, 16 machines")
	}
}
