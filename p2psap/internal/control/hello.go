package control

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"strings"

	"github.com/p2pdc/p2pdc/microproto"
)

// Incarnation returns the number by which one peer distinguishes the lives of a node. Every peer
// gets another one, so that none can pose as the node at a third.
func Incarnation(node uint64, peer string) uint64 {
	b := binary.BigEndian.AppendUint64(nil, node)
	sum := sha256.Sum256(append(b, peer...))
	return binary.BigEndian.Uint64(sum[:]) | 1
}

// sendHello introduces this node. p is nil when the other end is refused.
func (a *Associations) sendHello(c *Conn, p *Peer) error {
	var peer string
	var ack uint64
	if p != nil {
		peer, ack = p.Name, p.Received
	}
	h, err := a.host.Hello(c.ID, peer)
	if err != nil {
		return err
	}
	if p != nil {
		h.Incarnation = Incarnation(a.Incarnation+p.life, peer)
	}
	a.host.Emit(Output{Kind: OutSend, Conn: c.ID, Data: Encode(KindHello, 0, ack, h)})
	return nil
}

// receiveHello checks who the other end is, whether it matches and whether it is new.
func (a *Associations) receiveHello(now microproto.Instant, c *Conn, h *Hello, ack uint64) {
	reject := func(reason string) {
		if c.Dialled == "" {
			_ = a.sendHello(c, nil)
		}
		a.refuse(now, c, h.Name, reason)
	}
	if c.Dialled != "" && h.Name != c.Dialled {
		a.refuse(now, c, c.Dialled, fmt.Sprintf("%q answers at its address", h.Name))
		return
	}
	mine, err := a.host.Hello(c.ID, "")
	if err != nil {
		reject(err.Error())
		return
	}
	if d := differences(mine, h); d != "" {
		reject(d)
		return
	}
	if h.Incarnation == 0 { // only in a hello that refuses
		a.malformed(now, c, fmt.Errorf("%w: hello from peer %q without an incarnation", ErrMalformed, h.Name))
		return
	}
	p, err := a.peerNamed(now, h.Name)
	if err != nil {
		reject(err.Error())
		return
	}
	if a.nameTaken(now, p, h) {
		a.refuseForNow(now, c, p.Name)
		return
	}
	if !a.sameLife(now, p, h) {
		a.hangup(now, c, p.Err)
		return
	}
	link, err := a.host.AcceptOffer(h.Offer)
	if err != nil {
		reject(fmt.Sprintf("the link does not accept its offer: %v", err))
		return
	}
	a.attach(now, c, p, h, link, ack)
}

// differences lists what two hellos do not agree on, each with both values.
func differences(mine, theirs *Hello) string {
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
		d = append(d, fmt.Sprintf("catalog of micro-protocols: this end has %016x, the peer %016x",
			mine.Catalog, theirs.Catalog))
	}
	return strings.Join(d, "; ")
}

// nameTaken reports whether the name in a hello is that of a peer of another incarnation that is
// not silent. The sender has to wait until that peer is lost or closes.
func (a *Associations) nameTaken(now microproto.Instant, p *Peer, h *Hello) bool {
	if p.Incarnation == 0 || p.Incarnation == h.Incarnation {
		return false
	}
	return p.State == Up && now.Sub(p.LastHeard) < a.PeerTimeout || p.State == New && p.Conn != nil
}

// sameLife reports whether a hello may continue the association with p. A peer that has started
// anew gets a fresh association.
func (a *Associations) sameLife(now microproto.Instant, p *Peer, h *Hello) bool {
	if p.Incarnation == h.Incarnation || p.Incarnation == 0 {
		return p.Alive()
	}
	if p.State == Up {
		a.markLost(now, p) // it has been silent for the peer time-out
	}
	a.begin(now, p, p.life)
	return true
}

