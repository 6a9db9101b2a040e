package driver

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/p2pdc/p2pdc/ether"
	"github.com/p2pdc/p2pdc/internal/await"
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

// A call that must not poll sleeps at once, and the goroutine of the rail never parks for it.
func TestDisableBusyPoll(t *testing.T) {
	n := start(t, "a", func(c *Config) {
		c.BusyPoll = time.Second
		overEthernet(c)
	})
	require.Equal(t, time.Second, n.poll.busyFor())
	n.DisableBusyPoll()
	require.Zero(t, n.poll.busyFor())
	n.mu.Lock()
	defer n.unlock()
	for range 2 * oftenAsleep {
		n.poll.last = n.now().Add(time.Hour)
		require.Nil(t, n.acquirePoll())
		require.False(t, n.rails[0].mustPark(1))
	}
}

// A call that waits receives from the rail by which frames come, and stays with it while it is busy. The goroutines of
// the other rails receive meanwhile.
func TestCallsReceiveFromTheBusyRail(t *testing.T) {
	n := start(t, "a", func(c *Config) {
		c.BusyPoll = time.Second
		l, err := shm.Open(shm.Config{Name: "a", Memory: shm.NewMemory()})
		require.NoError(t, err)
		c.Rails = append(c.Rails, Rail{Network: p2psap.Memory, Link: l})
		overEthernet(c)
	})
	n.mu.Lock()
	defer n.unlock()
	base, memory := n.rails[0], n.rails[1]
	acquire := func() *railPort {
		n.poll.last = n.now().Add(time.Hour) // no pause since the last poll, however busy the machine is
		r := n.acquirePoll()
		if r != nil {
			require.Same(t, r, n.poll.rail)
			n.releasePoll(n.poll.last, true)
		}
		return r
	}
	require.Nil(t, acquire(), "its goroutine receives")
	require.False(t, base.mustPark(0), "it has woken no call")
	require.False(t, memory.mustPark(1), "frames come by the other rail")
	require.True(t, base.mustPark(1), "calls receive")
	require.Same(t, base, acquire())
	n.poll.recent, base.arrived = memory, n.now().Add(time.Hour)
	require.Same(t, base, acquire(), "frames come by it, too")
	base.arrived = n.now().Add(-time.Hour)
	require.Nil(t, acquire())
	require.Len(t, base.resume, 1, "its goroutine goes on")
	require.True(t, memory.mustPark(1))
	require.Same(t, memory, acquire())
}

// A receiver's goroutine parks only when calls wait often, and it has woken all that slept.
func TestReceiverParksForCallsThatWaitOften(t *testing.T) {
	n := start(t, "a", func(c *Config) { c.BusyPoll = time.Second })
	n.mu.Lock()
	defer n.unlock()
	base := n.rails[0]
	n.poll.last = n.now().Add(-time.Hour)
	require.Nil(t, n.acquirePoll())
	require.False(t, base.mustPark(1), "the last wait was long ago")
	n.poll.last = n.now().Add(time.Hour)
	require.Nil(t, n.acquirePoll())
	n.poll.sleeping = 1
	require.False(t, base.mustPark(2), "another call sleeps")
	n.poll.sleeping = 0
	require.True(t, base.mustPark(2))
	n.resumeReceiver()
}

