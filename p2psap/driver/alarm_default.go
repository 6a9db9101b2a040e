//go:build !linux

package driver

import (
	"os"
	"sync"
	"time"
)

// alarm is a timer with the runtime's precision.
type alarm struct {
	mu    sync.Mutex
	timer *time.Timer
	done  chan struct{}
	once  sync.Once
}

func newAlarm() (*alarm, error) {
	return &alarm{timer: time.NewTimer(time.Hour), done: make(chan struct{})}, nil
}

// set makes wait return after d, instead of what was set before.
func (a *alarm) set(d time.Duration) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.timer.Reset(max(d, 0))
}

// wait blocks until the alarm fires or is closed.
func (a *alarm) wait() error {
	select {
	case <-a.timer.C:
		return nil
	case <-a.done:
		return os.ErrClosed
	}
}

func (a *alarm) close() {
	a.once.Do(func() {
		a.timer.Stop()
		close(a.done)
	})
}
