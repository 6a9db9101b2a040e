package microproto

import (
	"cmp"
	"fmt"
	"slices"
	"unsafe"

	"github.com/p2pdc/p2pdc/internal/fifo"
)

// chain holds the handlers of one event in one composite, in order. BindNow and Unbind replace
// entries and never write to it, so a handler bound while the chain runs runs from the next
// raise on, and one unbound meanwhile does not run any more.
type chain struct {
	event    *eventID
	entries  []entry
	deferred deferredRaises // nil before a raise is enqueued or delayed
	unbound  uint32         // counts the handlers removed from entries
	messages bool           // the event carries *Message
}

// entry is a handler of any type. The event's identity implies the type: only NewEvent[T]
// makes the eventID of an Event[T]. So all chains of a composite lie in one array.
type entry struct {
	handle   unsafe.Pointer // Handler[T]
	owner    *attachment
	number   uint32 // of the binding
	priority Priority
}

func newEntry[T any](c *Composite, h Handler[T], owner *attachment, p Priority) entry {
	c.lastBinding++
	return entry{*(*unsafe.Pointer)(unsafe.Pointer(&h)), owner, c.lastBinding, p}
}

// handler returns the handler of an entry of a chain whose event carries T.
func handler[T any](e *entry) Handler[T] { return *(*Handler[T])(unsafe.Pointer(&e.handle)) }

// deferredRaises are the enqueued and delayed raises of a chain, whatever their type.
type deferredRaises interface {
	runNext(x *Exec, ch *chain)
	runTimer(x *Exec, ch *chain, arg any)
}

type raiseQueue[T any] struct{ fifo.Queue[deferredRaise[T]] }

// deferredRaise is an enqueued raise. messageID identifies the message that it carries, 0
// for other arguments: a raise whose message has ended meanwhile is skipped.
type deferredRaise[T any] struct {
	arg       T
	messageID uint64
}

// Chains and table slots beyond these numbers, which few composites need, are allocated.
const (
	inlineChains = 32
	inlineSlots  = 64
)

// chainTable maps events to the chains of a composite. slots is an open-addressed table of
// chain numbers from 1; 0 marks a free slot. Chains do not move.
type chainTable struct {
	slots    []int32
	n        int
	first    [inlineChains]chain
	overflow []*chain
}

func (t *chainTable) at(i int) *chain {
	if i < inlineChains {
		return &t.first[i]
	}
	return t.overflow[i-inlineChains]
}

// find returns the event's chain, nil if nothing was bound to it or enqueued.
func (t *chainTable) find(e *eventID) *chain {
	if e == nil {
		return nil
	}
	mask := uint32(len(t.slots) - 1)
	for i := e.hash & mask; ; i = (i + 1) & mask {
		k := int(t.slots[i])
		if k == 0 {
			return nil
		}
		if ch := t.at(k - 1); ch.event == e {
			return ch
		}
	}
}

func ensure[T any](c *Composite, e Event[T]) *chain {
	t := &c.chains
	if ch := t.find(e.id); ch != nil {
		return ch
	}
	var arg T
	_, messages := any(arg).(*Message)
	if t.n >= inlineChains {
		t.overflow = append(t.overflow, new(chain))
	}
	ch := t.at(t.n)
	*ch = chain{event: e.id, messages: messages}
	t.n++
	if 2*t.n > len(t.slots) {
		t.slots = make([]int32, 2*len(t.slots))
		for i := range t.n {
			t.place(i)
		}
	} else {
		t.place(t.n - 1)
	}
	return ch
}

func (t *chainTable) place(k int) {
	mask := uint32(len(t.slots) - 1)
	i := t.at(k).event.hash & mask
	for t.slots[i] != 0 {
		i = (i + 1) & mask
	}
	t.slots[i] = int32(k + 1)
}

func queueOf[T any](ch *chain) *raiseQueue[T] {
	if ch.deferred == nil {
		ch.deferred = new(raiseQueue[T])
	}
	return ch.deferred.(*raiseQueue[T])
}

// setEntries sorts the entries of a chain by priority, attachment and binding.
func (ch *chain) setEntries(entries []entry) error {
	if len(entries) > maxHandlers {
		return fmt.Errorf("%w: event %s has %d handlers already", ErrLimit, ch.event.name, maxHandlers)
	}
	slices.SortStableFunc(entries, func(a, b entry) int {
		return cmp.Or(cmp.Compare(a.priority, b.priority), a.owner.order-b.owner.order)
	})
	ch.entries = entries
	return nil
}

func (ch *chain) index(number uint32) int {
	return slices.IndexFunc(ch.entries, func(e entry) bool { return e.number == number })
}

// Binding is one handler bound to one event.
type Binding struct {
	chain  *chain
	number uint32
}

// Unbind removes the handler. In a chain that is running, a handler that has not run yet
// does not run any more. A second call, or one on a zero Binding, does nothing.
func (b Binding) Unbind(x *Exec) {
	if b.chain == nil {
		return
	}
	if at := b.chain.index(b.number); at >= 0 {
		b.chain.entries = slices.Delete(slices.Clone(b.chain.entries), at, at+1)
		b.chain.unbound++
		x.trace(TraceRecord{Kind: TraceUnbind})
	}
}

// bind is a handler of a composite that is being made.
type bind struct {
	to    *chain
	entry entry
}

// insertAll inserts the handlers of a new composite into their chains. All entries lie in
// one array, those of a chain next to each other.
func (c *Composite) insertAll(binds []bind) error {
	all := make([]entry, 0, len(binds))
	for k := range c.chains.n {
		ch, from := c.chains.at(k), len(all)
		for _, b := range binds {
			if b.to == ch {
				all = append(all, b.entry)
			}
		}
		if err := ch.setEntries(all[from:len(all):len(all)]); err != nil {
			return fmt.Errorf("attach %s: %w", all[from+maxHandlers].owner.name, err)
		}
	}
	return nil
}