// The goroutine that wakes a sleeping call and parks leaves the acknowledgement to the call's answer. The alarm never
// fires in this test.
func TestAnswerCarriesAcknowledgement(t *testing.T) {
	still := func(c *Config) {
		overEthernet(c)
		c.Heartbeat, c.PeerTimeout = time.Hour, 8*time.Hour
	}
	a, b := start(t, "a", still), start(t, "b", still)
	join(t, a, b)
	ctx := limit(t)
	sa, sb := open(t, a, b, options("s", microproto.ModeSynchronous))
	received := make(chan error)
	go func() {
		_, err := sb.Receive(ctx, &p2psap.Slot{Tag: 2, Data: make([]byte, 8)})
		received <- err
	}()
	await.Until(t, func() bool {
		b.mu.Lock()
		defer b.mu.Unlock()
		if b.poll.sleeping == 0 {
			return false
		}
		b.poll.next, b.armed = b.rails[0], 0
		b.alarm.set(time.Hour)
		return true
	}, "the call sleeps")
	sent := func() uint64 { return b.rails[0].link.(*ether.Link).Stats().FramesSent }
	before := sent()
	transfer, err := sa.TrySend(2, 1, []byte("8 bytes."))
	require.NoError(t, err)
	require.NoError(t, <-received)
	require.Equal(t, before, sent())
	require.Less(t, accepted(a, sa), transfer)
	_, err = sb.TrySend(2, 1, []byte("8 bytes."))
	require.NoError(t, err)
	require.Equal(t, before+1, sent())
	_, err = sa.Receive(ctx, &p2psap.Slot{Tag: 2, Data: make([]byte, 8)})
	require.NoError(t, err)
	require.Equal(t, transfer, accepted(a, sa))
}

// Where calls do not poll, only many waits in succession park the goroutine.
func TestReceiverParksLateWithoutPolling(t *testing.T) {
	p, now := poller{busy: -1}, microproto.Instant(time.Hour)
	waits := func(count int, apart time.Duration) (often bool) {
		for range count {
			p.last, now = now, now.Add(apart)
			often = p.oftenAt(now)
		}
		return often
	}
	require.False(t, waits(oftenAsleep-1, pollGrace))
	require.False(t, waits(1, pollGrace+1), "a pause")
	require.False(t, waits(oftenAsleep-1, pollGrace))
	require.True(t, waits(1, pollGrace))
	p = poller{busy: time.Second}
	require.False(t, waits(1, pollGrace+1))
	require.True(t, waits(1, pollGrace))
}

// While calls go on to poll, they set the alarm again before it fires, and seldom; it fires soon after they have
// stopped.
func TestTimerSleepsWhileCallsPoll(t *testing.T) {
	n := start(t, "a", nil)
	n.mu.Lock()
	defer n.unlock()
	now := n.now()
	n.poll.rail, n.poll.grace = n.rails[0], pollGrace
	n.poll.last = now
	n.armed = n.nextAlarm()
	require.Equal(t, now.Add(pollGrace), n.armed)
	sets := 0
	for range 1000 {
		now = now.Add(10 * time.Microsecond)
		before := n.armed
		require.Greater(t, before, now)
		n.poll.last = now
		n.postponeAlarm(now)
		if n.armed != before {
			sets++
		}
	}
	require.LessOrEqual(t, sets, 21, "in 10 ms")
	require.LessOrEqual(t, n.armed, now.Add(pollTimeout))
	n.expirePoll(now.Add(pollGrace - 1))
	require.NotNil(t, n.poll.rail)
	n.expirePoll(now.Add(pollGrace))
	require.Nil(t, n.poll.rail)
}

// What the alarm would have run when it is set again, runs then: a heartbeat, however many messages arrive.
func TestPostponedAlarmRunsTimers(t *testing.T) {
	a, b := start(t, "a", nil), start(t, "b", nil)
	join(t, a, b)
	a.mu.Lock()
	defer a.unlock()
	require.Less(t, a.core.Deadline(), microproto.Never)
	later := a.core.Deadline().Add(time.Millisecond)
	a.postponeAlarm(later)
	require.Greater(t, a.core.Deadline(), later)
	require.Equal(t, later.Add(a.poll.grace), a.armed)
}

// Frames that come while a call polls pay for the next polls. One that comes later does not.
func TestLateFramesMakePollingStop(t *testing.T) {
	p := poller{busy: defaultBusyPoll}
	for _, skipped := range []int{0, 1, 3, 7, 15, 31, 63, 63} {
		p.polled(false)
		for range skipped {
			require.Zero(t, p.busyFor())
		}
		require.Equal(t, defaultBusyPoll, p.busyFor())
	}
	p.polled(true)
	p.polled(false)
	require.Equal(t, defaultBusyPoll, p.busyFor())
}
