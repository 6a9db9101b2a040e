package ether

import (
	"fmt"
	"net"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// descriptor is the socket outside the runtime's network poller, which would wake a
// thread for every datagram also while a caller looks for news itself. Whoever uses
// it holds mu for reading, so that its number is not another file's meanwhile.
type descriptor struct {
	mu               sync.RWMutex
	fd, bell, ending int // eventfds: bell ends one wait for datagrams, ending all waits
	closed           bool
}

// waits is what readable waits for; each of its callers has one.
type waits [3]unix.PollFd

// forever is a time without a limit.
const forever = time.Duration(-1)

// newDescriptor takes the socket over from conn and closes that.
func newDescriptor(conn *net.UDPConn) (*descriptor, error) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return nil, fmt.Errorf("ether: %w", err)
	}
	d := &descriptor{fd: -1, bell: -1, ending: -1}
	err = control(raw, func(fd int) (err error) {
		d.fd, err = unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 0)
		return err
	})
	for _, e := range []*int{&d.bell, &d.ending} {
		if err == nil {
			*e, err = unix.Eventfd(0, unix.EFD_NONBLOCK|unix.EFD_CLOEXEC)
		}
	}
	if err != nil {
		d.end()
		return nil, fmt.Errorf("ether: descriptors: %w", err)
	}
	_ = conn.Close()
	return d, nil
}

// use gives the socket's number, until done.
func (d *descriptor) use() (fd int, err error) {
	d.mu.RLock()
	if d.closed {
		d.mu.RUnlock()
		return -1, net.ErrClosed
	}
	return d.fd, nil
}

func (d *descriptor) done() { d.mu.RUnlock() }

// readable waits for a datagram; rung tells that ring has been called instead.
func (d *descriptor) readable(w *waits, limit time.Duration) (rung bool, err error) {
	fd, err := d.use()
	if err != nil {
		return false, err
	}
	defer d.done()
	for i, of := range [...]int{fd, d.bell, d.ending} {
		w[i] = unix.PollFd{Fd: int32(of), Events: unix.POLLIN}
	}
	var until *unix.Timespec
	if limit != forever {
		t := unix.NsecToTimespec(int64(limit))
		until = &t
	}
	if _, err := unix.Ppoll(w[:], until, nil); err != nil && err != unix.EINTR {
		return false, err
	}
	if w[1].Revents != 0 {
		var count [8]byte
		_, _ = unix.Read(d.bell, count[:]) // another waiter may have been faster
		return true, nil
	}
	return false, nil
}

// writable waits until the socket has room, or is closed.
func (d *descriptor) writable() {
	fd, err := d.use()
	if err != nil {
		return
	}
	defer d.done()
	p := [...]unix.PollFd{{Fd: int32(fd), Events: unix.POLLOUT}, {Fd: int32(d.ending), Events: unix.POLLIN}}
	for {
		if _, err := unix.Poll(p[:], -1); err != unix.EINTR {
			return
		}
	}
}

func ring(fd int) {
	one := [8]byte{1} // of either end first: any number but 0 rings
	_, _ = unix.Write(fd, one[:])
}

// ring ends a wait for datagrams: the present one, or the next.
func (d *descriptor) ring() {
	if _, err := d.use(); err == nil {
		ring(d.bell)
		d.done()
	}
}

// close ends every wait and returns when nobody uses the socket any more.
func (d *descriptor) close() {
	ring(d.ending)
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.closed {
		d.closed = true
		d.end()
	}
}

func (d *descriptor) end() {
	for _, fd := range []int{d.fd, d.bell, d.ending} {
		if fd >= 0 {
			_ = unix.Close(fd)
		}
	}
}

// hasBatch tells whether the kernel has sendmmsg; whatever has that has recvmmsg.
func hasBatch(conn *net.UDPConn) bool {
	raw, err := conn.SyscallConn()
	return err == nil && control(raw, func(fd int) error {
		if _, _, errno := unix.Syscall6(unix.SYS_SENDMMSG, uintptr(fd), 0, 0, unix.MSG_DONTWAIT, 0, 0); errno == unix.ENOSYS {
			return errno
		}
		return nil
	}) == nil
}
