package mptest

import (
	"container/heap"
	"time"

	"github.com/p2pdc/p2pdc/microproto"
)

// Clock is virtual time: functions run at their instants, in the order of
// (instant, creation). It starts at 0 and moves only when a function runs.
type Clock struct {
	now    microproto.Instant
	seq    uint64
	events eventHeap
}

type clockEvent struct {
	at  microproto.Instant
	seq uint64
	run func()
}

// NewClock returns a clock at 0.
func NewClock() *Clock { return &Clock{} }

// Now returns the present instant.
func (c *Clock) Now() microproto.Instant { return c.now }

// At schedules f at t. An instant in the past counts as now.
func (c *Clock) At(t microproto.Instant, f func()) {
	c.seq++
	heap.Push(&c.events, clockEvent{max(t, c.now), c.seq, f})
}

// After schedules f after d.
func (c *Clock) After(d time.Duration, f func()) { c.At(c.now.Add(d), f) }

// Next returns the instant of the next function, Never if there is none.
func (c *Clock) Next() microproto.Instant {
	if len(c.events) == 0 {
		return microproto.Never
	}
	return c.events[0].at
}

// Step runs the next function. It reports whether there was one.
func (c *Clock) Step() bool {
	if len(c.events) == 0 {
		return false
	}
	e := heap.Pop(&c.events).(clockEvent)
	c.now = e.at
	e.run()
	return true
}

// Advance moves time to t, which must not be after Next.
func (c *Clock) Advance(t microproto.Instant) {
	if t > c.now && t <= c.Next() {
		c.now = t
	}
}

type eventHeap []clockEvent

func (h eventHeap) Len() int { return len(h) }
func (h eventHeap) Less(i, j int) bool {
	if h[i].at != h[j].at {
		return h[i].at < h[j].at
	}
	return h[i].seq < h[j].seq
}
func (h eventHeap) Swap(i, j int) { h[i], h[j] = h[j], h[i] }
func (h *eventHeap) Push(v any)   { *h = append(*h, v.(clockEvent)) }
func (h *eventHeap) Pop() any {
	old := *h
	v := old[len(old)-1]
	old[len(old)-1] = clockEvent{}
	*h = old[:len(old)-1]
	return v
}
