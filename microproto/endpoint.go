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

// HandoverState is what a session keeps of its receiving end when its composition
// changes. The old endpoint exports it, the new one imports it.
type HandoverState struct {
	// Stored counts the bytes of the receiver's queue that complete messages have taken
	// since the session was opened; Consumed those of the messages that were received.
	// Credit is Consumed plus the queue's size: the other end may send as much in all.
	Stored, Consumed, Credit uint64
	// Unread are the messages not yet received, oldest first for each tag.
	Unread []Unread
	// Slots are those of an asynchronous endpoint; nil if there was none. Superseded
	// reports that a synchronous endpoint came after it: its messages are newer than the
	// values of the slots, so the slots start empty.
	Slots      State
	Superseded bool
}

// Migratable is an optional interface of endpoints. A session whose endpoints implement
// it can change its composition while messages are in flight: Export of the old endpoint,
// Import of the new one, then Open of the new composite, then SetCredit.
type Migratable interface {
	Endpoint
	// Export moves what has arrived to h. Afterwards the endpoint receives nothing; its
	// composite may go on for a while to complete the transfers in flight.
	Export(h *HandoverState)
	// Import continues from h. It is called before the composite is opened, after Slot.
	Import(h *HandoverState) error
	// SetCredit sets, in a synchronous endpoint, how many bytes of the other end's queue
	// this end's messages have taken in all, and how many the other end has granted in all.
	// It is called after the composite was opened, before the first Send.
	SetCredit(sent, granted uint64)
	// Granted returns the bytes that the other end has granted in all; 0 in an
	// asynchronous endpoint.
	Granted() uint64
}

// Poster is an optional interface of endpoints that assemble a message directly in the
// memory of the user who waits for it.
type Poster interface {
	Endpoint
	// Post offers dst for the next message of a tag, if none of that tag has come yet. The
	// endpoint may write to dst until Receive has returned a message of the tag or Withdraw
	// was called. A second Post replaces the first.
	Post(tag uint32, dst []byte)
	// Withdraw takes the last Post back.
	Withdraw()
}

// Coalescer is an optional interface of endpoints that can send several small messages
// as one.
type Coalescer interface {
	Endpoint
	// SendMore is Send for a message that others follow: it may wait for them until Flush
	// or the next Send.
	SendMore(x *Exec, tag uint32, label uint64, data []byte) (transfer uint64, err error)
	// Flush sends what waits. ErrBusy: there is no room now, and it goes on waiting.
	Flush(x *Exec) error
}
