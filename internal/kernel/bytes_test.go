package kernel

import (
	"encoding/binary"
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

// Values have the same bytes on machines of either byte order, and come back with their bits.
func TestFloatBytes(t *testing.T) {
	native := littleEndian
	t.Cleanup(func() { littleEndian = native })
	values := []float64{0, math.Copysign(0, -1), 1.5, -math.Pi, math.Inf(1), math.NaN(), math.SmallestNonzeroFloat64}
	want := []byte{}
	for _, v := range values {
		want = binary.LittleEndian.AppendUint64(want, math.Float64bits(v))
	}
	for _, copied := range []bool{native, false} {
		littleEndian = copied
		for n := range len(values) + 1 {
			got := make([]byte, 8*n+3)
			PutFloats(got, values[:n])
			require.Equal(t, append(want[:8*n:8*n], 0, 0, 0), got)
			back := make([]float64, n)
			ReadFloats(back, got)
			for i := range back {
				require.Equal(t, math.Float64bits(values[i]), math.Float64bits(back[i]))
			}
		}
		require.Panics(t, func() { PutFloats(make([]byte, 7), values[:1]) })
		require.Panics(t, func() { ReadFloats(make([]float64, 2), want[:15]) })
	}
}
