package microproto

import (
	"fmt"
	"time"
)

// Raise runs the event's handlers now, nested in the present one, in their
// order. It returns false if one of them halted, if the message it carries ended,
// or if the composite failed. Past the raise depth bound the composite fails.
func Raise[T any](x *Exec, e Event[T], arg T) (completed bool) {
	ch := find(x.c, e)
	if x.tracer != nil {
		x.trace(TraceRecord{Kind: TraceRaise, Event: e.Name(), Protocol: x.cur.name(), Message: messageID(arg)})
	}
	if ch == nil {
		return x.stop&stopFailed == 0
	}
	return ch.run(x, arg)
}

// Enqueue raises the event after the current chain has ended, in the order of
// enqueueing. A raise whose message has ended by then is skipped. Past the bound
// of the queue the composite fails.
func Enqueue[T any](x *Exec, e Event[T], arg T) {
	if e.id == nil {
		return
	}
	c := x.c
	if c.queue.n >= c.limits.Queue {
		x.Fail(fmt.Errorf("%w: %d events are enqueued already (at %s)", ErrLimit, c.limits.Queue, e.Name()))
		return
	}
	ch := ensure(c, e)
	id := messageID(arg)
	if x.tracer != nil {
		x.trace(TraceRecord{Kind: TraceEnqueue, Event: e.Name(), Protocol: x.cur.name(), Message: id})
	}
	ch.waiting.push(waiting[T]{arg, id})
	c.queue.push(queued{ch})
}

// RaiseAfter raises the event once d has passed (d < 0 counts as 0); timers fire
// in the order of (deadline, creation). A timer whose message has ended is
// skipped. Past the bound of timers it returns 0 and counts that.
func RaiseAfter[T any](x *Exec, e Event[*T], d time.Duration, arg *T) TimerID {
	if e.id == nil {
		return 0
	}
	id := messageID(arg)
	t := x.c.timers.add(timer{
		deadline: x.c.now.Add(max(d, 0)),
		chain:    ensure(x.c, e),
		arg:      arg,
		stamp:    id,
		owner:    x.cur,
	}, x.c.limits.Timers)
	if t == 0 {
		x.c.counts.TimersRefused++
	}
	if x.tracer != nil {
		x.trace(TraceRecord{Kind: TraceSchedule, Event: e.Name(), Protocol: x.cur.name(), Message: id, Delay: d})
	}
	return t
}

// queued is one place in the composite's FIFO of events: the argument waits in
// the chain, so that no argument is boxed.
type queued struct{ chain runner }

// messageID is the identity of the message that arg is, or 0.
func messageID[T any](arg T) uint64 {
	if m, ok := any(arg).(*Message); ok && m != nil {
		return m.id
	}
	return 0
}

// run is the hot path of the kernel.
func (ch *chain[T]) run(x *Exec, arg T) bool {
	if x.depth >= x.maxDepth || x.stop&stopFailed != 0 {
		return x.refuse(ch.event)
	}
	var m *Message
	if ch.messages {
		m, _ = any(arg).(*Message)
	}
	if m == nil {
		m = &x.none
	}
	cur, stop := x.cur, x.stop
	x.stop = 0
	x.depth++
	m.pins++
	entries, version := ch.entries, ch.version
	for i := range entries {
		e := &entries[i]
		if ch.version != version && !ch.bound(e.id) {
			continue
		}
		x.cur = e.owner
		if x.tracer == nil {
			e.handle(x, arg)
		} else {
			ch.handleTraced(x, e, m, arg)
		}
		if x.stop != 0 || m.ended {
			break
		}
	}
	completed := x.stop == 0 && !m.ended
	x.stop = stop | x.stop&stopFailed
	x.cur = cur
	x.depth--
	m.pins--
	if m.ended && m.pins == 0 {
		x.c.free(m)
	}
	return completed
}

func (ch *chain[T]) handleTraced(x *Exec, e *entry[T], m *Message, arg T) {
	r := TraceRecord{Kind: TraceHandle, Event: ch.event.name, Protocol: e.owner.name(), Message: m.id, Header: m.header}
	x.trace(r)
	e.handle(x, arg)
	if x.tracer != nil {
		r.Kind = TraceReturn
		x.trace(r)
	}
}

func (x *Exec) refuse(e *eventID) bool {
	if x.stop&stopFailed == 0 {
		x.Fail(fmt.Errorf("%w: %d nested raises (at %s, by %s)", ErrLimit, x.maxDepth, e.name, x.cur.name()))
	}
	return false
}

func (ch *chain[T]) runWaiting(x *Exec) {
	w := ch.waiting.pop()
	if w.stamp != 0 && w.stamp != messageID(w.arg) {
		return
	}
	if x.tracer != nil {
		x.trace(TraceRecord{Kind: TraceRun, Event: ch.event.name, Message: w.stamp})
	}
	ch.run(x, w.arg)
}

func (ch *chain[T]) runTimer(x *Exec, arg any) {
	a := arg.(T)
	if x.tracer != nil {
		x.trace(TraceRecord{Kind: TraceFire, Event: ch.event.name, Message: messageID(a)})
	}
	ch.run(x, a)
}
