package driver

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/p2pdc/p2pdc/microproto"
)

// A waiter whose time is over is woken once, and the timer is not set for it again: with more threads than
// processors it may run much later, and a timer that fires all that time would take the processor that it
// waits for.
func TestWaitersExpireOnce(t *testing.T) {
	early := &waiter{wake: make(chan struct{}, 1), until: 5}
	late := &waiter{wake: make(chan struct{}, 1), until: 20}
	ws := waiters{list: []*waiter{early, late}}
	ws.expire(4)
	require.Empty(t, early.wake)
	require.EqualValues(t, 5, ws.deadline())
	ws.expire(5)
	require.Len(t, early.wake, 1)
	require.Empty(t, late.wake)
	require.EqualValues(t, 20, ws.deadline())
	ws.expire(30)
	require.Len(t, late.wake, 1)
	require.Equal(t, microproto.Never, ws.deadline())
}

func TestDisableBusyPoll(t *testing.T) {
	n := start(t, "a", func(c *Config) { c.BusyPoll = time.Second })
	polls := func() bool {
		n.mu.Lock()
		defer n.unlock()
		n.poll.last = n.now()
		polls, _ := n.acquirePoll()
		if polls {
			n.releasePoll(n.now(), false)
		}
		return polls
	}
	require.True(t, polls())
	n.DisableBusyPoll()
	require.False(t, polls())
}
