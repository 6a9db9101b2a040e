package ether

import (
	"net"
	"runtime"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/p2pdc/p2pdc/internal/await"
	"github.com/p2pdc/p2pdc/internal/readiness"
	"github.com/p2pdc/p2pdc/microproto"
)

func openPair(t *testing.T) (a, b *Link, toA, toB microproto.LinkAddr) {
	t.Helper()
	links := [2]*Link{}
	for i := range links {
		l, err := Open(Config{Listen: "127.0.0.1"})
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, l.Close()) })
		links[i] = l
	}
	a, b = links[0], links[1]
	if a.batch == nil {
		t.Skip("the kernel has no sendmmsg")
	}
	oa, err := a.Offer("b")
	require.NoError(t, err)
	ob, err := b.Offer("a")
	require.NoError(t, err)
	toB, err = a.Accept(ob)
	require.NoError(t, err)
	toA, err = b.Accept(oa)
	require.NoError(t, err)
	return a, b, toA, toB
}

func sendOne(t *testing.T, l *Link, to microproto.LinkAddr, n int) {
	t.Helper()
	f := l.Acquire(n)
	f.Peer = to
	k, err := l.Send([]microproto.Frame{f})
	require.NoError(t, err)
	require.Equal(t, 1, k)
}

// wouldWake reports whether the epoll descriptor would wake a waiting goroutine now.
func wouldWake(t *testing.T, w *readiness.Watch) bool {
	t.Helper()
	ready := false
	require.NoError(t, w.Control(func(fd uintptr) {
		p := [1]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
		n, err := unix.Poll(p[:], 0)
		require.NoError(t, err)
		ready = n > 0
	}))
	return ready
}

// Sent datagrams, and received ones while no goroutine waits, cause no wake-up.
func TestSocketIsWatchedOnlyDuringAWait(t *testing.T) {
	a, b, toA, toB := openPair(t)
	for range 100 {
		sendOne(t, a, toB, 1000)
		sendOne(t, b, toA, 1000)
	}
	for _, l := range []*Link{a, b} {
		require.False(t, wouldWake(t, &l.batch.readable), "datagrams wait, but no goroutine does")
		require.False(t, wouldWake(t, &l.batch.room), "there is room, but no goroutine waits for it")
	}
	batch := make([]microproto.Frame, 8)
	for got := 0; got < 100; { // the datagrams are there: Recv does not wait
		n, err := b.Recv(batch)
		require.NoError(t, err)
		release(batch[:n])
		got += n
	}
	done := make(chan error)
	go func() {
		n, err := b.Recv(batch)
		release(batch[:n])
		done <- err
	}()
	watched := func() bool {
		w := &b.batch.readable
		return w.Waiters() == 1
	}
	await.Until(t, watched, "a receiver that waits")
	sendOne(t, a, toB, 1000)
	require.NoError(t, <-done)
	require.False(t, watched())
	n, err := b.TryRecv(batch) // disarms the watch
	require.NoError(t, err)
	require.Zero(t, n)
	sendOne(t, a, toB, 1000)
	require.False(t, wouldWake(t, &b.batch.readable))
}

// A wait ends when a datagram arrives at any moment between its first attempt and the arming of
// the watch, while other goroutines wait, poll or wake.
func TestWaitMissesNoDatagram(t *testing.T) {
	a, b, toA, toB := openPair(t)
	const rounds = 3000
	echo := make(chan error, 1)
	go func() {
		batch := make([]microproto.Frame, 4)
		for range rounds {
			n, err := b.Recv(batch)
			if err != nil {
				echo <- err
				return
			}
			release(batch[:n])
			f := b.Acquire(8)
			f.Peer = toA
			if _, err := b.Send([]microproto.Frame{f}); err != nil {
				echo <- err
				return
			}
		}
		echo <- nil
	}()
	batch := make([]microproto.Frame, 4)
	for i := range rounds {
		sendOne(t, a, toB, 8)
		if i%3 == 1 {
			a.Wake() // ends one wait
		}
		for got := 0; got == 0; {
			var err error
			switch i % 3 {
			case 0:
				got, err = a.AwaitRecv(batch)
			case 1:
				got, err = a.RecvTrains(batch)
			default:
				got, err = a.TryRecv(batch)
				if err == nil && got == 0 {
					got, err = a.AwaitRecv(batch)
				}
			}
			require.NoError(t, err, "round %d", i)
			release(batch[:got])
		}
	}
	require.NoError(t, <-echo)
}

