package ether

import (
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// descriptor is the socket as batches use it. Who waits for it does so in the runtime's
// network poller: a system call that blocks would keep the processor of the goroutine
// that makes it for a while, and with it the goroutines that it has just woken.
//
// But the poller does not look at the socket itself. It would be woken by every datagram,
// also while somebody looks for them without waiting; and by every one that is sent, when
// the kernel has done with its memory and tells that there is room again. Each time a
// thread is woken for nothing, and often it takes the processor of the one that is
// sending. So the socket is watched through descriptors of epoll that look at it while
// somebody waits, and then until somebody looks without waiting.
//
// They are files, whose errors are made once: a net.Conn makes one for every wait that is
// ended.
type descriptor struct {
	file     *os.File // the socket; the poller does not know it
	raw      syscall.RawConn
	readable epollWatch
	room     epollWatch
}

// newDescriptor takes the socket over from conn and closes that.
func newDescriptor(conn *net.UDPConn, raw syscall.RawConn) (*descriptor, error) {
	number := -1
	err := control(raw, func(fd int) (err error) {
		if number, err = unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 0); err != nil {
			return err
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("ether: descriptors: %w", err)
	}
	_ = conn.Close()
	// What may block goes to the poller; every call says MSG_DONTWAIT by itself.
	err = unix.SetNonblock(number, false)
	d := &descriptor{file: os.NewFile(uintptr(number), "udp")}
	if err == nil {
		d.raw, err = d.file.SyscallConn()
	}
	if err == nil {
		err = d.readable.open(number, unix.EPOLLIN)
	}
	if err == nil {
		err = d.room.open(number, unix.EPOLLOUT)
	}
	if err != nil {
		_ = d.close()
		return nil, fmt.Errorf("ether: descriptors: %w", err)
	}
	return d, nil
}

func (d *descriptor) close() error {
	d.readable.close()
	d.room.close()
	return d.file.Close()
}

// look calls f once, for one who does not wait: nobody shall be told of what he finds.
func (d *descriptor) poll(f func(fd uintptr)) error {
	d.readable.disarm()
	return d.raw.Control(f)
}

// write calls f once; the poller is not asked to wait.
func (d *descriptor) control(f func(fd uintptr)) error { return d.raw.Control(f) }

// ring ends a wait for something to receive: the present one, or the next.
func (d *descriptor) wake() {
	_ = d.readable.file.SetReadDeadline(time.Unix(1, 0)) // fails for a closed socket only
}

// awaitRoom returns when the socket has room, or is closed.
func (d *descriptor) awaitRoom() {
	var w readinessWait
	w.init(d, &d.room, func(fd uintptr) bool {
		p := [1]unix.PollFd{{Fd: int32(fd), Events: unix.POLLOUT}}
		n, err := unix.Poll(p[:], 0)
		return n > 0 || err != nil && err != unix.EINTR
	})
	_, _ = w.run() // the error can only be that the socket was closed
	d.room.disarm()
}

// watch is a descriptor of epoll that looks at a socket for one event while somebody
// waits for it.
type epollWatch struct {
	file       *os.File
	raw        syscall.RawConn
	socket     int
	events     uint32
	mu         sync.Mutex
	waiters    int
	event      unix.EpollEvent
	armed      atomic.Bool         // changed under mu
	disarmCall func(epoll uintptr) // made once
}

func (w *epollWatch) open(socket int, events uint32) error {
	w.socket, w.events, w.disarmCall = socket, events, w.disarmUnlessWaiting
	number, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return err
	}
	if err = unix.SetNonblock(number, true); err == nil {
		err = unix.EpollCtl(number, unix.EPOLL_CTL_ADD, socket, &w.event)
	}
	w.file = os.NewFile(uintptr(number), "udp")
	if err == nil {
		err = w.file.SetReadDeadline(time.Time{}) // whether the poller takes it
	}
	if err == nil {
		w.raw, err = w.file.SyscallConn()
	}
	return err
}

func (w *epollWatch) close() {
	if w.file != nil {
		_ = w.file.Close()
	}
}

// begin counts one who waits, and makes it look; fresh tells that it did not before.
func (w *epollWatch) addWaiter(epoll uintptr) (fresh bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.waiters++
	if fresh = !w.armed.Load(); fresh {
		w.setEvents(epoll, w.events)
	}
	return fresh
}

// end counts one off. It goes on looking, for who waits often, until somebody idles it.
func (w *epollWatch) removeWaiter() {
	w.mu.Lock()
	w.waiters--
	w.mu.Unlock()
}

// idle makes it look away, if nobody waits.
func (w *epollWatch) disarm() {
	if w.armed.Load() {
		_ = w.raw.Control(w.disarmCall)
	}
}

func (w *epollWatch) disarmUnlessWaiting(epoll uintptr) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.waiters == 0 && w.armed.Load() {
		w.setEvents(epoll, 0)
	}
}

func (w *epollWatch) setEvents(epoll uintptr, events uint32) {
	w.armed.Store(events != 0)
	w.event.Events = events
	_, _, _ = syscall.RawSyscall6(unix.SYS_EPOLL_CTL, epoll, unix.EPOLL_CTL_MOD, uintptr(w.socket), uintptr(unsafe.Pointer(&w.event)), 0, 0)
}

// wait calls something now and whenever there may be something for it, until it has found
// it. It is for one goroutine at a time and costs no allocation once it is made.
type readinessWait struct {
	socket           *descriptor
	watch            *epollWatch
	attempt          func(fd uintptr) bool
	readCall         func(epoll uintptr) bool
	controlCall      func(fd uintptr)
	done, registered bool // hung: it is counted among those who wait
}

func (w *readinessWait) init(d *descriptor, on *epollWatch, find func(fd uintptr) bool) {
	w.socket, w.watch, w.attempt = d, on, find
	w.controlCall = func(fd uintptr) { w.done = w.attempt(fd) }
	w.readCall = w.ready
}

func (w *readinessWait) ready(epoll uintptr) bool {
	if w.socket.raw.Control(w.controlCall) != nil || w.done {
		return true
	}
	if w.registered {
		return false
	}
	w.registered = true
	if !w.watch.addWaiter(epoll) {
		return false
	}
	// What came before may never be told.
	return w.socket.raw.Control(w.controlCall) != nil || w.done
}

// run does so; rung tells that ring ended the wait.
func (w *readinessWait) run() (rung bool, err error) {
	w.done = false
	err = w.watch.raw.Read(w.readCall)
	if w.registered {
		w.registered = false
		w.watch.removeWaiter()
	}
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		return true, w.watch.file.SetReadDeadline(time.Time{})
	case err == nil && !w.done:
		return false, net.ErrClosed
	}
	return false, err
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
