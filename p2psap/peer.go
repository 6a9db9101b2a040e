package p2psap

import (
	"encoding/binary"
	"fmt"
	"strings"
	"time"

	"github.com/p2pdc/p2pdc/microproto"
)

// PeerState is where the conversation with a peer stands.
type PeerState uint8

// The states of a peer.
const (
	PeerUnknown PeerState = iota // nobody asked for it, and it has not called
	PeerNew                      // no hello yet
	PeerUp                       // sessions can be opened, also while its connection is broken
	PeerRefused                  // it does not match
	PeerClosed                   // it said goodbye
	PeerLost                     // it was silent for too long
)

func (s PeerState) String() string {
	return [...]string{"unknown", "new", "up", "refused", "closed", "lost"}[s]
}

// conn is one control connection. peer is nil until a hello has been accepted.
type conn struct {
	id      ConnID
	dialled string // the peer's name when this end dialled, "" when it accepted
	peer    *peer
	began   microproto.Instant
	until   microproto.Instant // for the hello
}

// sequenced is a control message that the other end has not acknowledged.
type sequenced struct {
	sequence uint64
	data     []byte
}

type peer struct {
	name     string
	state    PeerState
	err      error
	addr     string
	link     microproto.LinkAddr
	ways     []*way // rails that both have, best first
	locality Locality
	evidence Evidence
	finding  Finding
	measure  measurement
	path     PathMetrics
	least    leastRTT
	// frameLimit is the longest frame that the path is known to carry, 0: not known;
	// from limitUntil on longer ones are tried again.
	frameLimit int
	limitUntil microproto.Instant
	life       uint64 // incarnation
	conn       *conn
	dialling   bool
	dialAt     microproto.Instant
	backoff    time.Duration
	heard      microproto.Instant
	nextBeat   microproto.Instant
	sent       uint64 // highest sequence number given
	received   uint64 // highest sequence number taken
	unacked    []sequenced
	full       bool   // the bound of unacked was passed
	opens      []open // of sessions that this end has not opened yet
}

func (n *Node) peer(name string) *peer {
	for _, p := range n.peers {
		if p.name == name {
			return p
		}
	}
	return nil
}

func (n *Node) addPeer(now microproto.Instant, name string) (*peer, error) {
	if name == "" || len(name) > maxNameBytes {
		return nil, fmt.Errorf("p2psap: the name of a peer must have 1 to %d bytes; %q has %d", maxNameBytes, name, len(name))
	}
	if name == n.config.Name {
		return nil, &RefusedError{Peer: name, Reason: "it has the name of this node; every peer of a run needs its own"}
	}
	if len(n.peers) >= n.config.Limits.Peers {
		return nil, fmt.Errorf("%w: %d peers", ErrLimit, len(n.peers))
	}
	p := &peer{name: name, state: PeerNew, backoff: firstBackoff, heard: now}
	n.peers = append(n.peers, p)
	return p, nil
}

// Connect asks for a conversation with a peer whose control channel listens at
// addr; addr may be "" when the peer is expected to dial. It may be asked again.
// OutPeerUp or OutPeerRefused is the answer; Peer tells the state meanwhile.
func (n *Node) Connect(now microproto.Instant, name, addr string) error {
	if n.closed {
		return ErrClosed
	}
	n.replans = true
	p := n.peer(name)
	if p == nil {
		var err error
		if p, err = n.addPeer(now, name); err != nil {
			return err
		}
	}
	if p.state != PeerNew && p.state != PeerUp {
		return p.err
	}
	if addr != "" && p.addr != addr {
		p.addr = addr
		p.dialAt = now
		if n.config.Name < name {
			p.dialAt = now.Add(dialGrace)
		}
	}
	n.advancePeer(now, p)
	return nil
}

// Peer tells how the conversation with a peer stands, and why it ended.
func (n *Node) Peer(name string) (PeerState, error) {
	p := n.peer(name)
	if p == nil {
		return PeerUnknown, ErrNotConnected
	}
	return p.state, p.err
}

// Locality tells where a peer is; 0 before it has answered.
func (n *Node) Locality(name string) Locality {
	if p := n.peer(name); p != nil {
		return p.locality
	}
	return 0
}

func (n *Node) advancePeer(now microproto.Instant, p *peer) {
	if p.state == PeerUp && p.full {
		err := fmt.Errorf("%w: peer %q leaves more than %d control messages unacknowledged", ErrLimit, p.name, n.config.Limits.UnackedControl)
		n.part(now, p, PeerLost, err)
		n.out = append(n.out, Output{Kind: OutPeerLost, Peer: p.name, Err: err})
		return
	}
	if p.state == PeerUp && now.Sub(p.heard) >= n.config.PeerTimeout {
		n.lose(now, p)
		return
	}
	n.unmeasured(now, p)
	n.advanceWays(now, p)
	if n.wantsDial(p) && now >= p.dialAt {
		p.dialling = true
		n.out = append(n.out, Output{Kind: OutDial, Peer: p.name, Addr: p.addr})
	}
	if p.state == PeerUp && p.conn != nil && now >= p.nextBeat {
		p.nextBeat = now.Add(n.config.Heartbeat)
		n.transmit(p, n.encode(p, kindHeartbeat, 0, nil))
	}
}

