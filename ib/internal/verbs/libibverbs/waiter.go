//go:build linux && (amd64 || arm64) && !nolibibverbs

package libibverbs

import (
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Results of a take that are no failures.
const (
	errnoAgain  = syscall.EAGAIN
	errnoClosed = syscall.Errno(1 << 20)
)

// waiter waits for a descriptor of the library's in Go's poller, so that who waits
// holds no thread. What is readable is read by the library: the waiter only waits.
type waiter struct {
	file *os.File // of a duplicate: the library closes its own
	raw  syscall.RawConn

	mu          sync.Mutex
	woken       bool // a wake that no wait has returned for
	closed      bool // closed
	deadlineSet bool // the deadline is set
	ready       func(fd uintptr) bool
	pollFDs     []unix.PollFd
}

func newWaiter(fd int, name string) (*waiter, error) {
	if err := unix.SetNonblock(fd, true); err != nil {
		return nil, fmt.Errorf("verbs: %s: %w", name, err)
	}
	dup, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("verbs: %s: %w", name, err)
	}
	w := &waiter{file: os.NewFile(uintptr(dup), name), pollFDs: make([]unix.PollFd, 1)}
	w.ready = w.readable
	if w.raw, err = w.file.SyscallConn(); err != nil {
		w.file.Close()
		return nil, fmt.Errorf("verbs: %s: %w", name, err)
	}
	return w, nil
}

// readable looks whether there is something to read, or an error to find.
func (w *waiter) readable(fd uintptr) bool {
	w.pollFDs[0] = unix.PollFd{Fd: int32(fd), Events: unix.POLLIN}
	n, err := unix.Poll(w.pollFDs, 0)
	return n > 0 || err != nil && err != unix.EINTR
}

// wait blocks until the descriptor is readable (true), or until timeout (negative:
// none) or wake (false). One goroutine at a time.
func (w *waiter) wait(timeout time.Duration) (bool, error) {
	if stop, err := w.arm(timeout); stop || err != nil {
		return false, err
	}
	err := w.raw.Read(w.ready)
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case w.closed:
		return false, net.ErrClosed
	case err == nil:
		return true, nil
	case errors.Is(err, os.ErrDeadlineExceeded):
		w.woken = false
		return false, nil
	}
	return false, err
}

// arm sets the deadline, unless a wake has come before: then there is no wait.
func (w *waiter) arm(timeout time.Duration) (stop bool, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return false, net.ErrClosed
	}
	if w.woken {
		w.woken = false
		return true, nil
	}
	switch {
	case timeout >= 0:
		w.deadlineSet, err = true, w.file.SetReadDeadline(time.Now().Add(timeout))
	case w.deadlineSet:
		w.deadlineSet, err = false, w.file.SetReadDeadline(time.Time{})
	}
	return false, err
}

// wake ends the wait that is, or else the next one.
func (w *waiter) wake() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.woken, w.deadlineSet = true, true
	_ = w.file.SetReadDeadline(time.Unix(1, 0)) // fails after close only, which wakes too
}

func (w *waiter) close() {
	w.mu.Lock()
	w.closed = true
	w.mu.Unlock()
	w.file.Close()
}
