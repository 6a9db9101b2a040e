package p2psap

import (
	"errors"
	"fmt"
	"time"

	"github.com/p2pdc/p2pdc/microproto"
	"github.com/p2pdc/p2pdc/p2psap/internal/control"
)

// Errors of nodes and sockets. Compare with errors.Is and errors.As.
var (
	// ErrClosed is returned when this end closed the session or the node.
	ErrClosed = control.ErrClosed
	// ErrPeerClosed is returned when the other end closed the session or said goodbye. It is an
	// ErrClosed too.
	ErrPeerClosed = control.ErrPeerClosed
	// ErrNotConnected is returned for a peer that is not known or has never answered.
	ErrNotConnected = control.ErrNotConnected
	// ErrNotOpen is returned while the two ends of the session have not agreed.
	ErrNotOpen = errors.New("p2psap: the session is not open yet")
	// ErrOpen is returned by Open for a session that this end has opened and not closed.
	ErrOpen = errors.New("p2psap: the session is open already")
	// ErrBusy is returned when the receiver has no room now: try again later.
	ErrBusy = microproto.ErrBusy
	// ErrNothing is returned when there is nothing to receive.
	ErrNothing = microproto.ErrNothing
	// ErrShort is returned for a message that is longer than the memory of the slot.
	ErrShort = microproto.ErrShort
	// ErrSession is returned for a number that no session has.
	ErrSession = errors.New("p2psap: no such session")
	// ErrLimit is returned when a bound of Limits is reached.
	ErrLimit = control.ErrLimit
	// ErrMalformed is returned for bytes that no node of this version sends.
	ErrMalformed = control.ErrMalformed
	// ErrSlot is returned for a tag that the session does not declare, and for a message whose
	// length does not fit the slot.
	ErrSlot = errors.New("p2psap: wrong slot")
)

// PeerLostError is the error of a peer that was silent for the peer time-out, whose data path carried nothing for so
// long, or whose process on this host has ended.
type PeerLostError struct {
	Peer   string
	Silent time.Duration
	Reason string // "": it was silent
}

func (e *PeerLostError) Error() string {
	if e.Reason != "" {
		return fmt.Sprintf("p2psap: peer %q is lost: %s", e.Peer, e.Reason)
	}
	return fmt.Sprintf("p2psap: peer %q is lost: nothing heard from it for %v", e.Peer, e.Silent.Round(time.Millisecond))
}

// RefusedError is the error of two peers, or two ends of a session, that do not match. Both ends
// get one; Reason names everything that differs.
type RefusedError struct {
	Peer    string
	Session string // "": the peers as a whole do not match
	Reason  string
}

func (e *RefusedError) Error() string {
	if e.Session == "" {
		return fmt.Sprintf("p2psap: peer %q refused: %s", e.Peer, e.Reason)
	}
	return fmt.Sprintf("p2psap: session %q with peer %q refused: %s", e.Session, e.Peer, e.Reason)
}