// A wait for room ends when there is room, and when the socket is closed.
func TestAwaitRoom(t *testing.T) {
	a, _, _, _ := openPair(t)
	over := make(chan struct{})
	a.Writable(func() { close(over) })
	<-over
	require.Zero(t, a.batch.room.Waiters())
	require.False(t, wouldWake(t, &a.batch.room))
	require.NoError(t, a.Close())
	over = make(chan struct{})
	a.Writable(func() { close(over) })
	<-over
	_, err := a.Recv(make([]microproto.Frame, 1))
	require.ErrorIs(t, err, net.ErrClosed)
}

// A call that polls reports room itself: on a machine whose processors are all busy, the goroutine that waits for it
// runs after a time slice, in which the device would be idle.
func TestPollingReportsRoom(t *testing.T) {
	a, _, _, _ := openPair(t)
	a.watchesRoom = true // by a goroutine that does not run
	calls := 0
	a.Writable(func() { calls++ })
	require.Zero(t, calls)
	for range 2 {
		n, err := a.TryRecv(make([]microproto.Frame, 1))
		require.NoError(t, err)
		require.Zero(t, n)
		require.Equal(t, 1, calls, "once for each call of Writable")
	}
	a.watchRoom() // nobody waits any more
	require.Equal(t, 1, calls)
	require.False(t, a.watchesRoom)
}

// Close leaves the socket's number alone while a call uses it: after that another socket may get it.
func TestCloseWaitsForCalls(t *testing.T) {
	for name, held := range map[string]func(*batch) *sync.Mutex{
		"Send":    func(b *batch) *sync.Mutex { return &b.sender.mu },
		"Recv":    func(b *batch) *sync.Mutex { return &b.blocking.mu },
		"TryRecv": func(b *batch) *sync.Mutex { return &b.polling.mu },
	} {
		a, _, _, toB := openPair(t)
		mu, closed := held(a.batch), make(chan error, 1)
		mu.Lock()
		go func() { closed <- a.Close() }()
		await.Until(t, a.closed.Load, "Close to begin")
		for range 1000 {
			runtime.Gosched()
		}
		_, err := unix.FcntlInt(a.batch.number, unix.F_GETFD, 0)
		require.NoError(t, err, "%s is under way, but the socket is closed", name)
		mu.Unlock()
		require.NoError(t, <-closed)
		f := a.Acquire(1)
		f.Peer = toB
		_, err = a.Send([]microproto.Frame{f})
		require.ErrorIs(t, err, net.ErrClosed)
		f.Release()
		_, err = a.TryRecv(make([]microproto.Frame, 1))
		require.ErrorIs(t, err, net.ErrClosed)
	}
}

// A datagram arrives between the first attempt and the arming, after an earlier wait was ended by
// a datagram. The kernel does not report it, since it has reported that the socket is readable.
func TestWaitTriesAgainAfterArming(t *testing.T) {
	a, b, _, toB := openPair(t)
	d, batch := b.batch.descriptor, make([]microproto.Frame, 4)
	for range 20 {
		last := make(chan error)
		go func() {
			n, err := b.Recv(batch)
			release(batch[:n])
			last <- err
		}()
		await.Until(t, func() bool {
			return d.readable.Waiters() == 1
		}, "a receiver that waits")
		sendOne(t, a, toB, 8)
		require.NoError(t, <-last)
		d.readable.Disarm()
		looks := 0
		var w readiness.Wait
		w.Init(d.raw, &d.readable, func(uintptr) bool {
			if looks++; looks == 1 {
				sendOne(t, a, toB, 8)
				return false
			}
			return true
		})
		woken, err := w.Run() // blocks for ever unless it tries again
		require.NoError(t, err)
		require.False(t, woken)
		n, err := b.Recv(batch)
		require.NoError(t, err)
		release(batch[:n])
	}
}
