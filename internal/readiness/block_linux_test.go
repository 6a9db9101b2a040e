package readiness

import (
	"os"
	"runtime"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/p2pdc/p2pdc/internal/await"
)

// pipe returns a Wait that reads a byte from a pipe and may block, its watch, and a function that writes one.
func pipe(t *testing.T) (*Wait, *Watch, func()) {
	if runtime.GOMAXPROCS(0) == 1 {
		defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(2))
	}
	var ends [2]int
	require.NoError(t, unix.Pipe2(ends[:], unix.O_CLOEXEC))
	from, to := os.NewFile(uintptr(ends[0]), "from"), os.NewFile(uintptr(ends[1]), "to")
	raw, err := from.SyscallConn()
	require.NoError(t, err)
	watch, wait := &Watch{}, &Wait{}
	require.NoError(t, watch.Open(ends[0], unix.EPOLLIN))
	t.Cleanup(func() {
		watch.Close()
		_ = from.Close()
		_ = to.Close()
	})
	wait.Init(raw, watch, func(fd uintptr) bool {
		p := [1]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
		if n, _ := unix.Poll(p[:], 0); n != 1 {
			return false
		}
		var one [1]byte
		_, err := syscall.Read(int(fd), one[:])
		return err == nil
	})
	require.NoError(t, wait.Block())
	return wait, watch, func() {
		_, err := to.Write([]byte{1})
		require.NoError(t, err)
	}
}

func (b *blocking) awaitBlocked(t *testing.T) {
	await.Until(t, b.blocked.Load, "the system call")
}

// A wait in a system call ends when the descriptor is ready, by Wake, and by Close.
func TestBlockingWaitEnds(t *testing.T) {
	wait, watch, write := pipe(t)
	b := watch.blocking
	type result struct {
		woken bool
		err   error
	}
	results := make(chan result)
	run := func() {
		b.skip = 0
		go func() {
			woken, err := wait.Run()
			results <- result{woken, err}
		}()
		b.awaitBlocked(t)
	}
	for range 20 {
		run()
		write()
		require.Equal(t, result{}, <-results)
		require.True(t, wait.done)
		run()
		watch.Wake()
		require.Equal(t, result{woken: true}, <-results)
		require.False(t, wait.done)
		require.False(t, b.woken.Load())
	}
	run()
	watch.Close()
	require.Error(t, (<-results).err)
}

// Wake is not lost when it comes before the wait, or while it begins or ends.
func TestWakeBeforeBlockingWait(t *testing.T) {
	wait, watch, write := pipe(t)
	b := watch.blocking
	watch.Wake()
	woken, err := wait.Run()
	require.NoError(t, err)
	require.True(t, woken)
	var wakes, ends atomic.Int64
	go func() {
		for range 500 {
			wakes.Add(1)
			watch.Wake()
			for ends.Load() < wakes.Load() {
				runtime.Gosched()
			}
		}
	}()
	for n := range int64(500) {
		b.skip = 0
		for woken := false; !woken; {
			woken, err = wait.Run()
			require.NoError(t, err)
		}
		require.Equal(t, n+1, wakes.Load())
		ends.Add(1)
	}
	write()
	woken, err = wait.Run()
	require.NoError(t, err)
	require.False(t, woken)
}

// Waits in system calls that last long make the next waits use the network poller, more of them each time.
func TestLongSystemCallsAreAvoided(t *testing.T) {
	var b blocking
	for _, skip := range []int{1, 2, 4, 8, 16, 32, 64, 64} {
		b.slept(longestBlock+1, true)
		require.Equal(t, skip, b.skip)
	}
	b.slept(longestBlock, false)
	b.slept(longestBlock+1, false)
	require.Equal(t, 64, b.skip, "Wake ended one soon")
	b.slept(longestBlock, true)
	b.slept(longestBlock+1, true)
	require.Equal(t, 1, b.skip)

	wait, watch, write := pipe(t)
	watch.blocking.skip = 1
	done := make(chan error)
	go func() {
		_, err := wait.Run()
		done <- err
	}()
	await.Until(t, func() bool { return watch.Waiters() == 1 }, "the network poller")
	require.False(t, watch.blocking.blocked.Load())
	require.Zero(t, watch.blocking.skip)
	write()
	require.NoError(t, <-done)
}

// Where goroutines have one processor in all, no wait keeps it.
func TestOneProcessorIsNotKept(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	var wait Wait
	wait.Init(nil, &Watch{}, nil)
	require.NoError(t, wait.Block())
	require.False(t, wait.blocks)
}
