package readiness

import (
	"errors"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Watch watches a descriptor for one event while goroutines wait for it.
//
// Waiting happens in the runtime's network poller: a blocking system call would keep the processor of its
// goroutine for a while, and with it the goroutines that have just become runnable there (but see Wait.Block).
// The poller does not watch the descriptor itself. It would wake a thread for every arrival, even while another goroutine
// polls. Such a wake-up is wasted and often takes the processor of the sending goroutine. Instead the poller
// watches an epoll descriptor. That one watches the descriptor from the start of a wait until Disarm.
//
// The epoll descriptor is an os.File because a File reuses its deadline error; a net.Conn allocates one for
// every wait that a deadline ends.
type Watch struct {
	file       *os.File
	raw        syscall.RawConn
	watched    int
	events     uint32
	mu         sync.Mutex
	waiters    int
	event      unix.EpollEvent
	armed      atomic.Bool         // written under mu
	disarmCall func(epoll uintptr) // bound once, to avoid an allocation per call
	blocking   *blocking           // nil: no Wait blocks
}

// Open starts a watch of a descriptor for events such as unix.EPOLLIN.
func (w *Watch) Open(descriptor int, events uint32) error {
	w.watched, w.events = descriptor, events
	w.disarmCall = w.disarmUnlessWaiting
	number, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return err
	}
	if err = unix.SetNonblock(number, true); err == nil {
		err = unix.EpollCtl(number, unix.EPOLL_CTL_ADD, descriptor, &w.event)
	}
	w.file = os.NewFile(uintptr(number), "epoll")
	if err == nil {
		err = w.file.SetReadDeadline(time.Time{}) // fails if the network poller refused the file
	}
	if err == nil {
		w.raw, err = w.file.SyscallConn()
	}
	return err
}

// Close ends the watch and every wait.
func (w *Watch) Close() {
	if w.file == nil {
		return
	}
	b := w.blocking
	if b != nil {
		b.close(w)
	}
	// The file waits for the system calls of Control, after which nobody uses the eventfd.
	if err := w.file.Close(); err == nil && b != nil {
		_ = unix.Close(b.event)
	}
}

// Wake ends the present wait, or the next one.
func (w *Watch) Wake() { _ = w.setWoken(true) } // fails only after Close

// setWoken begins or ends the effect of Wake.
func (w *Watch) setWoken(woken bool) error {
	deadline := time.Time{}
	if woken {
		deadline = time.Unix(1, 0)
	}
	if w.blocking != nil {
		return w.blocking.setWoken(w, woken, deadline)
	}
	return w.file.SetReadDeadline(deadline)
}

// Waiters returns the number of goroutines that wait.
func (w *Watch) Waiters() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.waiters
}

// addWaiter counts a waiter and arms the watch. It reports whether the watch was disarmed.
func (w *Watch) addWaiter(epoll uintptr) (wasDisarmed bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.waiters++
	if wasDisarmed = !w.armed.Load(); wasDisarmed {
		w.setEvents(epoll, w.events)
	}
	return wasDisarmed
}

// removeWaiter leaves the watch armed, since the same goroutine usually waits again soon.
func (w *Watch) removeWaiter() {
	w.mu.Lock()
	w.waiters--
	w.mu.Unlock()
}

// Disarm stops watching unless a goroutine waits. A caller that polls calls it: what it finds must not
// wake a thread.
func (w *Watch) Disarm() {
	if w.armed.Load() {
		_ = w.Control(w.disarmCall)
	}
}

// Control calls f with the epoll descriptor, which stays open meanwhile.
func (w *Watch) Control(f func(epoll uintptr)) error { return w.raw.Control(f) }

func (w *Watch) disarmUnlessWaiting(epoll uintptr) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.waiters == 0 && w.armed.Load() {
		w.setEvents(epoll, 0)
	}
}

func (w *Watch) setEvents(epoll uintptr, events uint32) {
	w.armed.Store(events != 0)
	w.event.Events = events
	event := uintptr(unsafe.Pointer(&w.event))
	_, _, _ = syscall.RawSyscall6(unix.SYS_EPOLL_CTL, epoll, unix.EPOLL_CTL_MOD, uintptr(w.watched), event, 0, 0)
}

// Wait repeats an attempt at every event of a Watch until it succeeds. It serves one goroutine at a time; Run
// does not allocate.
type Wait struct {
	raw         syscall.RawConn
	watch       *Watch
	attempt     func(fd uintptr) bool
	readCall    func(epoll uintptr) bool
	controlCall func(fd uintptr)
	done        bool
	registered  bool // counted among the waiters of watch
	blocks      bool // see Block
}

// Init sets the wait up. attempt gets the descriptor of raw and reports whether it has succeeded.
func (w *Wait) Init(raw syscall.RawConn, on *Watch, attempt func(fd uintptr) bool) {
	w.raw, w.watch = raw, on
	w.attempt = attempt
	w.controlCall = func(fd uintptr) { w.done = w.attempt(fd) }
	w.readCall = w.ready
}

func (w *Wait) ready(epoll uintptr) bool {
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

func (w *Wait) tryOnce() bool { return w.raw.Control(w.controlCall) != nil || w.done }

// Run waits until the attempt succeeds. It reports whether Wake ended the wait first. After the watch or the
// descriptor is closed it returns an error that is net.ErrClosed or os.ErrClosed.
func (w *Wait) Run() (woken bool, err error) {
	w.done = false
	if w.blocks && w.tryBlocking() {
		return false, nil
	}
	err = w.watch.raw.Read(w.readCall)
	if w.registered {
		w.registered = false
		w.watch.removeWaiter()
	}
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		return true, w.watch.setWoken(false)
	case err == nil && !w.done:
		return false, net.ErrClosed
	}
	return false, err
}
