package runner

import (
	"context"
	"sync"
	"sync/atomic"
)

// calls are the functions that other goroutines pass to Do.
type calls struct {
	waiting context.Context // of a wait of Run; it ends when something has to be done
	due     atomic.Bool     // waiting has ended

	mu     sync.Mutex
	cancel context.CancelFunc
	queue  []func() error
	ended  bool // Run has returned
}

func newCalls() *calls {
	c := &calls{}
	c.waiting, c.cancel = context.WithCancel(context.Background())
	return c
}

// Do calls f on the goroutine of Run between two operations, when Solution returns the newest complete iterate. It does
// not wait for the call. An error of f ends Run, which returns it, after the calls that wait already. Do returns false, and f is not called, if Run has
// ended.
func (r *Runner) Do(f func() error) bool {
	c := r.calls
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended {
		return false
	}
	c.queue = append(c.queue, f)
	c.signal()
	return true
}

// Abandon ends Run at once, without an agreement with the other peers: it returns ErrAbandoned.
func (r *Runner) Abandon() { r.Do(func() error { return ErrAbandoned }) }

// wake ends a wait of Run.
func (c *calls) wake() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.signal()
}

// signal is called with the lock held.
func (c *calls) signal() {
	c.due.Store(true)
	c.cancel()
}

// run calls the functions that wait.
func (c *calls) run() error {
	if !c.due.Load() {
		return nil
	}
	c.mu.Lock()
	queue := c.queue
	c.queue = nil
	c.due.Store(false)
	c.waiting, c.cancel = context.WithCancel(context.Background())
	c.mu.Unlock()
	var first error
	for _, f := range queue {
		if err := f(); first == nil {
			first = err
		}
	}
	return first
}

// end calls the functions that still wait, and lets Do accept no others.
func (c *calls) end() {
	c.mu.Lock()
	queue := c.queue
	c.queue, c.ended = nil, true
	c.cancel()
	c.mu.Unlock()
	for _, f := range queue {
		_ = f() // Run has ended for another reason
	}
}
