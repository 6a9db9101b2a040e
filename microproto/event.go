package microproto

// Event is a typed event. NewEvent gives it its identity; keep it in a package variable. Two
// events of one name are different events, copies of an Event are the same event. The zero
// Event has no handlers and no handler can be bound to it.
type Event[T any] struct {
	id *eventID
}

// eventID is shared by the copies of an event. A composite finds an event's chain by hash in
// an open-addressed table and compares the pointer, so raising needs neither a map nor an
// index that is global to the process.
type eventID struct {
	name string
	hash uint32
}

// NewEvent returns a new event. Its name appears in traces, transcripts and errors.
func NewEvent[T any](name string) Event[T] {
	return Event[T]{id: &eventID{name: name, hash: hashName(name)}}
}

// Name returns the name given to NewEvent.
func (e Event[T]) Name() string {
	if e.id == nil {
		return ""
	}
	return e.id.name
}

// hashName is 32-bit FNV-1a, its high bits folded into the low ones.
func hashName(s string) uint32 {
	h := uint32(2166136261)
	for i := range len(s) {
		h = (h ^ uint32(s[i])) * 16777619
	}
	return h ^ h>>15
}

// Handler handles an event. Handlers of one composite run one at a time; Exec has the rules.
type Handler[T any] func(x *Exec, arg T)

// Priority orders the handlers of one event: the lowest runs first. Handlers of equal
// priority run from the top of the composite to its bottom, those of one micro-protocol in
// the order of binding.
type Priority int16

// Named priorities. Any other value may be used as well.
const (
	First  Priority = -1000
	Early  Priority = -100
	Normal Priority = 0
	Late   Priority = 100
	Last   Priority = 1000
)
