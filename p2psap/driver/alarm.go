package driver

import (
	"sync"
	"time"
)

// alarm makes one goroutine wait until a time that others set, or until they ring. It may be called from anywhere.
type alarm struct {
	mu      sync.Mutex
	timer   *timer
	ringing bool // ring was called, and wait has not returned since
	closed  bool
}

func newAlarm() (*alarm, error) {
	t, err := newTimer()
	return &alarm{timer: t}, err
}

// set makes wait return after d and replaces an earlier time. After ring it does nothing until wait has returned: a
// timer that is set again loses an expiration that wait has not read, and wait would not return.
func (a *alarm) set(d time.Duration) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.closed && !a.ringing {
		a.timer.set(d)
	}
}

// ring makes wait return now, whatever is set before that.
func (a *alarm) ring() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.closed {
		a.ringing = true
		a.timer.set(0)
	}
}

// wait blocks until the time that was set, or until ring or close is called. It is for one goroutine. What was written
// before ring was called is visible when wait returns.
func (a *alarm) wait() error {
	err := a.timer.wait()
	a.mu.Lock()
	defer a.mu.Unlock()
	a.ringing = false
	return err
}

func (a *alarm) close() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.closed {
		a.closed = true
		a.timer.close()
	}
}
