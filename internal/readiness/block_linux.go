package readiness

import (
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// blocking makes the waits of one Wait sleep in a system call instead of the runtime's network poller. That takes three
// system calls and a pass of the scheduler less, but keeps the processor of the goroutine from the other goroutines of
// this process, for some milliseconds at worst. So a Wait sleeps so only while that ends soon, and never where
// goroutines have one processor in all.
type blocking struct {
	event   int         // an eventfd, which ends the system call
	blocked atomic.Bool // the system call is in progress, or about to begin
	mu      sync.Mutex
	woken   atomic.Bool // Wake was called, and no Run has returned for it; written under mu
	fds     [2]unix.PollFd
	call    func(epoll uintptr) // bound once, to avoid an allocation per call
	misses  int                 // system calls that lasted long since the last that ended soon
	skip    int                 // waits that shall not try
}

// longestBlock is how long a system call may sleep so that the next wait begins with one, too.
const longestBlock = 100 * time.Microsecond

// Block lets the waits of w sleep in a system call. Others must call Wake when such a wait has lasted for a millisecond
// or so. It is for one Wait of a Watch, between Init and the first Run.
func (w *Wait) Block() error {
	if runtime.GOMAXPROCS(0) == 1 {
		return nil
	}
	event, err := unix.Eventfd(0, unix.EFD_NONBLOCK|unix.EFD_CLOEXEC)
	if err != nil {
		return err
	}
	b := &blocking{event: event, call: w.block}
	b.fds[0] = unix.PollFd{Fd: int32(w.watch.watched), Events: int16(w.watch.events)}
	b.fds[1] = unix.PollFd{Fd: int32(event), Events: unix.POLLIN}
	w.blocks, w.watch.blocking = true, b
	return nil
}

// tryBlocking waits in a system call if such waits have ended soon. It reports whether the attempt has succeeded.
func (w *Wait) tryBlocking() bool {
	b := w.watch.blocking
	if b.skip > 0 {
		b.skip--
		return false
	}
	return w.watch.Control(b.call) == nil && w.done
}

func (w *Wait) block(epoll uintptr) {
	b := w.watch.blocking
	if w.watch.armed.Load() {
		w.watch.disarmUnlessWaiting(epoll)
	}
	b.blocked.Store(true)
	defer b.blocked.Store(false)
	for begin := time.Now(); !b.woken.Load(); {
		fds, count := uintptr(unsafe.Pointer(&b.fds)), uintptr(len(b.fds))
		_, _, errno := syscall.Syscall6(unix.SYS_PPOLL, fds, count, 0, 0, 0, 0)
		if errno == unix.EINTR {
			continue
		}
		if b.fds[1].Revents != 0 {
			var number [8]byte
			_, _ = unix.Read(b.event, number[:])
		}
		ready := b.fds[0].Revents != 0
		if ready || errno != 0 || b.woken.Load() {
			b.slept(time.Since(begin), ready)
			w.tryOnce()
			return
		}
	}
}

// slept records how long a system call lasted and whether the descriptor became ready. The more that lasted long, the
// more waits begin in the network poller.
func (b *blocking) slept(d time.Duration, ready bool) {
	if d > longestBlock {
		b.skip = 1 << min(b.misses, 6) // 64 at most
		b.misses++
	} else if ready {
		b.misses = 0
	}
}

// setWoken sets woken and the deadline of w, and ends the system call that is in progress.
func (b *blocking) setWoken(w *Watch, woken bool, deadline time.Time) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.woken.Store(woken)
	b.ring(w)
	return w.file.SetReadDeadline(deadline)
}

// close keeps system calls from beginning and ends the one that is in progress.
func (b *blocking) close(w *Watch) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.woken.Store(true)
	b.ring(w)
}

func (b *blocking) ring(w *Watch) {
	if !b.blocked.Load() {
		return
	}
	_ = w.Control(func(uintptr) {
		number := [8]byte{1} // any but 0; if the sum has no room, the event is set already
		_, _ = unix.Write(b.event, number[:])
	})
}
