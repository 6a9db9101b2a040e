package ether

import (
	"fmt"
	"net"
	"os"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/p2pdc/p2pdc/internal/readiness"
)

// descriptor is the socket of a batch. Calls that wait for it wait in the runtime's network poller, as package
// readiness describes.
type descriptor struct {
	file     *os.File // the socket; unknown to the network poller
	number   uintptr  // of the socket: see batch.close
	raw      syscall.RawConn
	readable readiness.Watch
	room     readiness.Watch
}

// newDescriptor duplicates the socket of conn and closes conn.
func newDescriptor(conn *net.UDPConn, raw syscall.RawConn) (*descriptor, error) {
	number := -1
	err := control(raw, func(fd int) (err error) {
		number, err = unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 0)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("ether: duplicate the socket: %w", err)
	}
	_ = conn.Close()
	// os.NewFile registers a non-blocking descriptor with the network poller. Every call
	// on this one passes MSG_DONTWAIT instead.
	err = unix.SetNonblock(number, false)
	d := &descriptor{number: uintptr(number), file: os.NewFile(uintptr(number), "udp")}
	if err == nil {
		d.raw, err = d.file.SyscallConn()
	}
	if err == nil {
		err = d.readable.Open(number, unix.EPOLLIN)
	}
	if err == nil {
		err = d.room.Open(number, unix.EPOLLOUT)
	}
	if err != nil {
		_ = d.close()
		return nil, fmt.Errorf("ether: watch the socket with epoll: %w", err)
	}
	return d, nil
}

func (d *descriptor) close() error {
	d.stopWaits()
	return d.file.Close()
}

// stopWaits makes the calls that wait return, and later ones not wait.
func (d *descriptor) stopWaits() {
	d.readable.Close()
	d.room.Close()
}

// wake ends the present wait for received datagrams, or the next one.
func (d *descriptor) wake() {
	d.readable.Wake()
}

// awaitRoom returns when the send queue has room or the socket is closed.
func (d *descriptor) awaitRoom() {
	var w readiness.Wait
	w.Init(d.raw, &d.room, sendRoom)
	_, _ = w.Run() // the only possible error is that the socket was closed
	d.room.Disarm()
}

// hasBatch reports whether the kernel has sendmmsg, and therefore recvmmsg.
func hasBatch(raw syscall.RawConn) bool {
	return control(raw, func(fd int) error {
		_, _, errno := unix.Syscall6(unix.SYS_SENDMMSG, uintptr(fd), 0, 0, unix.MSG_DONTWAIT, 0, 0)
		if errno == unix.ENOSYS {
			return errno
		}
		return nil
	}) == nil
}
