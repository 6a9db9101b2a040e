package path

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/p2pdc/p2pdc/microproto"
)

const ms = time.Millisecond

// The smallest round trip of the last second counts: a queue that empties now and then
// is no distance, and a path that has become longer is seen soon.
func TestMinRTT(t *testing.T) {
	var l MinRTT
	now := microproto.Instant(1)
	for i := range 100 { // a queue that is empty once in 400 ms
		rtt := 30 * ms
		if i%8 == 0 {
			rtt = ms
		}
		require.Equal(t, ms, l.Add(now, rtt), "look %d", i)
		now = now.Add(50 * ms)
	}
	longer := now
	for l.Add(now, 40*ms) != 40*ms {
		require.Less(t, now.Sub(longer), rttWindow+100*ms)
		now = now.Add(50 * ms)
	}
	require.Greater(t, now.Sub(longer), rttWindow/2-100*ms)
	require.Equal(t, 2*ms, l.Add(now.Add(time.Hour), 2*ms), "old ones are forgotten")
}

// A pong that comes late once does not make a near path far, and a path of seconds does not take four
// samples.
func TestMeasurementIsDone(t *testing.T) {
	for _, c := range []struct {
		samples   int
		min, took time.Duration
		done      bool
	}{
		{3, ms / 10, 300 * ms, false},
		{4, ms / 10, ms, true},
		{4, 20 * ms, 80 * ms, false},
		{4, 20 * ms, 250 * ms, true},
		{16, 2 * ms, 32 * ms, true},
		{1, 1500 * ms, 1500 * ms, false},
		{2, ms / 10, 1501 * ms, true},
		{2, 400 * ms, 800 * ms, false},
		{3, 400 * ms, 1200 * ms, true},
		{1, 2500 * ms, 2500 * ms, true},
		{0, 0, time.Minute, false},
	} {
		m := Measurement{began: 7, samples: c.samples, min: c.min}
		require.Equal(t, c.done, m.Done(microproto.Instant(7).Add(c.took)), "%+v", c)
	}
}
