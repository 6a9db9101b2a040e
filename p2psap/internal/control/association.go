package control

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/p2pdc/p2pdc/microproto"
)

// Back-off of dialling.
const (
	firstBackoff = 20 * time.Millisecond
	LastBackoff  = time.Second
)

// Errors of associations.
var (
	ErrClosed       = errors.New("p2psap: closed")
	ErrPeerClosed   = fmt.Errorf("p2psap: the peer closed: %w", ErrClosed)
	ErrNotConnected = errors.New("p2psap: not connected")
	ErrLimit        = errors.New("p2psap: limit reached")
)

// Config sets Associations up. Every field is required.
type Config struct {
	Name          string // of this node
	Incarnation   uint64 // of this node; see Incarnation
	PeerTimeout   time.Duration
	Heartbeat     time.Duration
	Handshake     time.Duration // for a connection to say hello
	Peers         int           // known peers
	PendingHellos int           // accepted connections without a hello
	Unacked       int           // per peer, messages not acknowledged
	Rand          *rand.Rand
}

// Host is the node that Associations serve.
type Host interface {
	// Hello returns this node's hello for a connection. Offer and Host are for the peer named; they
	// are empty if the peer is not known yet (""). Associations sets Incarnation.
	Hello(conn uint64, peer string) (*Hello, error)
	// AcceptOffer connects the base rail to the sender of a hello.
	AcceptOffer(offer []byte) (microproto.LinkAddr, error)
	// Added reports a new peer; p.Number counts the peers from 0.
	Added(p *Peer)
	// Restarted reports that a peer begins another life.
	Restarted(p *Peer)
	// Attached reports that p has a connection. took is the time between the hellos of a connection
	// that this node dialled, 0 for one that it accepted. The host calls MarkUp once the peer can
	// be used.
	Attached(now microproto.Instant, p *Peer, h *Hello, took time.Duration)
	// Receive carries out a sequenced message, or that of a pong.
	Receive(now microproto.Instant, p *Peer, b Body) error
	// Pinged reports that a ping was answered.
	Pinged(now microproto.Instant, p *Peer, number uint64)
	// Advance does what is due for a peer whose association goes on.
	Advance(now microproto.Instant, p *Peer)
	// Deadline returns when Advance has something to do for a peer.
	Deadline(p *Peer) microproto.Instant
	// Heartbeat returns the next heartbeat for p.
	Heartbeat(p *Peer) *Heartbeat
	// Silent reports, at each heartbeat, that nothing of a peer that is up has arrived for several. It is called
	// once more after something has arrived: what it sent before may have been lost.
	Silent(now microproto.Instant, p *Peer)
	// Disconnected reports that the association with p has ended: State and Err say how.
	Disconnected(now microproto.Instant, p *Peer)
	// Changed reports that Deadline may be earlier than before.
	Changed()
	// Emit takes an order, or a report.
	Emit(o Output)
	// RefusedError and LostError return the errors of a peer that does not match, and of one that was silent, or is
	// lost for another reason.
	RefusedError(peer, reason string) error
	LostError(peer string, silent time.Duration, reason string) error
}

// OutputKind is what an Output asks for or reports.
type OutputKind uint8

// The kinds. The first three are orders, the others reports.
const (
	OutSend    OutputKind = iota + 1 // send Data on connection Conn
	OutDial                          // open a connection to Peer at one of Addrs, the first that answers
	OutHangup                        // close connection Conn; Err is the reason
	OutUp                            // Peer is up
	OutRefused                       // Peer does not match: Err
	OutSaidBye                       // Peer said goodbye
	OutLost                          // Peer was silent, or sent what it must not: Err
)

// Output is an order to the shell, or a report for the user.
type Output struct {
	Kind  OutputKind
	Conn  uint64
	Peer  string
	Addrs []string
	Data  []byte
	Err   error
}

// State is the state of an association.
type State uint8

// The states.
const (
	Unknown State = iota
	New           // no hello yet, or the peer is still being measured
	Up
	Refused
	Closed
	Lost
)

// Counters count what was refused or repeated.
type Counters struct {
	In        uint64 // messages
	Malformed uint64
	Duplicate uint64 // messages received before
	Stale     uint64 // messages on a connection that was closed or replaced
	Expired   uint64 // connections closed without a hello, or without a measurement
	Refused   uint64 // peers
	Reconnect uint64
}

