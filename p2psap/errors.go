package p2psap

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// Errors of nodes and sockets. Compare with errors.Is and errors.As.
var (
	// ErrClosed: this end closed the session or the node.
	ErrClosed = errors.New("p2psap: closed")
	// ErrPeerClosed: the other end closed the session, or said goodbye. It is an
	// ErrClosed too.
	ErrPeerClosed = fmt.Errorf("p2psap: the peer closed: %w", ErrClosed)
	// ErrNotConnected: the peer is not known, or has never answered.
	ErrNotConnected = errors.New("p2psap: not connected")
	// ErrNotOpen: the session's two ends have not agreed yet.
	ErrNotOpen = errors.New("p2psap: the session is not open yet")
	// ErrSession: no session of that number, or not any more.
	ErrSession = errors.New("p2psap: no such session")
	// ErrLimit: a bound of Limits is reached.
	ErrLimit = errors.New("p2psap: limit reached")
	// ErrMalformed: bytes that no node of this version sends.
	ErrMalformed = errors.New("p2psap: malformed")
	// ErrSlot: a tag that the session does not declare, or a length that is not the slot's.
	ErrSlot = errors.New("p2psap: wrong slot")
)

// PeerLostError tells that a peer has been silent for longer than the time
// allowed, and so is held for dead.
type PeerLostError struct {
	Peer   string
	Silent time.Duration
}

func (e *PeerLostError) Error() string {
	return fmt.Sprintf("p2psap: peer %q is lost: nothing heard from it for %v", e.Peer, e.Silent.Round(time.Millisecond))
}

// RefusedError tells why two peers, or the two ends of a session, do not come
// together. Both ends get one; it names everything that differs.
type RefusedError struct {
	Peer    string
	Session string // "" when the peers as a whole do not match
	Reason  string
}

func (e *RefusedError) Error() string {
	if e.Session == "" {
		return fmt.Sprintf("p2psap: peer %q refused: %s", e.Peer, e.Reason)
	}
	return fmt.Sprintf("p2psap: session %q with peer %q refused: %s", e.Session, e.Peer, e.Reason)
}

// MissingError lists micro-protocols that a composition needs and the catalog
// does not have.
type MissingError struct {
	Column string
	Names  []string
}

func (e *MissingError) Error() string {
	return fmt.Sprintf("p2psap: the column %q of Table I needs micro-protocols that this program does not have: %s", e.Column, strings.Join(e.Names, ", "))
}
