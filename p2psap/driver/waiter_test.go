package driver

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/p2pdc/p2pdc/microproto"
	"github.com/p2pdc/p2pdc/p2psap"
	"github.com/p2pdc/p2pdc/shm"
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
		n.poll.last = n.now().Add(time.Hour) // no pause since the last poll, however busy the machine is
		from, _ := n.acquirePoll()
		if from != nil {
			n.releasePoll(n.now(), false)
		}
		return from != nil
	}
	require.True(t, polls())
	n.DisableBusyPoll()
	require.False(t, polls())
}

// A call that waits receives from the rail by which frames come, and stays with it while it is busy. The goroutines of
// the other rails receive meanwhile.
func TestCallsReceiveFromTheBusyRail(t *testing.T) {
	n := start(t, "a", func(c *Config) {
		c.BusyPoll = time.Second
		l, err := shm.Open(shm.Config{Name: "a", Memory: shm.NewMemory()})
		require.NoError(t, err)
		c.Rails = append(c.Rails, Rail{p2psap.Memory, l})
		overEthernet(c)
	})
	n.mu.Lock()
	defer n.unlock()
	base, memory := n.rails[0], n.rails[1]
	acquire := func() *railPort {
		n.poll.last = n.now().Add(time.Hour)
		r, _ := n.acquirePoll()
		require.NotNil(t, r)
		require.Same(t, r, n.poll.rail)
		n.releasePoll(n.poll.last, true)
		return r
	}
	require.Same(t, base, acquire())
	n.poll.recent, base.arrived = memory, n.now().Add(time.Hour)
	require.Same(t, base, acquire(), "frames come by it, too")
	base.arrived = n.now().Add(-time.Hour)
	require.Same(t, memory, acquire())
	require.True(t, memory.mustPark(), "calls receive")
	require.False(t, base.mustPark())
	n.poll.recent, memory.arrived = base, n.now().Add(-time.Hour)
	require.Same(t, base, acquire())
	require.False(t, memory.parked.Load(), "its goroutine goes on")
	require.Len(t, memory.resume, 1)
}

// The timer fires less and less often while calls poll, and again soon after they have stopped.
func TestTimerBacksOffWhileCallsPoll(t *testing.T) {
	n := start(t, "a", func(c *Config) { c.BusyPoll = time.Second })
	n.mu.Lock()
	defer n.unlock()
	now := n.now().Add(time.Hour)
	poll := func() {
		n.poll.last = n.now().Add(time.Hour)
		r, _ := n.acquirePoll()
		require.NotNil(t, r)
		n.releasePoll(now, true)
	}
	for _, want := range []time.Duration{200, 400, 800, 1000, 1000} {
		poll()
		require.Equal(t, now.Add(want*time.Microsecond), n.resumeAt())
		now = n.resumeAt()
		poll()
		n.expirePoll(now)
		require.NotNil(t, n.poll.rail)
	}
	n.expirePoll(n.resumeAt())
	require.Nil(t, n.poll.rail)
	poll()
	require.Equal(t, now.Add(pollGrace), n.resumeAt())
}
