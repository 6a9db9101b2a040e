package fas

import (
	"encoding/binary"
	"math"
	"testing"

	"github.com/p2pdc/p2pdc/internal/kernel"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// TestTauIsReadAsItWasSent checks that right-hand sides of any size arrive with the precision of their type.
func TestTauIsReadAsItWasSent(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := &plan{single: rapid.Bool().Draw(t, "single")}
		e := rapid.IntRange(-1000, mostTau).Draw(t, "exponent")
		values := rapid.SliceOfN(rapid.Float64Range(-1, 1), 0, 9).Draw(t, "values")
		for i, v := range values {
			values[i] = math.Ldexp(v, e)
		}
		m := make([]byte, g.tauBytes(len(values))+8) // the slot may be longer
		g.putTau(m, values)
		require.NoError(t, new(kernel.Screen).Check(m))
		require.NoError(t, g.checkTau(m))
		rest := m[tauHeader:]
		got := make([]float64, len(values))
		for i := range got { // in pieces, as rows are read
			g.readTau(got[i:i+1], &rest, int(tauExponent(m)))
		}
		precision := 0.
		if g.single {
			precision = 0x1p-24
		}
		for i, v := range values {
			least := kernel.MaxAbs(values) * 0x1p-140 // below it, float32 is subnormal
			require.InDelta(t, v, got[i], precision*math.Abs(v)+least, "value %d", i)
		}
	})
}

// TestImpossibleTauIsRefused checks values that no peer sends.
func TestImpossibleTauIsRefused(t *testing.T) {
	for _, single := range []bool{true, false} {
		g := &plan{single: single}
		for _, v := range []float64{math.NaN(), math.Inf(1), math.MaxFloat64} {
			m := make([]byte, g.tauBytes(3))
			g.putTau(m, []float64{1, v, 2})
			require.ErrorIs(t, new(kernel.Screen).Check(m), kernel.ErrNotFinite, "%v", v)
		}
		for _, e := range []float64{.5, mostTau + 1, leastTau - 1, 1e300, math.NaN()} {
			m := make([]byte, g.tauBytes(3))
			binary.LittleEndian.PutUint64(m, math.Float64bits(e))
			require.ErrorIs(t, g.checkTau(m), kernel.ErrImpossible, "exponent %v", e)
		}
	}
	g := &plan{single: true}
	for at := range 3 {
		for _, v := range []float64{math.NaN(), math.Inf(-1), -3} {
			m := make([]byte, g.tauBytes(3))
			binary.LittleEndian.PutUint32(m[tauHeader+singleBytes*at:], math.Float32bits(float32(v)))
			require.ErrorIs(t, g.checkTau(m), kernel.ErrImpossible, "value %d: %v", at, v)
		}
	}
}
