package software

import (
	"sync"
	"time"
)

// clock fires events in order of (time, creation). In real time a time.Timer stands for
// the earliest, and there is none while nothing waits; in virtual time advance does it.
type clock struct {
	virtual bool
	origin  time.Time

	mu      sync.Mutex
	at      time.Duration // virtual: now
	heap    []*event
	created uint64
	timer   *time.Timer
	firing  sync.Mutex // one at a time, in order
}

// event is what happens at a time: a pair's timer, or a packet that comes late.
type event struct {
	at      time.Duration
	order   uint64
	index   int // in the heap, plus 1; 0: not there
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

// set makes an event happen after d, instead of when it was to happen, and tells when.
func (c *clock) schedule(e *event, d time.Duration) time.Duration {
	now := c.now()
	c.mu.Lock()
	defer c.mu.Unlock()
	if e.index != 0 {
		c.remove(e.index - 1)
	}
	c.created++
	e.at, e.order = now+d, c.created
	c.heap = append(c.heap, e)
	e.index = len(c.heap)
	c.up(len(c.heap) - 1)
	if !c.virtual && e.index == 1 {
		c.setTimer()
	}
	return now + d
}

// wind sets the timer for the earliest event.
func (c *clock) setTimer() {
	d := max(c.heap[0].at-time.Since(c.origin), 0)
	if c.timer == nil {
		c.timer = time.AfterFunc(d, func() { c.fire(c.now()) })
		return
	}
	c.timer.Reset(d)
}

// unset makes an event not happen. One that is being fired does.
func (c *clock) cancel(e *event) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e.index != 0 {
		c.remove(e.index - 1)
	}
}

// clear forgets all events.
func (c *clock) clear() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, e := range c.heap {
		e.index = 0
	}
	c.heap = c.heap[:0]
	if c.timer != nil {
		c.timer.Stop()
	}
}

func (c *clock) fire(until time.Duration) {
	c.firing.Lock()
	defer c.firing.Unlock()
	for {
		c.mu.Lock()
		if len(c.heap) == 0 || c.heap[0].at > until {
			if len(c.heap) > 0 && !c.virtual {
				c.setTimer()
			}
			c.mu.Unlock()
			return
		}
		e := c.heap[0]
		c.remove(0)
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

func (c *clock) less(i, j int) bool {
	a, b := c.heap[i], c.heap[j]
	return a.at < b.at || a.at == b.at && a.order < b.order
}

func (c *clock) swap(i, j int) {
	c.heap[i], c.heap[j] = c.heap[j], c.heap[i]
	c.heap[i].index, c.heap[j].index = i+1, j+1
}

func (c *clock) up(i int) {
	for i > 0 && c.less(i, (i-1)/2) {
		c.swap(i, (i-1)/2)
		i = (i - 1) / 2
	}
}

// take removes the event at i.
func (c *clock) remove(i int) {
	last := len(c.heap) - 1
	c.heap[i].index = 0
	if i != last {
		c.heap[i] = c.heap[last]
		c.heap[i].index = i + 1
	}
	c.heap[last] = nil
	c.heap = c.heap[:last]
	if i == last {
		return
	}
	c.up(i)
	for {
		k := 2*i + 1
		if k >= last {
			return
		}
		if k+1 < last && c.less(k+1, k) {
			k++
		}
		if !c.less(k, i) {
			return
		}
		c.swap(i, k)
		i = k
	}
}