// Peer is the association with one peer.
type Peer struct {
	Number      int
	Name        string
	State       State
	Err         error               // why it is not up
	Link        microproto.LinkAddr // on the base rail
	Incarnation uint64              // of its life; 0: no hello yet
	Conn        *Conn               // nil: it has no connection
	LastHeard   microproto.Instant  // something of it arrived
	Sent        uint64              // last sequence number
	Received    uint64              // last sequence number
	Unacked     []unacked           // messages that it has not acknowledged
	OneHost     bool                // it is known to be on this host
	RTT         time.Duration       // of the control channel, once it is up; 0: not measured
	addr        string              // of Connect
	addresses   []netip.Prefix      // of its hello
	dialling    bool
	dialAt      microproto.Instant
	backoff     time.Duration
	nextBeat    microproto.Instant
	silent      bool // at the last beat
	overflowed  bool // the bound of Unacked was exceeded
	forgotten   bool // by Disconnect
	life        uint64
}

// unacked is a message that the peer has not acknowledged.
type unacked struct {
	sequence uint64
	data     []byte
}

// Connected reports whether the peer has a connection.
func (p *Peer) Connected() bool { return p.Conn != nil }

// Silent reports whether nothing of a peer that is up had arrived for some heartbeats when the last one was sent.
func (p *Peer) Silent() bool { return p.State == Up && p.silent }

// Heard notes that something of the peer arrived at now.
func (p *Peer) Heard(now microproto.Instant) { p.LastHeard = max(p.LastHeard, now) }

// Acknowledged reports whether the peer has received the message of that sequence number.
func (p *Peer) Acknowledged(sequence uint64) bool {
	return len(p.Unacked) == 0 || p.Unacked[0].sequence > sequence
}

// Forgotten reports whether Disconnect has ended the association.
func (p *Peer) Forgotten() bool { return p.forgotten }

// begin begins another association with p. life distinguishes those that this end has begun.
func (a *Associations) begin(now microproto.Instant, p *Peer, life uint64) {
	a.host.Restarted(p)
	*p = Peer{
		Number: p.Number, Name: p.Name, State: New, backoff: firstBackoff, LastHeard: now, addr: p.addr, life: life,
	}
}

// Alive reports whether the association can go on.
func (p *Peer) Alive() bool { return p.State == New || p.State == Up }

// Associations are those of one node.
type Associations struct {
	Config
	Counters  Counters
	Conns     []*Conn       // oldest first
	DialGrace time.Duration // how long the end with the lower name leaves dialling to the other
	host      Host
	peers     []*Peer
	closed    bool
}

// NewAssociations returns the associations of a node that has none.
func NewAssociations(c Config, h Host) *Associations {
	return &Associations{Config: c, DialGrace: time.Second, host: h}
}

// Peer returns the association with a peer; nil if it is not known.
func (a *Associations) Peer(name string) *Peer {
	for _, p := range a.peers {
		if p.Name == name {
			return p
		}
	}
	return nil
}

// peerNamed returns the association with a peer, which it adds if there is none.
func (a *Associations) peerNamed(now microproto.Instant, name string) (*Peer, error) {
	if p := a.Peer(name); p != nil {
		return p, nil
	}
	if name == "" || len(name) > MaxName {
		return nil, fmt.Errorf("p2psap: the name of a peer must have 1 to %d bytes; %q has %d", MaxName, name, len(name))
	}
	if name == a.Name {
		return nil, a.host.RefusedError(name, "it has the name of this node; every peer of a run needs its own")
	}
	if len(a.peers) >= a.Peers {
		return nil, fmt.Errorf("%w: %d peers", ErrLimit, len(a.peers))
	}
	p := &Peer{Number: len(a.peers), Name: name, State: New, backoff: firstBackoff, LastHeard: now}
	a.peers = append(a.peers, p)
	a.host.Added(p)
	return p, nil
}

// Connect asks for an association with a peer whose control channel listens at addr, or at one of several addresses
// separated by commas; "" when the peer is expected to dial. After Disconnect it begins another.
func (a *Associations) Connect(now microproto.Instant, name, addr string) error {
	p, err := a.peerNamed(now, name)
	if err != nil {
		return err
	}
	switch {
	case p.forgotten:
		p.addr = ""
		a.begin(now, p, p.life+1)
	case !p.Alive():
		return p.Err
	}
	if addr != "" && p.addr != addr {
		p.addr = addr
		p.dialAt = now
		if a.Name < name {
			p.dialAt = now.Add(a.DialGrace)
		}
	}
	a.advancePeer(now, p)
	return nil
}

