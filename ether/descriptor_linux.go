package ether

import (
	"errors"
	"fmt"
	"net"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// descriptor is the socket as batches use it: inside the runtime's network poller. A
// system call that blocks would keep the processor of the goroutine that makes it for
// a while, and with it the goroutines that it has just woken.
//
// It is a file, whose errors are made once: a net.Conn makes one for every wait that is
// ended.
type descriptor struct {
	file *os.File
	raw  syscall.RawConn
}

// newDescriptor takes the socket over from conn and closes that.
func newDescriptor(conn *net.UDPConn, raw syscall.RawConn) (d descriptor, err error) {
	number := -1
	err = control(raw, func(fd int) (err error) {
		number, err = unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 0)
		return err
	})
	if err != nil {
		return d, fmt.Errorf("ether: descriptors: %w", err)
	}
	d.file = os.NewFile(uintptr(number), "udp") // it is non-blocking, as conn's is
	if d.raw, err = d.file.SyscallConn(); err != nil {
		_ = d.file.Close()
		return d, fmt.Errorf("ether: %w", err)
	}
	_ = conn.Close()
	return d, nil
}

// wait calls f, which tells whether it has found something, now and whenever there may
// be something to receive, until it has. rung tells that ring ended the wait.
func (d descriptor) wait(f func(fd uintptr) bool) (rung bool, err error) {
	if err = d.raw.Read(f); !errors.Is(err, os.ErrDeadlineExceeded) {
		return false, err
	}
	return true, d.file.SetReadDeadline(time.Time{})
}

// look calls f once.
func (d descriptor) look(f func(fd uintptr)) error { return d.raw.Control(f) }

// write calls f once; the poller is not asked to wait.
func (d descriptor) write(f func(fd uintptr) bool) error { return d.raw.Write(f) }

// ring ends a wait: the present one, or the next.
func (d descriptor) ring() {
	_ = d.file.SetReadDeadline(time.Unix(1, 0)) // fails for a closed socket only
}

// hasBatch tells whether the kernel has sendmmsg; whatever has that has recvmmsg.
func hasBatch(raw syscall.RawConn) bool {
	return control(raw, func(fd int) error {
		if _, _, errno := unix.Syscall6(unix.SYS_SENDMMSG, uintptr(fd), 0, 0, unix.MSG_DONTWAIT, 0, 0); errno == unix.ENOSYS {
			return errno
		}
		return nil
	}) == nil
}
