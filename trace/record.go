package trace

// Kind is what a record describes.
type Kind uint8

// The kinds. The comment names the fields of Record that a kind sets beside At, Session, Rail and Epoch; Flow stands
// for Window, InFlight and Waiting.
const (
	// Send: a message was given to a session. Number is its label. Count is the low half of the transfer's number,
	// Value the number of the message among those of its tag, from 1. Tag, Bytes, Flow (before the message).
	Send Kind = iota + 1
	// Accepted: the other end has accepted transfer Number and all before it.
	Accepted
	// Receive: the user has received a message. Number is its newest label. Value is the number of the message among
	// those of its tag, from 1. Tag, Bytes.
	Receive
	// SegmentOut: segments left the session, as one train. Number is that of the first, Count is how many they are,
	// Bytes their length with headers, Value the round trip in nanoseconds. Flow (afterwards).
	SegmentOut
	// SegmentIn: segments arrived. Number, Count, Bytes.
	SegmentIn
	// Loss: segments are considered lost, for the reason Cause. Number is that of the first, Count is how many.
	Loss
	// IdleRestart: the congestion window was reduced after an idle time of Number nanoseconds. Flow.
	IdleRestart
	// WindowFull: a segment of Bytes has to wait for the window. Flow.
	WindowFull
	// Replaced: a waiting frame or segment was replaced by a newer one. Value is the reason (Node.Text), Count, Bytes.
	Replaced
	// Dropped: a frame or message was dropped. Value is the reason (Node.Text), Count, Bytes.
	Dropped
	// RailUp, RailDown: the rail to peer Node.Text(Tag) can be used, or no longer, for the reason Node.Text(Value).
	RailUp
	RailDown
	// Move: the session uses another rail from this epoch on.
	Move
	// EpochBegin: the session uses a composition, Node.Layouts[Number]. Value is the pause before it in microseconds.
	EpochBegin
	// RelaxBegin, RelaxEnd: the peer relaxes a part of its block, of Bytes points. Number is the sweep; in virtual time
	// it counts the relaxations.
	RelaxBegin
	RelaxEnd
	// Step: a step of a composite (microproto.TraceRecord). Cause is its kind, Count the depth, Number the message,
	// Bytes the length, Window the event, InFlight the micro-protocol and Waiting the detail (Node.Text). Value and Tag
	// are the low and the high half of a timer's delay in nanoseconds.
	Step
	kinds
)

var kindNames = [kinds]string{
	"void", "send", "accepted", "receive", "out", "in", "loss", "idle.restart", "window.full", "replaced", "dropped",
	"rail.up", "rail.down", "move", "epoch", "relax.begin", "relax.end", "step",
}

// String returns the word for the kind in text.
func (k Kind) String() string {
	if k < kinds {
		return kindNames[k]
	}
	return "record?"
}

// Cause is how a loss was found.
type Cause uint8

// The causes.
const (
	ByDuplicates Cause = iota + 1 // later segments have arrived
	ByTimeout                     // the retransmission time-out has passed
	ByName                        // the other end named the segment
	ByProbe                       // the acknowledgement of a tail-loss probe showed it
	causes
)

var causeNames = [causes]string{"", "duplicates", "time-out", "named", "probe"}

// String returns the word for the cause in text.
func (c Cause) String() string {
	if c < causes {
		return causeNames[c]
	}
	return "cause?"
}

// RecordBytes is the size of a record, in memory and in files.
const RecordBytes = 48

// Record is one thing that happened at a node. Fields that a kind does not name are zero.
type Record struct {
	At       int64 // nanoseconds since the start of the node
	Number   uint64
	Kind     Kind
	Cause    Cause
	Rail     uint8  // index of the node's rail
	Epoch    uint8  // of the session's composition
	Session  uint16 // index in Node.Sessions
	Count    uint16
	Bytes    uint32
	Tag      uint32
	Window   uint32 // bytes, or packets of an asynchronous session; 0: none
	InFlight uint32 // in the unit of Window
	Waiting  uint32 // in the unit of Window: given to the session, and not sent
	Value    uint32
}

// Clamp returns n as a field of a record.
func Clamp(n int) uint32 { return uint32(min(max(n, 0), 1<<32-1)) }
