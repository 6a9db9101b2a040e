package p2psap

import (
	"context"

	"github.com/p2pdc/p2pdc/microproto"
)

// Tag names a slot (asynchronous) or a queue (synchronous) of a session.
type Tag uint32

// Label is the sender's number of a value: for halos (step, sweep) packed by the solver. It grows with
// every Send of one tag.
type Label uint64

// Transfer numbers the Sends of a session from 1. A transfer is complete when all before it are.
type Transfer uint64

// Slot is a caller's receive buffer for one tag. The caller owns it. Receive writes Data and, when
// Labels is not nil, the label of each segment.
type Slot struct {
	Tag    Tag
	Data   []byte
	Labels []microproto.SegmentLabel
}

// Arrival describes what a Receive wrote; see microproto.Arrival.
type Arrival = microproto.Arrival

// View is a received message in the memory where it arrived; see microproto.View.
type View = microproto.View

// Ready is why Wait returned: the transfer is complete, something arrived that has not been received,
// or both.
type Ready struct {
	Accepted bool
	Arrived  bool
}

// SlotSpec declares a slot. Both ends of a session declare the same slots.
type SlotSpec struct {
	Tag Tag
	// Length is in bytes: that of the longest message when synchronous; that of every value, and a
	// multiple of 8, when asynchronous.
	Length int
}

// OpenOptions describe a session. Both ends open it under the same name with the same mode and slots;
// Open returns when both have agreed.
type OpenOptions struct {
	Name         string
	Mode         microproto.Mode
	Slots        []SlotSpec
	ReceiveBytes int                // bound of the receiver's queue; 0: room for every slot four times
	Options      microproto.Options // for the micro-protocols
	Class        Class              // of what this end sends
	// Network, if it is not 0, is the network of the rail that the session uses while it is up, and the base rail
	// otherwise; 0: the best rail. The two ends should agree on it.
	Network Network
}

// Socket is one end of a session (P2Psend, P2Preceive, P2Pwait of the papers). The calls have no mode:
// they are synchronous or asynchronous by the session's present composition. One goroutine may call
// Send while another calls Receive; two must not call the same one.
type Socket interface {
	// Send starts the transfer of data, labelled, under a tag. It returns ErrSlot, and sends nothing,
	// if the session does not declare the tag or if data does not fit the slot: asynchronous values
	// have the slot's length, synchronous messages at most that.
	//
	// A synchronous Send returns at once unless the receiver's grant of bytes is used up; then it
	// blocks until there is room or ctx ends. The session keeps data until Wait has reported that the
	// transfer was accepted. An asynchronous Send never blocks, and data may be reused on return.
	Send(ctx context.Context, tag Tag, label Label, data []byte) (Transfer, error)
	// Reserve returns memory of the network for the next message of a tag, of n bytes, which Send then sends without a
	// copy; nil if there is none. The caller fills it, passes it to Send before the next Reserve, and does not
	// touch it afterwards.
	Reserve(tag Tag, n int) []byte
	// Receive copies into slot.Data. It returns ErrSlot if the session does not declare the tag, and
	// ErrShort if slot.Data is shorter than the message, which stays for the next Receive,
	// or than the asynchronous slot.
	//
	// A synchronous Receive blocks until there is a message of the tag, and copies the oldest (FIFO,
	// exactly once); meanwhile slot.Data may be written to. An asynchronous Receive never blocks and
	// copies every segment that is newer; Arrival.Fresh reports whether there was one.
	Receive(ctx context.Context, slot *Slot) (Arrival, error)
	// ReceiveView is Receive without a copy in a synchronous session: v.Pieces are the message. Until v is
	// released or used again, it holds memory that the link may need, at most four times the messages'
	// length; the other end may send as if they had been copied. An asynchronous session keeps the value
	// in memory of v: use one View for each tag. v changes only if the value is fresh and complete.
	ReceiveView(ctx context.Context, tag Tag, v *View) (Arrival, error)
	// Wait blocks until transfer t has been accepted, that is stored in the receiver's queue, or until
	// something arrives. An asynchronous transfer is complete at once. With t = 0 it waits for an
	// arrival only.
	Wait(ctx context.Context, t Transfer) (Ready, error)
	// Adapt changes the session's mode of communication. It is symmetric, as Open is: the k-th Adapt
	// of one end pairs with the k-th of the other. It blocks until both ends have asked and this
	// end's calls behave as the new mode says. Ends that ask for different modes both get a
	// *RefusedError, and the session stays as it is.
	Adapt(ctx context.Context, mode microproto.Mode) error
	// Close ends the session at both ends. Calls that block return ErrClosed.
	Close() error
	// Info describes the session's present composition and counters.
	Info() SessionInfo
}
