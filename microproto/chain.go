package microproto

import (
	"fmt"
	"slices"
	"unsafe"
)

// chain holds the handlers of one event in one composite, in order. A change replaces
// entries and never writes to it, so a running chain keeps its own view: a handler bound
// meanwhile runs from the next raise on, a handler unbound meanwhile does not run any more.
type chain struct {
	event    *eventID
	entries  []entry
	deferred deferredRaises // nil before a raise is enqueued or delayed
	version  uint32         // counts the changes of entries
	messages bool           // the event carries *Message
}

// entry is a handler of any type. The event's identity implies the type: only NewEvent[T]
// makes the eventID of an Event[T]. So all chains of a composite lie in one array.
type entry struct {
	handle unsafe.Pointer // Handler[T]
	owner  *attachment
	tag    uint64 // number of the binding, and its priority in the low bits
}

const priorityBits = 16

func newEntry[T any](h Handler[T], owner *attachment, id uint64, p Priority) entry {
	return entry{*(*unsafe.Pointer)(unsafe.Pointer(&h)), owner, id<<priorityBits | uint64(uint16(p))}
}

func (e *entry) id() uint64 { return e.tag >> priorityBits }

func (e *entry) priority() Priority { return Priority(e.tag) }

// handler returns the handler of an entry of a chain whose event carries T.
func handler[T any](e *entry) Handler[T] { return *(*Handler[T])(unsafe.Pointer(&e.handle)) }

// deferredRaises are the enqueued and delayed raises of a chain, whatever their type.
type deferredRaises interface {
	runNext(x *Exec, ch *chain)
	runTimer(x *Exec, ch *chain, arg any)
}

// raiseQueue holds the arguments of enqueued raises.
type raiseQueue[T any] struct{ ring[deferredRaise[T]] }

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

// ensure returns the event's chain and creates it if necessary.
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

// queueOf returns the queue of a chain's deferred raises.
func queueOf[T any](ch *chain) *raiseQueue[T] {
	if ch.deferred == nil {
		ch.deferred = new(raiseQueue[T])
	}
	return ch.deferred.(*raiseQueue[T])
}

// order compares two entries by the order in which they run.
func (e *entry) order(f *entry) int {
	switch {
	case e.priority() != f.priority():
		return int(e.priority()) - int(f.priority())
	case e.owner.order != f.owner.order:
		return e.owner.order - f.owner.order
	case e.id() < f.id():
		return -1
	}
	return 1
}

func (ch *chain) full() error {
	if len(ch.entries) >= maxHandlers {
		return fmt.Errorf("%w: event %s has %d handlers already", ErrLimit, ch.event.name, maxHandlers)
	}
	return nil
}

func (ch *chain) insert(e entry) error {
	if err := ch.full(); err != nil {
		return err
	}
	at, _ := slices.BinarySearchFunc(ch.entries, e, func(a, b entry) int { return a.order(&b) })
	entries := make([]entry, 0, len(ch.entries)+1)
	entries = append(append(append(entries, ch.entries[:at]...), e), ch.entries[at:]...)
	ch.entries, ch.version = entries, ch.version+1
	return nil
}

func (ch *chain) unbind(id uint64) bool {
	at := slices.IndexFunc(ch.entries, func(e entry) bool { return e.id() == id })
	if at < 0 {
		return false
	}
	ch.entries, ch.version = slices.Delete(slices.Clone(ch.entries), at, at+1), ch.version+1
	return true
}

func (ch *chain) bound(id uint64) bool {
	return slices.ContainsFunc(ch.entries, func(e entry) bool { return e.id() == id })
}

// bind is a handler of a composite that is being made.
type bind struct {
	to    *chain
	entry entry
}

// insertAll inserts the handlers of a new composite into their chains. All entries lie in
// one array, those of a chain next to each other.
func (c *Composite) insertAll(binds []bind) error {
	all := make([]entry, len(binds))
	for i := range binds {
		binds[i].to.version++
	}
	from := 0
	for k := range c.chains.n {
		ch := c.chains.at(k)
		to := from + int(ch.version)
		ch.entries = all[from:from:to]
		from = to
	}
	for i := range binds {
		b := &binds[i]
		if err := b.to.full(); err != nil {
			return fmt.Errorf("attach %s: %w", b.entry.owner.name(), err)
		}
		e := append(b.to.entries, b.entry)
		for j := len(e) - 1; j > 0 && e[j].order(&e[j-1]) < 0; j-- {
			e[j], e[j-1] = e[j-1], e[j]
		}
		b.to.entries = e
	}
	return nil
}

// Binding is one handler bound to one event.
type Binding struct {
	chain *chain
	id    uint64
}

// Unbind removes the handler. In a chain that is running, a handler that has not run yet
// does not run any more. A second call, or one on a zero Binding, does nothing.
func (b Binding) Unbind(x *Exec) {
	if b.chain != nil && b.chain.unbind(b.id) && x.tracer != nil {
		x.trace(TraceRecord{Kind: TraceUnbind, Protocol: x.cur.name()})
	}
}