// Advance does what is due at now.
func (a *Associations) Advance(now microproto.Instant) {
	for i := len(a.Conns) - 1; i >= 0; i-- {
		if c := a.Conns[i]; c.peer == nil && now >= c.until {
			a.Counters.Expired++
			a.hangup(now, c, fmt.Errorf("p2psap: no hello within %v", a.Handshake))
		}
	}
	for _, p := range a.peers {
		a.advancePeer(now, p)
	}
}

func (a *Associations) advancePeer(now microproto.Instant, p *Peer) {
	if p.State == Up && p.overflowed {
		a.Fail(now, p, fmt.Errorf("%w: peer %q leaves more than %d control messages unacknowledged",
			ErrLimit, p.Name, a.Unacked))
		return
	}
	if p.State == Up && now.Sub(p.LastHeard) >= a.PeerTimeout {
		a.markLost(now, p)
		return
	}
	a.host.Advance(now, p)
	if now >= a.dialTime(p) {
		p.dialling = true
		a.host.Emit(Output{Kind: OutDial, Peer: p.Name, Addrs: p.dialAddrs()})
	}
	if p.State != Up || now < p.nextBeat {
		return
	}
	p.nextBeat = now.Add(a.Heartbeat)
	a.Beat(p)
	silent := now.Sub(p.LastHeard) >= a.quiet(p, silentAfter)
	if silent || p.silent {
		a.host.Silent(now, p)
	}
	p.silent = silent
}

// maxDials bounds the addresses that are dialled at once.
const maxDials = 8

// dialAddrs returns the addresses at which to dial a peer: those of Connect, and with the port of the first of them those
// of its hello. Several cables may lead to it.
func (p *Peer) dialAddrs() []string {
	out := strings.Split(p.addr, ",")
	port, err := strconv.ParseUint(out[0][strings.LastIndexByte(out[0], ':')+1:], 10, 16)
	for _, a := range p.addresses {
		at := netip.AddrPortFrom(a.Addr(), uint16(port)).String()
		if err == nil && !a.Addr().IsUnspecified() && !slices.Contains(out, at) {
			out = append(out, at)
		}
	}
	return out[:min(len(out), maxDials)]
}

// Suspect has a peer be dialled as if its connection had fallen deaf: the cable that it takes may carry nothing.
func (a *Associations) Suspect(now microproto.Instant, p *Peer) {
	if c := p.Conn; c != nil {
		c.heard = min(c.heard, now.Add(-a.quiet(p, deafAfter)))
		a.host.Changed()
	}
}

// Beat sends a heartbeat to a peer that is connected.
func (a *Associations) Beat(p *Peer) {
	if p.Conn != nil {
		a.sendNow(p, Encode(KindHeartbeat, 0, 0, a.host.Heartbeat(p)))
	}
}

// Deadline returns when Advance has something to do next.
func (a *Associations) Deadline() microproto.Instant {
	d := microproto.Never
	for _, c := range a.Conns {
		if c.peer == nil {
			d = min(d, c.until)
		}
	}
	for _, p := range a.peers {
		d = min(d, a.peerDeadline(p))
	}
	return d
}

func (a *Associations) peerDeadline(p *Peer) microproto.Instant {
	d := min(a.host.Deadline(p), a.dialTime(p))
	if p.State == Up {
		d = min(d, p.LastHeard.Add(a.PeerTimeout), p.nextBeat)
	}
	return d
}

// Numbers of heartbeats after which a connection without a message is deaf, and a peer of which
// nothing has arrived is silent.
const (
	deafAfter   = 3
	silentAfter = 2
)

// quiet returns the time without a message after which a connection is deaf, or a peer silent: a number of heartbeats. Where
// round trips are long, TCP may deliver the heartbeats of one in a bunch, and send a lost segment again after another.
func (a *Associations) quiet(p *Peer, beats int) time.Duration {
	return max(time.Duration(beats)*a.Heartbeat, 2*p.RTT+a.Heartbeat)
}

// dialTime returns when to dial a peer. A connection that has fallen deaf stays until another takes
// its place: after an outage the kernel may not try again for as long as the outage took, while a new
// connection gets through at once.
func (a *Associations) dialTime(p *Peer) microproto.Instant {
	switch {
	case p.addr == "" || p.dialling || !p.Alive():
		return microproto.Never
	case p.Conn == nil:
		return p.dialAt
	case p.State != Up:
		return microproto.Never // the host ends its connection
	}
	deaf := p.Conn.heard.Add(a.quiet(p, deafAfter))
	if a.Name < p.Name {
		deaf = deaf.Add(a.DialGrace)
	}
	return max(deaf, p.dialAt)
}

