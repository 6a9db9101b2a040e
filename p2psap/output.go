package p2psap

// SessionID numbers the sessions of one node. It is never 0, and not used again
// for a long time.
type SessionID uint32

// ConnID numbers the control connections of one node. The shell chooses it; it is
// never 0 and never used again.
type ConnID uint64

// OutputKind tells what an Output asks for or reports.
type OutputKind uint8

// The kinds of output. The first three are orders to the shell, the others news.
const (
	OutControl     OutputKind = iota + 1 // send Data on connection Conn, after what was sent before
	OutDial                              // open a control connection to Peer at Addr; answer with ControlUp or DialFailed
	OutDisconnect                        // close connection Conn after what was sent before; Err says why
	OutPeerUp                            // Peer has answered; sessions can be opened
	OutPeerRefused                       // Peer and this node do not match: Err
	OutPeerClosed                        // Peer said goodbye
	OutPeerLost                          // Peer is lost: Err is a *PeerLostError
	OutOpened                            // session Session is open
	OutActivity                          // session Session: something arrived, was accepted, or there is room again
	OutEnded                             // session Session has ended: Err
	OutAdapted                           // session Session has another composition; or, with Err, not the one that was asked for
	OutRail                              // a rail of Network to Peer can be used; or, with Err, cannot any more
)

func (k OutputKind) String() string {
	names := [...]string{"", "control", "dial", "hangup", "peer.up", "peer.refused", "peer.closed", "peer.lost", "opened", "touched", "ended", "adapted", "rail"}
	if int(k) < len(names) {
		return names[k]
	}
	return "output?"
}

// Output is one order to the shell, or one piece of news. Data belongs to
// whoever drains it.
type Output struct {
	Kind    OutputKind
	Conn    ConnID
	Peer    string
	Addr    string
	Data    []byte
	Session SessionID
	Network Network
	Err     error
}
