package driver

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A call polls for twice the usual time to an arrival, within bounds. Where the answers take longer than polling is
// worth, it polls for the default, and a set BusyPoll is always what it is.
func TestBusyFor(t *testing.T) {
	for _, c := range []struct{ waits, want time.Duration }{
		{3 * time.Microsecond, defaultBusyPoll},
		{60 * time.Microsecond, 120 * time.Microsecond},
		{99 * time.Microsecond, 198 * time.Microsecond},
		{150 * time.Microsecond, defaultBusyPoll},
		{time.Second, defaultBusyPoll},
	} {
		p, fixed := poller{busy: defaultBusyPoll, adapts: true}, poller{busy: defaultBusyPoll}
		for range 100 {
			p.waited(c.waits)
			fixed.waited(c.waits)
		}
		require.InDelta(t, c.want, p.busyFor(), float64(time.Microsecond), "waits of %v", c.waits)
		require.Equal(t, defaultBusyPoll, fixed.busyFor())
	}
	p := poller{busy: defaultBusyPoll, adapts: true}
	for range 100 {
		p.waited(60 * time.Microsecond)
	}
	p.waited(time.Second) // one late answer
	require.Greater(t, p.busyFor(), defaultBusyPoll)
	for range 4 {
		p.waited(time.Second)
	}
	require.Equal(t, defaultBusyPoll, p.busyFor())
	p.skip = 1
	require.Zero(t, p.busyFor())
	require.Equal(t, defaultBusyPoll, p.busyFor())
}
