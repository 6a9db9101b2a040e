package microproto

// Event is a typed event. Its identity is the value that NewEvent returned, kept
// in a package variable: two events of one name are different events. Copies of
// an Event are the same event. The zero Event has no handlers and takes none.
type Event[T any] struct {
	id *eventID
}

// eventID is what an event's copies share. Composites find an event's chain in an
// open-addressed table by hash and compare the pointer, so that raising needs
// neither a map nor an index that all the process shares.
type eventID struct {
	name string
	hash uint32
}

// NewEvent makes an event. name is for people: traces, transcripts, errors.
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

// Handler handles an event. It runs to completion and never blocks; handlers of
// one composite run one at a time.
type Handler[T any] func(x *Exec, arg T)

// Priority orders the handlers of one event: lower runs first; handlers of equal
// priority run in the order in which their micro-protocols stand in the
// composite, those of one micro-protocol in the order of binding.
type Priority int16

// Named priorities; any value between them may be used.
const (
	First  Priority = -1000
	Early  Priority = -100
	Normal Priority = 0
	Late   Priority = 100
	Last   Priority = 1000
)
