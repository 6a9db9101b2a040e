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