// redial schedules the next attempt. The back-off doubles; it has jitter, so that two ends that
// dial each other do not collide again.
func (a *Associations) redial(now microproto.Instant, p *Peer) {
	p.dialling = false
	wait := p.backoff/2 + time.Duration(a.Rand.Int64N(int64(p.backoff)))
	if a.Name < p.Name && p.Incarnation != 0 && !p.OneHost { // here both may find out at once that it has ended
		wait += a.DialGrace
	}
	p.dialAt = now.Add(wait)
	p.backoff = min(2*p.backoff, LastBackoff)
}

// Excuse prolongs the peer time-out of every peer by the time that this process did not run: what
// the peers sent meanwhile may lie unread.
func (a *Associations) Excuse(now microproto.Instant, stopped time.Duration) {
	for _, p := range a.peers {
		p.LastHeard = min(now, p.LastHeard.Add(stopped))
	}
}

// MarkUp declares a new peer up.
func (a *Associations) MarkUp(p *Peer) {
	p.State = Up
	a.host.Emit(Output{Kind: OutUp, Peer: p.Name})
}

// Fail declares a peer lost for a reason other than silence.
func (a *Associations) Fail(now microproto.Instant, p *Peer, err error) {
	a.disconnect(now, p, Lost, err)
	a.host.Emit(Output{Kind: OutLost, Peer: p.Name, Err: err})
}

func (a *Associations) markLost(now microproto.Instant, p *Peer) {
	a.Fail(now, p, a.host.LostError(p.Name, now.Sub(p.LastHeard), ""))
}

func (a *Associations) disconnect(now microproto.Instant, p *Peer, state State, err error) {
	p.State, p.Err = state, err
	a.host.Disconnected(now, p)
	p.Unacked = nil
	if p.Conn != nil {
		a.hangup(now, p.Conn, err)
	}
}

// Disconnect says goodbye to a peer and ends the association, or forgets how it has ended.
func (a *Associations) Disconnect(now microproto.Instant, name string) error {
	p := a.Peer(name)
	if p == nil {
		return fmt.Errorf("peer %q: %w", name, ErrNotConnected)
	}
	p.forgotten = true
	if !p.Alive() {
		return nil
	}
	if p.State == Up {
		a.Send(p, KindGoodbye, nil)
	}
	a.disconnect(now, p, Closed, fmt.Errorf("peer %q was disconnected by this node: %w", name, ErrClosed))
	return nil
}

// Close says goodbye to every peer and closes every connection.
func (a *Associations) Close(now microproto.Instant) {
	a.closed = true
	for _, p := range a.peers {
		if p.State == Up {
			a.Send(p, KindGoodbye, nil)
		}
		p.State, p.Err = Closed, ErrClosed
		a.host.Disconnected(now, p)
	}
	for len(a.Conns) > 0 {
		a.hangup(now, a.Conns[len(a.Conns)-1], ErrClosed)
	}
}

// Send sends a sequenced message now, or once the peer is connected again, and returns its number.
// Beyond the bound of unacknowledged messages the peer is given up.
func (a *Associations) Send(p *Peer, k Kind, body Body) uint64 {
	p.Sent++
	data := Encode(k, p.Sent, 0, body)
	if len(p.Unacked) < a.Unacked {
		p.Unacked = append(p.Unacked, unacked{p.Sent, data})
	} else {
		p.overflowed = true
		a.host.Changed()
	}
	if p.Conn != nil {
		a.sendNow(p, append([]byte(nil), data...))
	}
	return p.Sent
}

// Ping sends a ping over the present connection.
func (a *Associations) Ping(p *Peer, number uint64) {
	a.sendNow(p, Encode(KindPing, 0, 0, &Echo{number}))
}

// sendNow fills the acknowledgement in and sends the message.
func (a *Associations) sendNow(p *Peer, data []byte) {
	binary.BigEndian.PutUint64(data[ackOffset:], p.Received)
	a.host.Emit(Output{Kind: OutSend, Conn: p.Conn.ID, Peer: p.Name, Data: data})
}

func (p *Peer) acknowledge(ack uint64) {
	if ack > p.Sent {
		return // for an earlier life of this node
	}
	p.Unacked = slices.DeleteFunc(p.Unacked, func(u unacked) bool { return u.sequence <= ack })
}
