package measure

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestMediansAndTargets(t *testing.T) {
	m := Over("n", "GLUP/s", []float64{3, 1, 2}).AtLeast(2)
	require.Equal(t, []float64{2, 1, 3}, []float64{m.Value, m.Low, m.High})
	require.True(t, *m.Met)
	m = Over("n", "ns", []float64{4, 1, 2, 3}).AtMost(2.4)
	require.Equal(t, 2.5, m.Value)
	require.False(t, *m.Met)
	require.NotEmpty(t, Over("n", "ns", nil).Note)
}

func TestTargetsOnTheBestRound(t *testing.T) {
	m := Over("n", "µs", []float64{5, 3.9, 7})
	require.True(t, *m.BestAtMost(4).Met)
	require.False(t, *m.BestAtMost(3.8).Met)
	require.True(t, *m.BestAtLeast(7).Met)
	require.False(t, *m.BestAtLeast(7.1).Met)
}

func TestTargetsAddUp(t *testing.T) {
	m := Over("n", "s", []float64{2}).AtMost(1).AtLeast(1)
	require.Equal(t, "≤ 1; ≥ 1", m.Target)
	require.False(t, *m.Met)
	require.True(t, *Over("n", "s", []float64{2}).Between(1, 2).AtLeast(2).Met)
}

// A target has the digits that a person reads.
func TestTargetsAreRounded(t *testing.T) {
	m := Over("n", "s", []float64{2}).Against("peer", []float64{1})
	for want, got := range map[string]Result{
		"≤ 15.73": m.AtMost(3 * 5.24288), "≥ 0.3333": m.AtLeast(1. / 3), "0.6667 to 1.5": m.Between(2./3, 1.5),
		"≤ 1024":     m.AtMost(1024),
		"best ≤ 0.3": m.BestAtMost(3 * 0.1), "best ≥ 0.3": m.BestAtLeast(3 * 0.1), "≤ 1.005 × peer": m.RatioAtMost(1.005),
		"≥ 0.01667 × peer": m.RatioAtLeast(1. / 60),
	} {
		require.Equal(t, want, got.Target)
	}
}

// The ratio is the median over the rounds, unless the peer has another number of rounds.
func TestRatiosToPeers(t *testing.T) {
	m := Over("n", "s", []float64{1, 4, 9}).Against("C", []float64{2, 2, 3}).Against("none", nil).RatioAtLeast(2)
	require.Equal(t, []Peer{{Name: "C", Value: 2, Ratio: 2}}, m.Peers)
	require.True(t, *m.Met)
	require.Equal(t, 4.0/5, m.Against("PETSc", []float64{5}).Peers[1].Ratio)
	require.Len(t, m.Peers, 1)
	require.False(t, *m.RatioAtMost(1.9).Met)
	require.Nil(t, Over("n", "s", []float64{1}).RatioAtLeast(1).Met, "there is no peer")
}

func TestNumbers(t *testing.T) {
	for v, want := range map[float64]string{
		0: "0", 3.456: "3.46", 0.0123: "0.0123", 1234.4: "1234", 123.456: "123", 2.0: "2", 10: "10", 0.5: "0.5",
		16.7e6: "16700000", -4.44: "-4.44", 1e12: "1e+12", 1e-14: "1e-14",
	} {
		require.Equal(t, want, number(v))
	}
}

func TestEachStopsAtAnError(t *testing.T) {
	wrong := errors.New("wrong")
	done := make([]bool, 1000)
	err := Each(context.Background(), len(done), func(ctx context.Context, i int) error {
		done[i] = true
		switch {
		case i == 1:
			return wrong
		case i > 1: // so that the error is noticed before many follow
			<-ctx.Done()
		}
		return nil
	})
	require.ErrorIs(t, err, wrong)
	require.False(t, done[999])
	require.NoError(t, Each(context.Background(), 3, func(context.Context, int) error { return nil }))
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	require.ErrorIs(t, Each(ctx, 3, func(context.Context, int) error { return nil }), context.Canceled)
}
