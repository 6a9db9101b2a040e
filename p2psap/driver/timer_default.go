//go:build !linux

package driver

import (
	"os"
	"time"
)

// timer has the runtime's precision.
type timer struct {
	timer *time.Timer
	done  chan struct{}
}

func newTimer() (*timer, error) {
	return &timer{time.NewTimer(time.Hour), make(chan struct{})}, nil
}

// set makes wait return after d. The runtime forgets an expiration that wait has not received.
func (t *timer) set(d time.Duration) { t.timer.Reset(max(d, 0)) }

// wait blocks until the timer expires or is closed.
func (t *timer) wait() error {
	select {
	case <-t.timer.C:
		return nil
	case <-t.done:
		return os.ErrClosed
	}
}

func (t *timer) close() {
	t.timer.Stop()
	close(t.done)
}
