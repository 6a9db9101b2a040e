package iterate_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/p2pdc/p2pdc/internal/solvertest"
	"github.com/p2pdc/p2pdc/solver/iterate"
)

func TestMessagesRoundTrip(t *testing.T) {
	for _, m := range solvertest.Samples() {
		data := m.Encode()
		require.LessOrEqual(t, len(data), iterate.AgreementBytes(16))
		got, err := iterate.DecodeMessage(data, 16)
		require.NoError(t, err)
		require.True(t, m.Squares.Equal(&got.Squares) && m.Start.Equal(&got.Start))
		require.Equal(t, data, got.Encode())
		for cut := range data {
			_, err = iterate.DecodeMessage(data[:cut], 16)
			require.Error(t, err, "kind %d, %d bytes", m.Kind, cut)
		}
		_, err = iterate.DecodeMessage(append(data, 0), 16)
		require.Error(t, err)
		data[0]++
		_, err = iterate.DecodeMessage(data, 16)
		require.ErrorContains(t, err, "version 7")
	}
}

func FuzzDecodeMessage(f *testing.F) {
	for _, m := range solvertest.Samples() {
		f.Add(m.Encode())
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		m, err := iterate.DecodeMessage(data, 16)
		if err != nil {
			return
		}
		again, err := iterate.DecodeMessage(m.Encode(), 16)
		require.NoError(t, err)
		require.Equal(t, m.Kind, again.Kind)
		require.Equal(t, m.Number, again.Number)
		require.Equal(t, m.Step, again.Step)
		require.Equal(t, m.Reason, again.Reason)
		require.Equal(t, m.Mark, again.Mark)
		require.Equal(t, m.Count, again.Count)
		require.True(t, m.Squares.Equal(&again.Squares))
	})
}
