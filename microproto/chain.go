package microproto

import (
	"fmt"
	"slices"
)

// chain holds the handlers of one event in one composite, in their order, and
// the arguments of its enqueued raises. entries is replaced, never changed, so
// that a running chain keeps its own view: a handler bound meanwhile runs from
// the next raise on, one unbound meanwhile runs no more.
type chain[T any] struct {
	event    *eventID
	entries  []entry[T]
	version  uint32 // grows with every change of entries
	messages bool   // T is *Message
	waiting  ring[waiting[T]]
}

type entry[T any] struct {
	handle   Handler[T]
	owner    *attachment
	id       uint64
	priority Priority
}

// waiting is an enqueued raise. stamp is the identity of the message it carries,
// 0 for other arguments: a raise whose message has ended meanwhile is skipped.
type waiting[T any] struct {
	arg   T
	stamp uint64
}

// runner is a chain whatever its argument's type.
type runner interface {
	runWaiting(x *Exec)
	runTimer(x *Exec, arg any)
	unbind(id uint64) bool
	unbindOwner(a *attachment)
	size() int
}

// tableSlot is a place of the open-addressed table of chains.
type tableSlot struct {
	event *eventID
	chain runner
}

// find returns the event's chain, nil when nothing was ever bound or enqueued.
func find[T any](c *Composite, e Event[T]) *chain[T] {
	if e.id == nil {
		return nil
	}
	mask := uint32(len(c.table) - 1)
	for i := e.id.hash & mask; ; i = (i + 1) & mask {
		s := &c.table[i]
		if s.event == e.id {
			return s.chain.(*chain[T])
		}
		if s.event == nil {
			return nil
		}
	}
}

// ensure returns the event's chain and makes it if need be.
func ensure[T any](c *Composite, e Event[T]) *chain[T] {
	if ch := find(c, e); ch != nil {
		return ch
	}
	var arg T
	_, messages := any(arg).(*Message)
	ch := &chain[T]{event: e.id, messages: messages}
	if 2*(c.chains+1) > len(c.table) {
		old := c.table
		c.table = make([]tableSlot, 2*len(old))
		for _, s := range old {
			if s.event != nil {
				c.place(s)
			}
		}
	}
	c.place(tableSlot{e.id, ch})
	c.chains++
	return ch
}

func (c *Composite) place(s tableSlot) {
	mask := uint32(len(c.table) - 1)
	i := s.event.hash & mask
	for c.table[i].event != nil {
		i = (i + 1) & mask
	}
	c.table[i] = s
}

func (ch *chain[T]) insert(e entry[T]) error {
	if len(ch.entries) >= maxHandlers {
		return fmt.Errorf("%w: event %s has %d handlers already", ErrLimit, ch.event.name, maxHandlers)
	}
	at, _ := slices.BinarySearchFunc(ch.entries, e, func(a, b entry[T]) int {
		switch {
		case a.priority != b.priority:
			return int(a.priority) - int(b.priority)
		case a.owner.order != b.owner.order:
			return a.owner.order - b.owner.order
		case a.id < b.id:
			return -1
		}
		return 1
	})
	entries := make([]entry[T], 0, len(ch.entries)+1)
	entries = append(append(append(entries, ch.entries[:at]...), e), ch.entries[at:]...)
	ch.entries, ch.version = entries, ch.version+1
	return nil
}

func (ch *chain[T]) remove(gone func(*entry[T]) bool) bool {
	kept := make([]entry[T], 0, len(ch.entries))
	for i := range ch.entries {
		if !gone(&ch.entries[i]) {
			kept = append(kept, ch.entries[i])
		}
	}
	if len(kept) == len(ch.entries) {
		return false
	}
	ch.entries, ch.version = kept, ch.version+1
	return true
}

func (ch *chain[T]) unbind(id uint64) bool {
	return ch.remove(func(e *entry[T]) bool { return e.id == id })
}

func (ch *chain[T]) unbindOwner(a *attachment) {
	ch.remove(func(e *entry[T]) bool { return e.owner == a })
}

func (ch *chain[T]) size() int { return len(ch.entries) }

func (ch *chain[T]) bound(id uint64) bool {
	return slices.ContainsFunc(ch.entries, func(e entry[T]) bool { return e.id == id })
}

// Binding is one handler bound to one event.
type Binding struct {
	chain runner
	id    uint64
}

// Unbind takes the handler away. In a chain that is running, a handler that has
// not run yet will not. Unbinding twice, or a zero Binding, does nothing.
func (b Binding) Unbind(x *Exec) {
	if b.chain != nil && b.chain.unbind(b.id) && x.tracer != nil {
		x.trace(TraceRecord{Kind: TraceUnbind, Protocol: x.cur.name()})
	}
}
