package driver

import (
	"fmt"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// alarm is a timer that rings more precisely than the runtime's: a timerfd read
// through the network poller (a hundred microseconds asked are about 130; the
// runtime's timers give a millisecond).
type alarm struct {
	mu     sync.Mutex
	fd     int
	file   *os.File
	closed bool
	ticks  [8]byte // of wait
}

func newAlarm() (*alarm, error) {
	fd, err := unix.TimerfdCreate(unix.CLOCK_MONOTONIC, unix.TFD_NONBLOCK|unix.TFD_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("driver: timerfd: %w", err)
	}
	return &alarm{fd: fd, file: os.NewFile(uintptr(fd), "timerfd")}, nil
}

// set makes wait return once d has passed, and forgets what was set before.
func (a *alarm) set(d time.Duration) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.closed {
		return
	}
	spec := unix.ItimerSpec{Value: unix.NsecToTimespec(int64(max(d, 1)))}
	// It fails for a bad descriptor or value only, and neither can be.
	_ = unix.TimerfdSettime(a.fd, 0, &spec, nil)
}

// wait blocks until the alarm rings or is closed.
func (a *alarm) wait() error {
	_, err := a.file.Read(a.ticks[:])
	return err
}

func (a *alarm) close() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.closed {
		a.closed = true
		_ = a.file.Close()
	}
}
