package microproto

import (
	"fmt"
	"time"
	"unsafe"
)

// Raise runs the event's handlers now, in order, nested in the present one. It returns
// false if a handler halted, if the message that the event carries ended, or if the
// composite failed. Beyond Limits.RaiseDepth the composite fails.
func Raise[T any](x *Exec, e Event[T], arg T) (completed bool) {
	ch := x.c.chains.find(e.id)
	if x.tracer != nil {
		x.trace(TraceRecord{Kind: TraceRaise, Event: e.Name(), Message: messageID(arg)})
	}
	if ch == nil {
		return x.stop&stopFailed == 0
	}
	if m := messageOf(ch, arg); m != nil {
		return runMessage(ch, x, m)
	}
	return runChain(ch, x, arg)
}

// messageOf returns the message that arg is, nil for other types.
func messageOf[T any](ch *chain, arg T) *Message {
	if ch.messages {
		return *(**Message)(unsafe.Pointer(&arg))
	}
	return nil
}

// raiseMessage is Raise of an event of the kernel, whose chain is known.
func (x *Exec) raiseMessage(ch *chain, m *Message) (completed bool) {
	if x.tracer != nil {
		x.traceRaise(ch, m)
	}
	return runMessage(ch, x, m)
}

//go:noinline
func (x *Exec) traceRaise(ch *chain, m *Message) {
	x.trace(TraceRecord{Kind: TraceRaise, Event: ch.event.name, Message: m.id})
}

// Enqueue raises the event after the current chain has ended, in the order of the calls. A
// raise whose message has ended by then is skipped. Beyond Limits.Queue the composite fails.
func Enqueue[T any](x *Exec, e Event[T], arg T) {
	if e.id == nil {
		return
	}
	c := x.c
	if c.queue.Len() >= c.limits.Queue {
		x.Fail(fmt.Errorf("%w: %d events are enqueued already (at %s)", ErrLimit, c.limits.Queue, e.Name()))
		return
	}
	ch := ensure(c, e)
	id := uint64(0)
	if ch.messages {
		id = messageID(arg)
	}
	if x.tracer != nil {
		x.trace(TraceRecord{Kind: TraceEnqueue, Event: e.Name(), Message: id})
	}
	queueOf[T](ch).Push(deferredRaise[T]{arg, id})
	c.queue.Push(ch)
}

// RaiseAfter raises the event after d; a negative d counts as 0. Timers fire in the order
// of (deadline, creation). A timer whose message has ended is skipped. Beyond Limits.Timers
// RaiseAfter sets no timer and returns 0; Counters.TimersRefused counts that.
func RaiseAfter[T any](x *Exec, e Event[*T], d time.Duration, arg *T) TimerID {
	if e.id == nil {
		return 0
	}
	id := messageID(arg)
	ch := x.c.chains.find(e.id)
	if ch == nil || ch.deferred == nil {
		ch = ensure(x.c, e)
		queueOf[*T](ch)
	}
	t := x.c.timers.add(timer{
		deadline:  x.c.now.Add(max(d, 0)),
		chain:     ch,
		arg:       arg,
		messageID: id,
	}, x.c.limits.Timers)
	if t == 0 {
		x.c.counters.TimersRefused++
	}
	if x.tracer != nil {
		x.trace(TraceRecord{Kind: TraceSchedule, Event: e.Name(), Message: id, Delay: d})
	}
	return t
}

// messageID returns the identity of the message that arg is, 0 for other types.
func messageID[T any](arg T) uint64 {
	if m, ok := any(arg).(*Message); ok && m != nil {
		return m.id
	}
	return 0
}

func runChain[T any](ch *chain, x *Exec, arg T) bool {
	if m := messageOf(ch, arg); m != nil {
		return runMessage(ch, x, m)
	}
	if x.depth >= x.maxDepth || x.stop&stopFailed != 0 {
		return x.refuse(ch.event)
	}
	cur, stop := x.cur, x.stop
	x.stop = 0
	x.depth++
	entries, unbound := ch.entries, ch.unbound
	for i := range entries {
		e := &entries[i]
		if ch.unbound != unbound && ch.index(e.number) < 0 {
			continue
		}
		x.cur = e.owner
		if x.tracer == nil {
			handler[T](e)(x, arg)
		} else {
			runTraced(ch, x, e, nil, arg)
		}
		if x.stop != 0 {
			break
		}
	}
	completed := x.stop == 0
	x.stop = stop | x.stop&stopFailed
	x.cur = cur
	x.depth--
	return completed
}

// runMessage is runChain of a message, the hot path of the kernel. The message is not reused while
// a chain carries it.
func runMessage(ch *chain, x *Exec, m *Message) (completed bool) {
	if x.depth >= x.maxDepth || x.stop&stopFailed != 0 {
		return x.refuse(ch.event)
	}
	cur, stop := x.cur, x.stop
	x.stop = 0
	x.depth++
	m.refs++
	entries, unbound := ch.entries, ch.unbound
	for i := range entries {
		e := &entries[i]
		if ch.unbound != unbound && ch.index(e.number) < 0 {
			continue
		}
		x.cur = e.owner
		if x.tracer == nil {
			handler[*Message](e)(x, m)
		} else {
			runTraced(ch, x, e, m, m)
		}
		if x.stop != 0 || m.ended {
			break
		}
	}
	completed = x.stop == 0 && !m.ended
	x.stop = stop | x.stop&stopFailed
	x.cur = cur
	x.depth--
	if m.refs--; m.ended {
		x.c.reuse(m)
	}
	return completed
}

// runTraced runs a handler and traces its start and its return, with the message that it had
// at the start.
func runTraced[T any](ch *chain, x *Exec, e *entry, m *Message, arg T) {
	r := TraceRecord{Kind: TraceHandle, Event: ch.event.name}
	if m != nil {
		r.Message, r.Header = m.id, m.header
	}
	x.trace(r)
	handler[T](e)(x, arg)
	r.Kind = TraceReturn
	x.trace(r)
}

func (x *Exec) refuse(e *eventID) bool {
	if x.stop&stopFailed == 0 {
		x.Fail(fmt.Errorf("%w: %d nested raises (at %s, by %s)", ErrLimit, x.maxDepth, e.name, x.cur.name))
	}
	return false
}

func (t *raiseQueue[T]) runNext(x *Exec, ch *chain) {
	w := t.Pop()
	if w.messageID != 0 && w.messageID != messageID(w.arg) {
		return
	}
	if x.tracer != nil {
		x.trace(TraceRecord{Kind: TraceRun, Event: ch.event.name, Message: w.messageID})
	}
	runChain(ch, x, w.arg)
}

func (t *raiseQueue[T]) runTimer(x *Exec, ch *chain, arg any) {
	a := arg.(T)
	if x.tracer != nil {
		x.trace(TraceRecord{Kind: TraceFire, Event: ch.event.name, Message: messageID(a)})
	}
	runChain(ch, x, a)
}
