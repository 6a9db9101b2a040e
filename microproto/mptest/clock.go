package mptest

import (
	"slices"
	"time"

	"github.com/p2pdc/p2pdc/microproto"
)

// Clock is virtual time: functions run at their instants, in the order of
// (instant, creation). It starts at 0 and moves only when a function runs.
type Clock struct {
	now    microproto.Instant
	events []clockEvent // in the order in which they run
}

type clockEvent struct {
	at  microproto.Instant
	run func()
}

// NewClock returns a clock at 0.
func NewClock() *Clock { return &Clock{} }

// Now returns the present instant.
func (c *Clock) Now() microproto.Instant { return c.now }

// At schedules f at t. An instant in the past counts as now.
func (c *Clock) At(t microproto.Instant, f func()) {
	t = max(t, c.now)
	i := len(c.events)
	for i > 0 && c.events[i-1].at > t {
		i--
	}
	c.events = slices.Insert(c.events, i, clockEvent{t, f})
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
	e := c.events[0]
	c.events[0].run = nil // for the garbage collector
	c.events = c.events[1:]
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
