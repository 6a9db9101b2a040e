package software

import (
	"cmp"
	"container/heap"
	"sync"
	"time"
)

// clock fires events in order of time, then of creation. In real time it keeps a time.Timer for
// the earliest event. In virtual time advance fires them.
type clock struct {
	virtual bool
	origin  time.Time

	mu      sync.Mutex
	at      time.Duration // now, in virtual time
	events  eventHeap
	created uint64
	timer   *time.Timer
	firing  sync.Mutex // held while events fire, one at a time
}

// event is an expiring timer of a pair, or the arrival of a delayed packet.
type event struct {
	at      time.Duration
	order   uint64
	index   int // in the heap, plus 1; 0: not scheduled
	pair    *pair
	delayed *delayedPacket
}

func (c *clock) start(virtual bool) { c.virtual, c.origin = virtual, time.Now() }

func (c *clock) now() time.Duration {
	if !c.virtual {
		return time.Since(c.origin)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.at
}

// schedule schedules an event after d, or reschedules it. It returns the event's time.
func (c *clock) schedule(e *event, d time.Duration) time.Duration {
	now := c.now()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.remove(e)
	c.created++
	e.at, e.order = now+d, c.created
	heap.Push(&c.events, e)
	if !c.virtual && e.index == 1 {
		c.setTimer()
	}
	return now + d
}

// setTimer sets the timer for the earliest event.
func (c *clock) setTimer() {
	d := max(c.events[0].at-time.Since(c.origin), 0)
	if c.timer == nil {
		c.timer = time.AfterFunc(d, func() { c.fire(c.now()) })
		return
	}
	c.timer.Reset(d)
}

// cancel cancels an event unless it is being fired.
func (c *clock) cancel(e *event) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.remove(e)
}

func (c *clock) remove(e *event) {
	if e.index != 0 {
		heap.Remove(&c.events, e.index-1)
	}
}

// clear cancels all events.
func (c *clock) clear() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, e := range c.events {
		e.index = 0
	}
	c.events = c.events[:0]
	if c.timer != nil {
		c.timer.Stop()
	}
}

func (c *clock) fire(until time.Duration) {
	c.firing.Lock()
	defer c.firing.Unlock()
	for {
		c.mu.Lock()
		if len(c.events) == 0 || c.events[0].at > until {
			if len(c.events) > 0 && !c.virtual {
				c.setTimer()
			}
			c.mu.Unlock()
			return
		}
		e := heap.Pop(&c.events).(*event)
		if c.virtual {
			c.at = max(c.at, e.at)
		}
		c.mu.Unlock()
		e.fire()
	}
}

func (c *clock) advance(d time.Duration) {
	until := c.now() + d
	c.fire(until)
	c.mu.Lock()
	c.at = max(c.at, until)
	c.mu.Unlock()
}

func (e *event) fire() {
	if e.delayed != nil {
		e.delayed.deliver()
		return
	}
	e.pair.timerFired()
}

// eventHeap is a heap.Interface, the earliest event first.
type eventHeap []*event

func (h eventHeap) Len() int { return len(h) }

func (h eventHeap) Less(i, j int) bool {
	return cmp.Or(cmp.Compare(h[i].at, h[j].at), cmp.Compare(h[i].order, h[j].order)) < 0
}

func (h eventHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].index, h[j].index = i+1, j+1
}

func (h *eventHeap) Push(x any) {
	e := x.(*event)
	*h = append(*h, e)
	e.index = len(*h)
}

func (h *eventHeap) Pop() any {
	last := len(*h) - 1
	e := (*h)[last]
	(*h)[last] = nil
	*h = (*h)[:last]
	e.index = 0
	return e
}
