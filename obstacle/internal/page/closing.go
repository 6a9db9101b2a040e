package page

import (
	"sync"
	"time"
)

// Closing ends the event streams of a server, each after an increment with everything that is still new, so that an open
// page shows the end of a run whose program ends at once.
type Closing struct {
	mu      sync.Mutex
	closed  bool
	done    chan struct{}
	streams sync.WaitGroup
}

// NewClosing returns a Closing for one server.
func NewClosing() *Closing { return &Closing{done: make(chan struct{})} }

// enter counts a stream, unless the server is being closed.
func (c *Closing) enter() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.closed {
		c.streams.Add(1)
	}
	return !c.closed
}

// Close ends all streams. It waits for them, but no longer than the limit.
func (c *Closing) Close(limit time.Duration) {
	c.mu.Lock()
	c.closed = true
	close(c.done)
	c.mu.Unlock()
	over := make(chan struct{})
	go func() {
		c.streams.Wait()
		close(over)
	}()
	select {
	case <-over:
	case <-time.After(limit):
	}
}
