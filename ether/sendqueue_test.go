package ether

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// keepFull makes the queue full at every interval while the device takes bytes per second.
func keepFull(
	q *sendQueue, from *time.Duration, sent *uint64, rate float64, every time.Duration, times int,
) (changes int) {
	for range times {
		*from += every
		*sent += uint64(rate * every.Seconds())
		if q.full(*from, *sent) {
			changes++
		}
	}
	return changes
}

// The queue holds a millisecond of the device's rate after the kernel has doubled it, within its bounds.
func TestSendQueueFollowsTheRate(t *testing.T) {
	for _, c := range []struct {
		rate float64 // bytes per second
		want int
	}{
		{25e6, minSendBytes}, // 200 Mbit/s
		{100e6, minSendBytes},
		{1.25e9, 625_000}, // 10 Gbit/s
		{125e9, defaultSocketBytes},
	} {
		q := sendQueue{bytes: minSendBytes, least: minSendBytes, most: defaultSocketBytes}
		now, sent := time.Second, uint64(0)
		keepFull(&q, &now, &sent, c.rate, 3*time.Millisecond, 10)
		require.InDelta(t, c.want, q.bytes, 1, "%v bytes per second", c.rate)
		require.Zero(t, keepFull(&q, &now, &sent, c.rate, 3*time.Millisecond, 100), "the size settles")
	}
}

// A slower device gets a smaller queue, but not because of a pause of the sender.
func TestSendQueueShrinks(t *testing.T) {
	q := sendQueue{bytes: minSendBytes, least: minSendBytes, most: defaultSocketBytes}
	now, sent := time.Second, uint64(0)
	keepFull(&q, &now, &sent, 1e9, 3*time.Millisecond, 10)
	require.Equal(t, 500_000, q.bytes)
	require.Zero(t, keepFull(&q, &now, &sent, 1e6, time.Second, 100), "idle between full queues")
	keepFull(&q, &now, &sent, 300e6, 3*time.Millisecond, shrinkAfter-1)
	require.Equal(t, 500_000, q.bytes)
	keepFull(&q, &now, &sent, 300e6, 3*time.Millisecond, 2)
	require.Equal(t, 150_000, q.bytes)
}

// Times that are too near to each other are not a measurement of their own.
func TestSendQueueMeasuresOverAWhile(t *testing.T) {
	q := sendQueue{bytes: minSendBytes, least: minSendBytes, most: defaultSocketBytes}
	now, sent := time.Second, uint64(0)
	require.Zero(t, keepFull(&q, &now, &sent, 1e12, time.Microsecond, 1000))
	require.Equal(t, 1, keepFull(&q, &now, &sent, 1e9, 3*time.Millisecond, 1))
}
