//go:build linux

package netlab

import (
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// watch is how a link's thread sleeps until there is something to do. The last
// descriptor is an eventfd to wake it.
type watch struct {
	fds    []unix.PollFd
	active time.Duration // when there was something to do last
}

func newWatch(fds ...int) *watch {
	w := &watch{}
	for _, fd := range fds {
		w.fds = append(w.fds, unix.PollFd{Fd: int32(fd), Events: unix.POLLIN})
	}
	_ = unix.Prctl(unix.PR_SET_TIMERSLACK, 1, 0, 0, 0)
	return w
}

// A thread that comes back from a blocking call waits until the runtime has a
// processor for it, and on a busy machine the threads that have them all may wait for a
// turn: tenths of a second. So while packets are about, the call is one that the runtime
// does not see, and short, because a garbage collection must wait for it.
const (
	shortSleep = time.Millisecond
	restAfter  = 100 * time.Millisecond
)

// sleep returns when a packet may have come, by the time until at the latest, or
// earlier. now tells the time.
func (w *watch) sleep(now func() time.Duration, until time.Duration) error {
	begin := now()
	if until != never {
		w.active = begin
	}
	if begin-w.active > restAfter {
		n, err := unix.Ppoll(w.fds, nil, nil)
		if n > 0 {
			w.active = now()
		}
		if err != nil && err != unix.EINTR {
			return err
		}
	} else {
		t := unix.NsecToTimespec(max(0, min(until-begin, shortSleep)).Nanoseconds())
		n, _, errno := unix.RawSyscall6(unix.SYS_PPOLL, uintptr(unsafe.Pointer(&w.fds[0])), uintptr(len(w.fds)), uintptr(unsafe.Pointer(&t)), 0, 0, 0)
		if errno != 0 && errno != unix.EINTR {
			return errno
		}
		if errno == 0 && n > 0 {
			w.active = begin
		}
	}
	if last := &w.fds[len(w.fds)-1]; last.Revents != 0 {
		last.Revents = 0
		var count [8]byte
		_, _ = unix.Read(int(last.Fd), count[:])
	}
	return nil
}