func (a *Associations) attach(
	now microproto.Instant, c *Conn, p *Peer, h *Hello, link microproto.LinkAddr, ack uint64,
) {
	if old := p.Conn; old != nil {
		if a.prefers(now, p, old, c) {
			a.hangup(now, c, fmt.Errorf("p2psap: another connection with %q is in use", p.Name))
			return
		}
		old.peer, old.Dialled = nil, ""
		a.hangup(now, old, fmt.Errorf("p2psap: a newer connection with %q replaces this one", p.Name))
	}
	c.peer, p.Conn = p, c
	p.dialling, p.backoff, p.Err = false, firstBackoff, nil
	p.LastHeard, p.nextBeat = now, now.Add(a.Heartbeat)
	p.Incarnation, p.Link, p.addresses = h.Incarnation, link, h.Addresses
	took := now.Sub(c.began)
	if c.Dialled == "" {
		took = 0
		if err := a.sendHello(c, p); err != nil {
			a.refuse(now, c, p.Name, err.Error())
			return
		}
	}
	p.acknowledge(ack)
	for _, m := range p.Unacked {
		a.sendNow(p, append([]byte(nil), m.data...))
	}
	if p.State == Up {
		a.Counters.Reconnect++
	} else {
		c.heard = now.Add(a.Handshake) // the first heartbeat of a distant peer comes a round trip later
	}
	a.host.Attached(now, p, h, took)
}

// prefers reports whether a peer keeps its connection. When both ends have dialled at once, both
// keep the connection that the higher name dialled. An older one has broken, or fallen deaf, at the
// end that dials again. Before the peer is up, the hellos of both come as late as the round trip is long.
func (a *Associations) prefers(now microproto.Instant, p *Peer, old, c *Conn) bool {
	dialledByHigher := func(c *Conn) bool { return (c.Dialled != "") == (a.Name > p.Name) }
	older := a.quiet(p, deafAfter)
	if p.State == New {
		older = max(older, a.Handshake)
	}
	return dialledByHigher(old) && !dialledByHigher(c) && now.Sub(old.began) < older
}

func (a *Associations) refuse(now microproto.Instant, c *Conn, name, reason string) {
	err := a.host.RefusedError(name, reason)
	a.Counters.Refused++
	// A hello under the name of a peer must not end the association with that peer.
	if p := a.Peer(name); p != nil && p.State == New && (p.Conn == nil || p.Conn == c) {
		p.State, p.Err = Refused, err
	}
	a.host.Emit(Output{Kind: OutRefused, Peer: name, Err: err})
	a.hangup(now, c, err)
}

// refuseForNow ends a connection under a name that is taken. An end that dialled tries again.
func (a *Associations) refuseForNow(now microproto.Instant, c *Conn, name string) {
	a.Counters.Refused++
	reason := fmt.Sprintf("the name %q is in use by another peer, from which it still hears; "+
		"it is free once that one is silent for %v or closes", name, a.PeerTimeout)
	if c.Dialled == "" {
		a.host.Emit(Output{Kind: OutSend, Conn: c.ID, Data: Encode(KindRefusal, 0, 0, &Refusal{reason})})
	}
	a.hangup(now, c, fmt.Errorf("p2psap: %s", reason))
}

// receiveRefusal notes why a connection that this node dialled was refused.
func (a *Associations) receiveRefusal(now microproto.Instant, c *Conn, m *Message) {
	b, err := m.Decode()
	if err == nil && c.Dialled == "" {
		err = fmt.Errorf("%w: %v message on a connection that was accepted", ErrMalformed, KindRefusal)
	}
	if err != nil {
		a.malformed(now, c, err)
		return
	}
	err = fmt.Errorf("p2psap: peer %q says: %s", c.Dialled, b.(*Refusal).Reason)
	if p := a.Peer(c.Dialled); p != nil && p.State == New {
		p.Err = err
	}
	a.hangup(now, c, err)
}

// Expire ends the connection of a peer that did not answer within the handshake time.
func (a *Associations) Expire(now microproto.Instant, p *Peer) {
	a.Counters.Expired++
	a.hangup(now, p.Conn, fmt.Errorf(
		"p2psap: peer %q has not measured its distance: nothing of it has come for %v", p.Name, a.Handshake))
}
