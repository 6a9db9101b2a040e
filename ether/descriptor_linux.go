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

// descriptor is the socket of a batch. Waiting happens in the runtime's network poller: a
// blocking system call would keep the processor of its goroutine for a while, and with it
// the goroutines that have just become runnable there.
//
// The network poller does not watch the socket itself. It would wake a thread for every
// datagram received, even while another goroutine polls, and for every datagram sent, when
// the kernel reports free send memory. Such a wake-up is wasted and often takes the
// processor of the sending goroutine. Instead the poller watches one epoll descriptor per
// event. The epoll descriptor watches the socket from the start of a wait until the next
// poll that does not wait.
//
// The epoll descriptors are os.Files because a File reuses its deadline error; a net.Conn
// allocates one for every wait that a deadline ends.
type descriptor struct {
	file     *os.File // the socket; unknown to the network poller
	raw      syscall.RawConn
	readable epollWatch
	room     epollWatch
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
		return nil, fmt.Errorf("ether: watch the socket with epoll: %w", err)
	}
	return d, nil
}

func (d *descriptor) close() error {
	d.readable.close()
	d.room.close()
	return d.file.Close()
}

// poll calls f once without waiting, and disarms the watch: what f finds needs no wake-up.
func (d *descriptor) poll(f func(fd uintptr)) error {
	d.readable.disarm()
	return d.raw.Control(f)
}

// wake ends the present wait for received datagrams, or the next one.
func (d *descriptor) wake() {
	_ = d.readable.file.SetReadDeadline(time.Unix(1, 0)) // fails only after close
}

// awaitRoom returns when the send queue has room or the socket is closed.
func (d *descriptor) awaitRoom() {
	var w readinessWait
	w.init(d, &d.room, sendRoom)
	_, _ = w.run() // the only possible error is that the socket was closed
	d.room.disarm()
}

// epollWatch is an epoll descriptor that watches a socket for one event while armed.
type epollWatch struct {
	file       *os.File
	raw        syscall.RawConn
	socket     int
	events     uint32
	mu         sync.Mutex
	waiters    int
	event      unix.EpollEvent
	armed      atomic.Bool         // written under mu
	disarmCall func(epoll uintptr) // bound once, to avoid an allocation per call
}

func (w *epollWatch) open(socket int, events uint32) error {
	w.socket, w.events = socket, events
	w.disarmCall = w.disarmUnlessWaiting
	number, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return err
	}
	if err = unix.SetNonblock(number, true); err == nil {
		err = unix.EpollCtl(number, unix.EPOLL_CTL_ADD, socket, &w.event)
	}
	w.file = os.NewFile(uintptr(number), "udp")
	if err == nil {
		err = w.file.SetReadDeadline(time.Time{}) // fails if the network poller refused the file
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

// addWaiter counts a waiter and arms the watch. It reports whether the watch was disarmed.
func (w *epollWatch) addWaiter(epoll uintptr) (wasDisarmed bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.waiters++
	if wasDisarmed = !w.armed.Load(); wasDisarmed {
		w.setEvents(epoll, w.events)
	}
	return wasDisarmed
}

// removeWaiter leaves the watch armed, since the same goroutine usually waits again soon.
func (w *epollWatch) removeWaiter() {
	w.mu.Lock()
	w.waiters--
	w.mu.Unlock()
}

// disarm stops the watch unless a goroutine waits.
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
	event := uintptr(unsafe.Pointer(&w.event))
	_, _, _ = syscall.RawSyscall6(unix.SYS_EPOLL_CTL, epoll, unix.EPOLL_CTL_MOD, uintptr(w.socket), event, 0, 0)
}

// readinessWait repeats an attempt at every readiness event until it succeeds. It serves one
// goroutine at a time; run does not allocate.
type readinessWait struct {
	socket      *descriptor
	watch       *epollWatch
	attempt     func(fd uintptr) bool
	readCall    func(epoll uintptr) bool
	controlCall func(fd uintptr)
	done        bool
	registered  bool // counted among the waiters of watch
}

func (w *readinessWait) init(d *descriptor, on *epollWatch, attempt func(fd uintptr) bool) {
	w.socket, w.watch = d, on
	w.attempt = attempt
	w.controlCall = func(fd uintptr) { w.done = w.attempt(fd) }
	w.readCall = w.ready
}

func (w *readinessWait) ready(epoll uintptr) bool {
	if w.tryOnce() {
		return true
	}
	if w.registered {
		return false
	}
	w.registered = true
	// An event between the attempt and the arming may never be reported: try again.
	return w.watch.addWaiter(epoll) && w.tryOnce()
}

func (w *readinessWait) tryOnce() bool { return w.socket.raw.Control(w.controlCall) != nil || w.done }

// run waits until the attempt succeeds. It reports whether wake ended the wait first.
func (w *readinessWait) run() (woken bool, err error) {
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
