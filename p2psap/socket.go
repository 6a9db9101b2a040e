// Package p2psap is the self-adaptive transport's core: node and session state
// machines, the composition policy, the control channel's messages. It does no
// I/O; p2psap/driver runs it in real time, internal/sim in virtual time.
package p2psap

import (
	"context"

	"github.com/p2pdc/p2pdc/microproto"
)

// Tag names a slot (asynchronous) or a queue (synchronous) of a session.
type Tag uint32

// Label is the sender's number of a value: for halos (step, sweep) packed by the
// solver. It grows with every Send of one tag.
type Label uint64

// Transfer numbers the Sends of a session from 1; a transfer is complete when
// all before it are.
type Transfer uint64

// Slot is a caller's receive buffer for one tag. The caller owns it; Receive
// writes Data and, when Labels is not nil, what each segment holds.
type Slot struct {
	Tag    Tag
	Data   []byte
	Labels []microproto.SegmentLabel
}

// Arrival tells what a Receive wrote; see microproto.Arrival.
type Arrival = microproto.Arrival

// Ready tells why Wait returned: the transfer is complete, something arrived
// that has not been received, or both.
type Ready struct {
	Accepted bool
	Arrived  bool
}

// SlotSpec declares a slot: both ends of a session declare the same.
type SlotSpec struct {
	Tag Tag
	// Length is in bytes: of the longest message when synchronous, of every value, and a
	// multiple of 8, when asynchronous.
	Length int
}

// OpenOptions say what a session is for. Both ends open it under the same name
// with the same mode and slots; Open returns when both have agreed.
type OpenOptions struct {
	Name         string
	Mode         microproto.Mode
	Slots        []SlotSpec
	ReceiveBytes int                // the receiver's bounded queue; 0: a default that holds the slots four times
	Options      microproto.Options // for the micro-protocols
}

// Socket is one end of a session (P2Psend, P2Preceive, P2Pwait of the papers).
// The calls carry no mode: they are synchronous or asynchronous by the session's
// present composition. One goroutine may call Send while another calls Receive;
// two must not call the same one.
type Socket interface {
	// Send starts the transfer of data, labelled, under a tag. ErrSlot: the session does
	// not declare the tag, or data has not the slot's length when asynchronous, more than
	// that when synchronous; nothing was sent.
	// Synchronous: it returns at once unless the receiver's grant of bytes is
	// used up (then it blocks until there is room or ctx ends); data belongs to
	// the session until Wait has said that the transfer was accepted.
	// Asynchronous: it never blocks and data may be reused on return.
	Send(ctx context.Context, tag Tag, label Label, data []byte) (Transfer, error)
	// Receive. Synchronous: blocks until a message of the slot's tag is there
	// and copies the oldest (FIFO, exactly once); meanwhile slot.Data may be written to. Asynchronous: never blocks;
	// copies every segment that is newer, Fresh tells whether there was one. ErrSlot: the
	// session does not declare the tag. microproto.ErrShort: slot.Data is shorter than the
	// message, which stays for the next Receive, or than the asynchronous slot.
	Receive(ctx context.Context, slot *Slot) (Arrival, error)
	// Wait blocks until transfer t has been accepted (stored in the receiver's
	// queue; an asynchronous transfer is complete at once), or until something
	// arrives. t = 0 waits for an arrival only.
	Wait(ctx context.Context, t Transfer) (Ready, error)
	// Adapt changes the session's mode of communication. It is symmetric, as Open is:
	// the k-th Adapt of one end pairs with the k-th of the other. It blocks until both
	// have asked and this end's calls behave as the new mode says. Ends that ask for
	// different modes both get a *RefusedError, and the session stays as it is.
	Adapt(ctx context.Context, mode microproto.Mode) error
	// Close ends the session at both ends. Calls that block return ErrClosed.
	Close() error
	// Info describes the session's present composition and counters.
	Info() SessionInfo
}
