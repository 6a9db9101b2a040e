package microproto

import (
	"fmt"
	"slices"
	"unsafe"
)

// chain holds the handlers of one event in one composite, in their order. While any
// chain runs, entries is replaced and never changed, so that a running one keeps its own
// view: a handler bound meanwhile runs from the next raise on, one unbound meanwhile
// runs no more.
type chain struct {
	event    *eventID
	entries  []entry
	turns    turns  // nil: none of its raises was ever enqueued or delayed
	version  uint32 // grows with every change of entries
	messages bool   // the event carries *Message
}

// entry is a handler. The event's identity tells its type: only an Event[T] has an
// eventID that NewEvent[T] made, so the chains of a composite lie in one array whatever
// their events carry.
type entry struct {
	handle unsafe.Pointer // Handler[T]
	owner  *attachment
	tag    uint64 // the binding's number, and in the low bits its priority
}

const priorityBits = 16

func newEntry[T any](h Handler[T], owner *attachment, id uint64, p Priority) entry {
	return entry{*(*unsafe.Pointer)(unsafe.Pointer(&h)), owner, id<<priorityBits | uint64(uint16(p))}
}

func (e *entry) id() uint64 { return e.tag >> priorityBits }

func (e *entry) priority() Priority { return Priority(e.tag) }

// handler is an entry's handler, of a chain whose event carries T.
func handler[T any](e *entry) Handler[T] { return *(*Handler[T])(unsafe.Pointer(&e.handle)) }

// turns are what is to be raised later, whatever the argument's type.
type turns interface {
	runWaiting(x *Exec, ch *chain)
	runTimer(x *Exec, ch *chain, arg any)
}

// waitingTurns are the arguments of enqueued raises.
type waitingTurns[T any] struct{ ring[waiting[T]] }

// waiting is an enqueued raise. stamp is the identity of the message it carries,
// 0 for other arguments: a raise whose message has ended meanwhile is skipped.
type waiting[T any] struct {
	arg   T
	stamp uint64
}

// Most composites have no more than these.
const (
	fewChains = 32
	fewSlots  = 64 // of the table
)

// chainTable finds the chains of a composite by their events: an open-addressed table of
// numbers from 1, 0 a free place. Chains stay where they are.
type chainTable struct {
	slots []int32
	n     int
	first [fewChains]chain
	more  []*chain
}

func (t *chainTable) at(i int) *chain {
	if i < fewChains {
		return &t.first[i]
	}
	return t.more[i-fewChains]
}

// find returns the event's chain, nil when nothing was ever bound or enqueued.
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

// ensure returns the event's chain and makes it if need be.
func ensure[T any](c *Composite, e Event[T]) *chain {
	t := &c.chains
	if ch := t.find(e.id); ch != nil {
		return ch
	}
	var arg T
	_, messages := any(arg).(*Message)
	if t.n >= fewChains {
		t.more = append(t.more, new(chain))
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

// later returns what keeps the arguments of a chain's later raises.
func later[T any](ch *chain) *waitingTurns[T] {
	if ch.turns == nil {
		ch.turns = new(waitingTurns[T])
	}
	return ch.turns.(*waitingTurns[T])
}

// order is that in which handlers run.
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

// bind is a handler that takes effect when its micro-protocol has attached.
type bind struct {
	to    *chain
	entry entry
}

// insertAll makes the handlers of a new composite take effect: all of them in one array,
// those of a chain together.
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

// Unbind takes the handler away. In a chain that is running, a handler that has
// not run yet will not. Unbinding twice, or a zero Binding, does nothing.
func (b Binding) Unbind(x *Exec) {
	if b.chain != nil && b.chain.unbind(b.id) && x.tracer != nil {
		x.trace(TraceRecord{Kind: TraceUnbind, Protocol: x.cur.name()})
	}
}
