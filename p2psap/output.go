package p2psap

import "github.com/p2pdc/p2pdc/p2psap/internal/control"

// SessionID numbers the sessions of one node. It is never 0, and not used again for a long time.
type SessionID uint32

// ConnID numbers the control connections of one node. The caller chooses it; it is never 0 and
// never used again.
type ConnID uint64

// OutputKind is what an Output asks for or reports.
type OutputKind uint8

// The kinds of output. The first three are orders to the caller, the others reports.
const (
	OutControl     = OutputKind(control.OutSend)    // send Data on connection Conn
	OutDial        = OutputKind(control.OutDial)    // connect to Peer at one of Addrs; answer with ControlUp or DialFailed
	OutDisconnect  = OutputKind(control.OutHangup)  // close connection Conn; Err is the reason
	OutPeerUp      = OutputKind(control.OutUp)      // sessions with Peer can be opened
	OutPeerRefused = OutputKind(control.OutRefused) // Peer and this node do not match: Err
	OutPeerClosed  = OutputKind(control.OutSaidBye) // Peer said goodbye
	OutPeerLost    = OutputKind(control.OutLost)    // Peer was silent or broke the protocol: Err
)

// The kinds of output about sessions and rails.
const (
	OutOpened   OutputKind = iota + OutPeerLost + 1 // session Session is open
	OutActivity                                     // session Session: an arrival, an acceptance, or room to send
	OutEnded                                        // session Session has ended: Err
	OutAdapted                                      // session Session has another composition; with Err, it could not
	OutRail                                         // a rail of Network to Peer can be used; with Err, no longer
	OutRoute                                        // over which Route frames of Network go to Peer; with Err, they left one
	OutOffered                                      // Peer has opened a session that this end has not; see Accept
)

func (k OutputKind) String() string {
	names := [...]string{
		"", "control", "dial", "hangup", "peer.up", "peer.refused", "peer.closed", "peer.lost",
		"opened", "touched", "ended", "adapted", "rail", "route", "offered",
	}
	if int(k) < len(names) {
		return names[k]
	}
	return "output?"
}

// Output is an order to the caller or a report. Data belongs to the caller once drained.
type Output struct {
	Kind    OutputKind
	Conn    ConnID
	Peer    string
	Addrs   []string
	Data    []byte
	Session SessionID
	Network Network
	Route   string
	Err     error
}