func (n *Node) wantsDial(p *peer) bool {
	return p.addr != "" && p.conn == nil && !p.dialling && (p.state == PeerNew || p.state == PeerUp)
}

func (n *Node) peerDeadline(p *peer) microproto.Instant {
	d := n.waysDeadline(p)
	if n.wantsDial(p) {
		d = p.dialAt
	}
	if p.state == PeerUp {
		d = min(d, p.heard.Add(n.config.PeerTimeout))
		if p.conn != nil {
			d = min(d, p.nextBeat)
		}
	} else if p.state == PeerNew && p.conn != nil {
		d = min(d, p.measure.until)
	}
	return d
}

// redial plans the next attempt: back-off doubles, with jitter so that two ends
// do not keep meeting.
func (n *Node) redial(now microproto.Instant, p *peer) {
	p.dialling = false
	wait := p.backoff/2 + time.Duration(n.rand.Int64N(int64(p.backoff)))
	if n.config.Name < p.name && p.life != 0 {
		wait += dialGrace
	}
	p.dialAt = now.Add(wait)
	p.backoff = min(2*p.backoff, lastBackoff)
}

func (n *Node) lose(now microproto.Instant, p *peer) {
	n.part(now, p, PeerLost, &PeerLostError{Peer: p.name, Silent: now.Sub(p.heard)})
	n.out = append(n.out, Output{Kind: OutPeerLost, Peer: p.name, Err: p.err})
}

// part ends a conversation and every session of it.
func (n *Node) part(now microproto.Instant, p *peer, state PeerState, err error) {
	p.state, p.err = state, err
	for _, s := range n.sessions {
		if s == nil || s.peer != p {
			continue
		}
		switch {
		case state == PeerClosed && s.state == SessionOpen:
			n.remoteClosed(s)
		case state == PeerClosed && (s.state == SessionRemoteClosed || s.state == SessionEnded):
		case s.state == SessionClosing:
			n.end(now, s, ErrClosed)
		default:
			n.end(now, s, err)
		}
	}
	p.unacked, p.opens = nil, nil
	n.partWays(p)
	if p.conn != nil {
		n.hangup(now, p.conn, err)
	}
}

// encode makes a message for a peer; the acknowledgement is filled in when it is
// transmitted.
func (n *Node) encode(p *peer, k controlKind, sequence uint64, body interface{ append(*writer) }) []byte {
	w := make(writer, 0, 64)
	envelope{kind: k, sequence: sequence}.append(&w)
	if body != nil {
		body.append(&w)
	}
	return w
}

func (n *Node) transmit(p *peer, data []byte) {
	binary.BigEndian.PutUint64(data[ackOffset:], p.received)
	n.out = append(n.out, Output{Kind: OutControl, Conn: p.conn.id, Peer: p.name, Data: data})
}

// post sends a sequenced message, now or when the peer is connected again. Past
// the bound the peer is not talking to us any more: it is given up.
func (n *Node) post(p *peer, k controlKind, body interface{ append(*writer) }) {
	p.sent++
	data := n.encode(p, k, p.sent, body)
	if len(p.unacked) < n.config.Limits.UnackedControl {
		p.unacked = append(p.unacked, sequenced{p.sent, data})
	} else {
		p.full, n.replans = true, true
	}
	if p.conn != nil {
		n.transmit(p, append([]byte(nil), data...))
	}
}

func (p *peer) acknowledge(ack uint64) {
	if ack > p.sent {
		return // meant for an earlier life of this node
	}
	k := 0
	for k < len(p.unacked) && p.unacked[k].sequence <= ack {
		k++
	}
	p.unacked = append(p.unacked[:0], p.unacked[k:]...)
}

// differences lists what two hellos do not agree on, each with both values.
func differences(mine, theirs *hello) string {
	var d []string
	text := func(what, a, b string) {
		if a != b {
			d = append(d, fmt.Sprintf("%s: this end has %q, the peer %q", what, a, b))
		}
	}
	text("program version", mine.Version, theirs.Version)
	text("run", mine.Run, theirs.Run)
	text("network", mine.Network.String(), theirs.Network.String())
	if mine.Catalog != theirs.Catalog {
		d = append(d, fmt.Sprintf("catalog of micro-protocols: this end has %016x, the peer %016x", mine.Catalog, theirs.Catalog))
	}
	return strings.Join(d, "; ")
}
