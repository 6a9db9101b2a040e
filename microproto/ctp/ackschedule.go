package ctp

import (
	"time"

	"github.com/p2pdc/p2pdc/microproto"
)

// ackSchedule decides when an acknowledgement is sent without a segment of a message.
type ackSchedule struct {
	delay       time.Duration
	pending     int  // segments to be acknowledged
	due         bool // a flush is enqueued
	nextAdvance bool // the timer fires in the next Advance
	timer       microproto.TimerID

	timerEvent, flushEvent microproto.Event[*ackSchedule]
}

func (s *ackSchedule) bind(b *microproto.Binder, timer, flush microproto.Event[*ackSchedule]) {
	s.timerEvent, s.flushEvent = timer, flush
	bind(b, flush, func(x *microproto.Exec, _ *ackSchedule) { s.flush(x) })
	bind(b, timer, func(x *microproto.Exec, _ *ackSchedule) {
		s.timer, s.nextAdvance = 0, false
		s.flush(x)
	})
}

// schedule schedules an acknowledgement after the current chain (now) or the delay.
func (s *ackSchedule) schedule(x *microproto.Exec, now bool) {
	switch {
	case s.due:
	case now:
		s.due = true
		microproto.Enqueue(x, s.flushEvent, s)
	case s.timer == 0:
		s.timer = microproto.RaiseAfter(x, s.timerEvent, s.delay, s)
	}
}

// flush sends an acknowledgement alone, unless a segment has carried it.
func (s *ackSchedule) flush(x *microproto.Exec) {
	s.due = false
	if s.pending == 0 {
		return
	}
	m, err := x.NewMessage(microproto.Down)
	if err == nil {
		x.Forward(m)
	} else if s.timer == 0 {
		s.timer = microproto.RaiseAfter(x, s.timerEvent, s.delay+time.Millisecond, s)
	}
}

// carried ends the schedule: an outgoing segment carries the acknowledgement.
func (s *ackSchedule) carried(x *microproto.Exec) {
	s.pending, s.due, s.nextAdvance = 0, false, false
	cancel(x, &s.timer)
}

func cancel(x *microproto.Exec, id *microproto.TimerID) {
	if *id != 0 {
		x.Cancel(*id)
		*id = 0
	}
}

// expiry is a time-out whose deadline moves with every acknowledgement. Its timer is set again
// only when it fires before the deadline, so an acknowledgement costs no cancellation.
type expiry struct {
	deadline microproto.Instant // 0: none
	fires    microproto.Instant // when the timer fires
	running  microproto.TimerID
}

// setExpiry sets the timer of the deadline, which raises e.
func setExpiry[T any](x *microproto.Exec, t *expiry, e microproto.Event[*T], arg *T) {
	if t.fires > t.deadline { // set when the time-out was longer
		cancel(x, &t.running)
	}
	if t.running == 0 {
		t.fires = t.deadline
		t.running = microproto.RaiseAfter(x, e, t.deadline.Sub(x.Now()), arg)
	}
}
