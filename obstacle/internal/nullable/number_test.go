package nullable

import (
	"encoding/json"
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestNumber(t *testing.T) {
	for _, v := range []float64{0, -1.5, 1e-300, 1e21, math.MaxFloat64, math.SmallestNonzeroFloat64} {
		b, err := json.Marshal(Number(v))
		require.NoError(t, err)
		var back Number
		require.NoError(t, json.Unmarshal(b, &back))
		require.Equal(t, v, float64(back))
	}
	for _, v := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
		b, err := json.Marshal(Number(v))
		require.NoError(t, err)
		require.Equal(t, "null", string(b))
	}
	n := Number(3)
	require.NoError(t, json.Unmarshal([]byte("null"), &n))
	require.False(t, n.Known())
	require.Error(t, json.Unmarshal([]byte(`"x"`), &n))
}
