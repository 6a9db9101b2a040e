package peer

import (
	"bytes"
	"encoding/binary"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/p2pdc/p2pdc/internal/buddy"
	"github.com/p2pdc/p2pdc/internal/kernel"
)

// encodeCopy returns a copy as it travels.
func encodeCopy(k uint64, state []byte, values ...float64) []byte {
	out := binary.LittleEndian.AppendUint64(nil, k)
	out = append(binary.LittleEndian.AppendUint32(out, uint32(len(state))), state...)
	out, _ = binary.Append(out, binary.LittleEndian, values)
	return out
}

func array(n int) func() []float64 { return func() []float64 { return make([]float64, n) } }

func TestReadCopy(t *testing.T) {
	data := encodeCopy(9, []byte("state"), 1, 2, 3)
	k, err := readCopy(bytes.NewReader(data), 0, array(3))
	require.NoError(t, err)
	require.Equal(t, &buddy.Copy{Iterate: 9, State: []byte("state"), Values: []float64{1, 2, 3}}, k)
	for n := range data {
		_, err := readCopy(bytes.NewReader(data[:n]), 0, array(3))
		require.Error(t, err, "%d bytes", n)
	}
	_, err = readCopy(bytes.NewReader(encodeCopy(9, make([]byte, maxState+1), 1)), 0, array(1))
	require.ErrorContains(t, err, "a copy with a state of 4097 bytes")
	require.ErrorIs(t, err, kernel.ErrImpossible)
	for _, v := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
		_, err = readCopy(bytes.NewReader(encodeCopy(9, nil, 1, 2, v)), 0, array(3))
		require.ErrorIs(t, err, kernel.ErrNotFinite)
	}
	_, err = readCopy(bytes.NewReader(encodeCopy(9, nil, 1, 2, -1e300)), 1e45, array(3))
	require.ErrorIs(t, err, kernel.ErrTooLarge)
}

func FuzzReadCopy(f *testing.F) {
	f.Add(encodeCopy(9, []byte("state"), 1, 2, 3), 3)
	f.Add([]byte{}, 1)
	f.Fuzz(func(t *testing.T, data []byte, points int) {
		k, err := readCopy(bytes.NewReader(data), 0, array(min(max(points, 1), 1<<12)))
		if err == nil && len(k.State) > maxState {
			t.Fatalf("a state of %d bytes", len(k.State))
		}
	})
}

// Copies of an epoch that has ended are refused, since the launcher knows what this peer holds.
func TestNoCopiesAfterTheEpoch(t *testing.T) {
	var c copies
	require.True(t, c.add(0, 1, &buddy.Copy{Iterate: 5}))
	c.endEpoch(0)
	require.False(t, c.add(0, 1, &buddy.Copy{Iterate: 6}))
	require.True(t, c.add(1, 1, &buddy.Copy{Iterate: 7}))
	require.EqualValues(t, []int{5, 7}, asInts(c.holding().Others[1]))

	require.False(t, c.begin(0, 8, nil), "a goroutine of the epoch before")
	c.freeze(8, []float64{1})
	require.Empty(t, c.holding().Own)
	require.True(t, c.begin(1, 8, nil))
	c.freeze(8, []float64{1})
	require.EqualValues(t, []int{8}, asInts(c.holding().Own))
}

func asInts[T ~uint64](all []T) (out []int) {
	for _, v := range all {
		out = append(out, int(v))
	}
	return out
}
