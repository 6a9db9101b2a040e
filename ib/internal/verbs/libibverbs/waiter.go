//go:build linux && (amd64 || arm64) && !nolibibverbs

package libibverbs

import (
	"errors"
	"fmt"
	"net"
	"os"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// errnoClosed is the error number of takeEvent and takeEvents after Close.
const errnoClosed = syscall.Errno(1 << 20)

// waiter waits for a descriptor of the library in Go's network poller, without holding a
// thread. It does not read from it: the library does.
type waiter struct {
	file *os.File // of a duplicate: the library closes its own
	raw  syscall.RawConn

	closed  atomic.Bool
	ready   func(fd uintptr) bool // readable, bound once to avoid an allocation per wait
	pollFDs []unix.PollFd
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

// readable reports whether there is something to read or an error to find.
func (w *waiter) readable(fd uintptr) bool {
	w.pollFDs[0] = unix.PollFd{Fd: int32(fd), Events: unix.POLLIN}
	n, err := unix.Poll(w.pollFDs, 0)
	return n > 0 || err != nil && err != unix.EINTR
}

// wait blocks until the descriptor is readable, and returns true, or until wake, and returns false.
// One goroutine at a time may wait.
func (w *waiter) wait() (bool, error) {
	err := w.raw.Read(w.ready)
	switch {
	case w.closed.Load():
		return false, net.ErrClosed
	case errors.Is(err, os.ErrDeadlineExceeded):
		_ = w.file.SetReadDeadline(time.Time{}) // fails only after close
		return false, nil
	}
	return err == nil, err
}

// wake ends the present wait, or else the next one.
func (w *waiter) wake() {
	_ = w.file.SetReadDeadline(time.Unix(1, 0)) // fails only after close, which ends the wait too
}

func (w *waiter) close() {
	w.closed.Store(true)
	w.file.Close()
}
