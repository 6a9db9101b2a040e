package microproto

// SegmentLabel tells what a slot holds in bytes [Offset, Offset+Length): the
// sender's label (iterate) of the newest value that came for them.
type SegmentLabel struct {
	Offset, Length int
	Label          uint64
}

// Arrival describes what Endpoint.Receive copied out.
type Arrival struct {
	// Label is the message's label (synchronous), or that of the slot's oldest
	// segment (asynchronous): the slot's age. Newest is the newest segment's.
	Label, Newest uint64
	// Length is the message's length in bytes (a slot: its fixed length).
	Length int
	// Fresh tells that something newer than the last Receive was copied.
	Fresh bool
	// Complete is false while some segment of a slot has never arrived; its
	// label then counts as "nothing yet" and Label is meaningless.
	Complete bool
}

// Endpoint is the face of a transport composite towards sessions: the
// micro-protocol at its top (Synchronous or Asynchronous in CTP*). Calls are made
// inside Composite.Do and never block; ErrBusy and ErrNothing say "later".
type Endpoint interface {
	MicroProtocol
	// Slot declares that messages of that tag have this length in bytes. Both
	// ends declare the same slots before the first Send. Asynchronous: required,
	// memory is allocated here. Synchronous: optional, an upper bound.
	Slot(tag uint32, length int) error
	// Send starts a transfer. data is aliased until Accepted(transfer) when
	// synchronous, and may be reused on return when asynchronous.
	// Transfer numbers increase by one from 1. ErrBusy: no credit for it now.
	Send(x *Exec, tag uint32, label uint64, data []byte) (transfer uint64, err error)
	// Accepted is the highest transfer number such that it and all before it are
	// complete.
	Accepted() uint64
	// Receive: synchronous, the oldest message of that tag is copied into dst
	// (ErrShort if dst is too small; ErrNothing if there is none). Asynchronous:
	// every segment newer than the last Receive is copied to its place in dst;
	// labels, if not nil, gets one entry a segment (up to its capacity, length set).
	// Nothing new: Fresh is false and err nil.
	Receive(x *Exec, tag uint32, dst []byte, labels *[]SegmentLabel) (Arrival, error)
	// Arrivals counts messages or segments accepted since the start; it only grows.
	Arrivals() uint64
}

// Unread is a synchronous message that has been accepted and not yet received.
type Unread struct {
	Tag   uint32
	Label uint64
	Data  []byte
	Cost  uint64 // bytes of the receiver's queue that it takes
}

// Legacy is what outlives a change of a session's composition at the receiving end.
// It belongs to the session; an endpoint fills in its own part when it leaves and takes
// it out when it begins.
type Legacy struct {
	// Stored counts the bytes of the receiver's queue that messages have taken in all,
	// of those that came whole; Consumed the bytes of those that were received. Credit
	// is Consumed and the queue's size: what the other end may send in all.
	Stored, Consumed, Credit uint64
	// Unread are the messages that wait to be received, oldest first for each tag.
	Unread []Unread
	// Slots are an asynchronous endpoint's; nil: none was there yet. Superseded: a
	// synchronous endpoint came after it, whose messages are newer than what the slots
	// held, so that they start empty.
	Slots      State
	Superseded bool
}

// Successor is an Endpoint that can go on where the one of an earlier composition of
// its session stopped, and be succeeded itself, whatever is in flight.
type Successor interface {
	Endpoint
	// Leave hands over what has arrived. Afterwards the endpoint receives nothing, but
	// its composite may go on for a while to bring transfers to their end.
	Leave(l *Legacy)
	// Take goes on from l. It is called before the composite is opened and after Slot.
	Take(l *Legacy) error
	// Resume tells a synchronous endpoint, after the composite was opened and before
	// the first Send, how many bytes of the other end's queue its messages have taken in
	// all, and how many may be taken.
	Resume(sent, granted uint64)
	// Granted is the number of bytes that the other end lets this one send in all; 0
	// when asynchronous.
	Granted() uint64
}

// Poster is an Endpoint that puts a message together where it is waited for.
type Poster interface {
	Endpoint
	// Post: the next message of a tag of which none is there is wanted in dst, which
	// the endpoint may write to until Receive has returned a message of the tag, or
	// Withdraw was called. One at a time.
	Post(tag uint32, dst []byte)
	// Withdraw takes the last Post back.
	Withdraw()
}

// Gatherer is an Endpoint that can send small messages together.
type Gatherer interface {
	Endpoint
	// SendMore is Send of a message that others will follow: it may wait for them until
	// Flush, or the next Send.
	SendMore(x *Exec, tag uint32, label uint64, data []byte) (transfer uint64, err error)
	// Flush sends what waits. ErrBusy: it goes on waiting, since there is no room now.
	Flush(x *Exec) error
}

// Drainer is a micro-protocol that can hurry. The composition is about to be replaced,
// and what is under way has to arrive before: waiting long for an acknowledgement that
// may be late saves nothing now. It is asked from the bottom of the composition to its top.
type Drainer interface {
	MicroProtocol
	Drain(x *Exec)
}

// Heir is a micro-protocol that learns something about the path, and can hand it on to
// the one of its name in the composition that follows. Unlike Detach it is asked while
// messages are in flight: nothing that numbers messages may be handed on.
type Heir interface {
	MicroProtocol
	Bequeath() State
	Inherit(s State) error // before the composite is opened; s came from Bequeath
}
