package microproto

// SegmentLabel is the label (the sender's iterate) of the newest value that has arrived for
// bytes [Offset, Offset+Length) of a slot. If several values have, because segments had another
// length when they arrived, it is the smallest of their labels.
type SegmentLabel struct {
	Offset, Length int
	Label          uint64
}

// Arrival describes the message or value that Endpoint.Receive copied.
type Arrival struct {
	// Label is the message's label (synchronous), or the label of the slot's oldest segment
	// (asynchronous). Newest is the label of the newest segment.
	Label, Newest uint64
	// Length is the length of the message or slot in bytes.
	Length int
	// Fresh reports that data newer than those of the last Receive were copied.
	Fresh bool
	// Complete is false until every segment of a slot has arrived once. Label has no meaning
	// before.
	Complete bool
}

// Endpoint is an optional interface of micro-protocols: the face of a transport composite
// towards sessions (Synchronous or Asynchronous in package ctp). Calls with an Exec are made
// inside Composite.Do. No call blocks: ErrBusy and ErrNothing mean that a later call may
// succeed.
type Endpoint interface {
	MicroProtocol
	// Slot declares the length in bytes of the messages of a tag. Both ends declare the same
	// slots before the first Send. An asynchronous endpoint requires it and allocates the
	// memory here; in a synchronous one it is optional and an upper bound.
	Slot(tag uint32, length int) error
	// Send starts a transfer and returns its number, counted from 1. A synchronous endpoint
	// refers to data until the transfer is accepted; with an asynchronous one the caller may
	// change data on return. ErrBusy: there is no credit for it now.
	Send(x *Exec, tag uint32, label uint64, data []byte) (transfer uint64, err error)
	// Accepted returns the number of the last transfer that is complete with all before it.
	Accepted() uint64
	// Receive copies data to dst. Synchronous: the oldest message of the tag; ErrShort if dst
	// is too small, ErrNothing if there is none. Asynchronous: every segment newer than the
	// last Receive, to its place in dst; if there is none, Fresh is false. labels, if not nil,
	// is set to the labels of the segments, as far as its capacity allows.
	Receive(x *Exec, tag uint32, dst []byte, labels *[]SegmentLabel) (Arrival, error)
	// View is Receive that copies nothing in a synchronous endpoint. It changes v only when it returns data that are
	// fresh and complete. An asynchronous endpoint keeps the value in the memory of v, which must be the same v for
	// every call with a tag; it copies nothing if all segments are newer than in the last View.
	View(x *Exec, tag uint32, v *View) (Arrival, error)
	// Arrivals returns the number of messages or segments that have arrived since the start.
	Arrivals() uint64
}

// Unread is a synchronous message that has arrived and was not received.
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
	// Post offers dst for the next message of a tag, if none of that tag is unread. The
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
	// Flush sends the waiting messages. ErrBusy: there is no room now, and they keep waiting.
	Flush(x *Exec) error
}
