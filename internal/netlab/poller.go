//go:build linux

package netlab

import (
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// poller waits for packets or the next deadline. The last descriptor is an eventfd that wakes the thread.
type poller struct {
	fds    []unix.PollFd
	active time.Duration // time of the last activity
}

func newPoller(fds ...int) *poller {
	w := &poller{}
	for _, fd := range fds {
		w.fds = append(w.fds, unix.PollFd{Fd: int32(fd), Events: unix.POLLIN})
	}
	_ = unix.Prctl(unix.PR_SET_TIMERSLACK, 1, 0, 0, 0)
	return w
}

// After a blocking call a thread waits until the Go runtime has a free processor. On a busy machine the
// threads that own the processors may themselves wait to be scheduled, for tenths of a second. While
// packets are in the link, the poller therefore uses a raw system call, which the runtime does not
// notice. The call is short, because a garbage collection waits for it.
const (
	shortSleep = time.Millisecond
	idleAfter  = 100 * time.Millisecond
)

// sleep returns when a packet may have arrived, at the time until at the latest, possibly earlier. now
// returns the current time.
func (w *poller) sleep(now func() time.Duration, until time.Duration) error {
	begin := now()
	if until != never {
		w.active = begin
	}
	if begin-w.active > idleAfter {
		n, err := unix.Ppoll(w.fds, nil, nil)
		if n > 0 {
			w.active = now()
		}
		if err != nil && err != unix.EINTR {
			return err
		}
	} else {
		t := unix.NsecToTimespec(max(0, min(until-begin, shortSleep)).Nanoseconds())
		n, _, errno := unix.RawSyscall6(unix.SYS_PPOLL, uintptr(unsafe.Pointer(&w.fds[0])), uintptr(len(w.fds)),
			uintptr(unsafe.Pointer(&t)), 0, 0, 0)
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
