package p2psap

import (
	"fmt"

	"github.com/p2pdc/p2pdc/microproto"
)

// ControlUp tells of a new control connection. dialled is the peer's name when
// this node asked for it with OutDial, "" when it was accepted.
func (n *Node) ControlUp(now microproto.Instant, id ConnID, dialled string) {
	n.replans = true
	c := &conn{id: id, dialled: dialled, began: now, until: now.Add(n.config.Handshake)}
	if dialled == "" {
		n.makeRoom(now)
	}
	n.conns = append(n.conns, c)
	if n.closed {
		n.hangup(now, c, ErrClosed)
		return
	}
	if dialled == "" {
		return
	}
	p := n.peer(dialled)
	if p == nil || (p.state != PeerNew && p.state != PeerUp) {
		n.hangup(now, c, ErrNotConnected)
		return
	}
	if err := n.sendHello(c, p); err != nil {
		n.refuse(now, c, p.name, err.Error())
	}
}

// DialFailed tells that an OutDial came to nothing; it is tried again.
func (n *Node) DialFailed(now microproto.Instant, name string) {
	n.replans = true
	if p := n.peer(name); p != nil && p.dialling {
		n.redial(now, p)
	}
}

// ControlDown tells that a connection has broken or was closed. After OutDisconnect it
// need not be told.
func (n *Node) ControlDown(now microproto.Instant, id ConnID) {
	n.replans = true
	if c := n.connection(id); c != nil {
		n.drop(now, c)
	}
}

func (n *Node) connection(id ConnID) *conn {
	for _, c := range n.conns {
		if c.id == id {
			return c
		}
	}
	return nil
}

func (n *Node) hangup(now microproto.Instant, c *conn, why error) {
	n.out = append(n.out, Output{Kind: OutDisconnect, Conn: c.id, Err: why})
	n.drop(now, c)
}

func (n *Node) drop(now microproto.Instant, c *conn) {
	for i := range n.conns {
		if n.conns[i] == c {
			n.conns = append(n.conns[:i], n.conns[i+1:]...)
			break
		}
	}
	if p := c.peer; p != nil && p.conn == c {
		p.conn = nil
		n.redial(now, p)
	} else if p == nil && c.dialled != "" {
		if p := n.peer(c.dialled); p != nil && p.dialling {
			n.redial(now, p)
		}
	}
}

// Control takes one message of a connection. Bytes that no node makes end the
// connection; the conversation goes on over the next one.
func (n *Node) Control(now microproto.Instant, id ConnID, msg []byte) {
	c := n.connection(id)
	if c == nil {
		n.counters.ControlStale++
		return
	}
	n.counters.ControlIn++
	e, body, err := parseEnvelope(msg)
	n.replans = n.replans || err != nil || e.kind != kindHeartbeat // it can only put things off
	switch {
	case err != nil:
		n.malformed(now, c, err)
	case e.version != ControlVersion:
		if c.dialled == "" {
			_ = n.sendHello(c, nil) // so that the other end can name the difference too
		}
		n.refuse(now, c, c.dialled, fmt.Sprintf("protocol version: this end has %d, the peer %d", ControlVersion, e.version))
	case e.kind == kindHello:
		h, err := parseHello(body)
		if err != nil {
			n.malformed(now, c, err)
			return
		}
		if c.peer != nil {
			n.counters.ControlDuplicate++
			return
		}
		n.greet(now, c, &h, e.ack)
	case c.peer == nil && e.kind == kindRefusal:
		n.takeRefusal(now, c, body)
	case c.peer == nil:
		n.malformed(now, c, fmt.Errorf("%w: %v message before a hello", ErrMalformed, e.kind))
	default:
		n.converse(now, c, e, body)
	}
}

func (n *Node) malformed(now microproto.Instant, c *conn, err error) {
	n.counters.ControlMalformed++
	n.hangup(now, c, err)
}

// converse takes a message other than a hello.
func (n *Node) converse(now microproto.Instant, c *conn, e envelope, body *reader) {
	p := c.peer
	p.heard = now
	p.acknowledge(e.ack)
	if e.sequence == 0 {
		if err := n.takeAtOnce(now, p, e.kind, body); err != nil {
			n.malformed(now, c, err)
		}
		return
	}
	if e.sequence <= p.received {
		n.counters.ControlDuplicate++
		return
	}
	if e.sequence != p.received+1 {
		n.malformed(now, c, fmt.Errorf("%w: %v message %d follows %d", ErrMalformed, e.kind, e.sequence, p.received))
		return
	}
	p.received++
	if err := n.take(now, p, e.kind, body); err != nil {
		// It is numbered, so it would come again over every new connection.
		n.counters.ControlMalformed++
		n.part(now, p, PeerLost, fmt.Errorf("peer %q: %w", p.name, err))
		n.out = append(n.out, Output{Kind: OutPeerLost, Peer: p.name, Err: p.err})
	}
}

// takeAtOnce carries out a message that has no number: what is lost with its
// connection is not sent again.
func (n *Node) takeAtOnce(now microproto.Instant, p *peer, k controlKind, body *reader) error {
	switch k {
	case kindHeartbeat:
		return body.end(k)
	case kindRefusal:
		return fmt.Errorf("%w: %v message after a hello", ErrMalformed, k)
	}
	e, err := parseEcho(body, k)
	switch {
	case err != nil:
		return err
	case k == kindPing:
		n.transmit(p, n.encode(p, kindPong, 0, &e))
	default:
		n.takePong(now, p, e)
	}
	return nil
}

// take carries a sequenced message out. An error means that nothing was done.
func (n *Node) take(now microproto.Instant, p *peer, k controlKind, body *reader) error {
	switch k {
	case kindOpen:
		o, err := parseOpen(body)
		if err != nil {
			return err
		}
		n.takeOpen(now, p, o)
	case kindOpenAck:
		a, err := parseOpenAck(body)
		if err != nil {
			return err
		}
		n.takeOpenAck(now, p, a)
	case kindReject:
		j, err := parseReject(body)
		if err != nil {
			return err
		}
		n.takeReject(now, p, j)
	case kindClose:
		x, err := parseClosing(body, k)
		if err != nil {
			return err
		}
		n.takeClose(now, p, x)
	case kindCloseAck:
		x, err := parseClosing(body, k)
		if err != nil {
			return err
		}
		n.takeCloseAck(now, p, x)
	case kindAdapt:
		a, err := parseAdapt(body)
		if err != nil {
			return err
		}
		return n.takeAdapt(now, p, a)
	case kindAdapted:
		a, err := parseAdapted(body)
		if err != nil {
			return err
		}
		return n.takeAdapted(now, p, a)
	case kindDrained:
		d, err := parseDrained(body)
		if err != nil {
			return err
		}
		return n.takeDrained(now, p, d)
	case kindRail:
		m, err := parseStanding(body)
		if err != nil {
			return err
		}
		return n.takeStanding(now, p, m)
	case kindMeasured:
		d, err := parseMeasured(body)
		if err != nil {
			return err
		}
		n.takeMeasured(p, d)
	case kindGoodbye:
		if err := body.end(k); err != nil {
			return err
		}
		n.part(now, p, PeerClosed, fmt.Errorf("peer %q said goodbye: %w", p.name, ErrPeerClosed))
		n.out = append(n.out, Output{Kind: OutPeerClosed, Peer: p.name, Err: p.err})
	}
	return nil
}

// refuse ends a connection with a peer that does not match.
func (n *Node) refuse(now microproto.Instant, c *conn, name, reason string) {
	err := &RefusedError{Peer: name, Reason: reason}
	n.counters.PeersRefused++
	// Whoever says a name that a peer has must not end the conversation with that one.
	if p := n.peer(name); p != nil && p.state == PeerNew && (p.conn == nil || p.conn == c) {
		p.state, p.err = PeerRefused, err
	}
	n.out = append(n.out, Output{Kind: OutPeerRefused, Peer: name, Err: err})
	n.hangup(now, c, err)
}

func (n *Node) hello() *hello {
	g := &n.config
	return &hello{
		Run: g.Run, Version: g.Version, Catalog: n.catalog, Name: g.Name,
		Process: g.Process, Cluster: g.Cluster, Addresses: g.Addresses, Network: n.base().network, Rails: n.networks(),
	}
}

// sendHello says who this node is. p is nil when the other end is refused: then
// there is no offer.
func (n *Node) sendHello(c *conn, p *peer) error {
	e := envelope{kind: kindHello}
	h := n.hello()
	if p != nil {
		offer, err := n.base().link.Offer(p.name)
		switch {
		case err != nil:
			return fmt.Errorf("the link offers nothing to it: %w", err)
		case len(offer) > maxOfferBytes:
			return fmt.Errorf("%w: the link's offer has %d bytes of %d", ErrLimit, len(offer), maxOfferBytes)
		}
		h.Offer, h.Incarnation, h.Host = offer, n.incarnation(p.name), n.host(c, p.name)
		e.ack = p.received
	}
	w := make(writer, 0, 256)
	e.append(&w)
	h.append(&w)
	n.out = append(n.out, Output{Kind: OutControl, Conn: c.id, Data: w})
	return nil
}

// greet takes the other end's hello: who is it, does it match, is it new?
func (n *Node) greet(now microproto.Instant, c *conn, h *hello, ack uint64) {
	reject := func(reason string) {
		if c.dialled == "" {
			_ = n.sendHello(c, nil)
		}
		n.refuse(now, c, h.Name, reason)
	}
	if c.dialled != "" && h.Name != c.dialled {
		n.refuse(now, c, c.dialled, fmt.Sprintf("%q answers at its address", h.Name))
		return
	}
	if d := differences(n.hello(), h); d != "" {
		reject(d)
		return
	}
	if h.Incarnation == 0 { // only in a hello that refuses
		n.malformed(now, c, fmt.Errorf("%w: hello from peer %q without an incarnation", ErrMalformed, h.Name))
		return
	}
	p := n.peer(h.Name)
	if p == nil {
		var err error
		if p, err = n.addPeer(now, h.Name); err != nil {
			reject(err.Error())
			return
		}
	}
	if n.taken(now, p, h) {
		n.refuseForNow(now, c, p.name)
		return
	}
	if !n.sameLife(now, p, h) {
		n.hangup(now, c, p.err)
		return
	}
	link, err := n.base().link.Accept(h.Offer)
	if err != nil {
		reject(fmt.Sprintf("the link does not accept its offer: %v", err))
		return
	}
	n.seat(now, c, p, h, link, ack)
}

// sameLife tells whether the hello may go on with peer p; a peer that has started
// anew gets a fresh conversation.
func (n *Node) sameLife(now microproto.Instant, p *peer, h *hello) bool {
	if p.life == h.Incarnation || p.life == 0 {
		return p.state == PeerNew || p.state == PeerUp
	}
	if p.state == PeerUp {
		n.lose(now, p) // it has been silent for the peer timeout
	}
	addr := p.addr
	n.partWays(p)
	*p = peer{name: p.name, state: PeerNew, backoff: firstBackoff, heard: now, addr: addr}
	return true
}

// seat makes c the connection of p.
func (n *Node) seat(now microproto.Instant, c *conn, p *peer, h *hello, link microproto.LinkAddr, ack uint64) {
	// When both ends have dialled at once, both keep the connection that the higher
	// name made: unless that one has fallen silent.
	if old := p.conn; old != nil {
		byHigher := func(c *conn) bool { return (c.dialled != "") == (n.config.Name > p.name) }
		if byHigher(old) && !byHigher(c) && now.Sub(p.heard) < 3*n.config.Heartbeat {
			n.hangup(now, c, fmt.Errorf("p2psap: another connection with %q is in use", p.name))
			return
		}
		old.peer, old.dialled = nil, ""
		n.hangup(now, old, fmt.Errorf("p2psap: a newer connection with %q replaces this one", p.name))
	}
	c.peer, p.conn = p, c
	p.dialling, p.err, p.backoff, p.heard, p.nextBeat = false, nil, firstBackoff, now, now.Add(n.config.Heartbeat)
	p.life, p.link = h.Incarnation, link
	if p.state == PeerNew {
		p.evidence = Evidence{Local: n.place(n.host(c, p.name)), Remote: h.place()}
		p.measure.until = now.Add(n.config.Handshake)
		if c.dialled != "" {
			p.measure.seem(now.Sub(c.began)) // this end has said hello first
		}
	}
	if c.dialled == "" {
		if err := n.sendHello(c, p); err != nil {
			n.refuse(now, c, p.name, err.Error())
			return
		}
	}
	p.acknowledge(ack)
	for i := range p.unacked {
		n.transmit(p, append([]byte(nil), p.unacked[i].data...))
	}
	if p.state == PeerUp {
		n.counters.Reconnects++
	}
	n.beginWays(now, p, h)
	n.rise(p)
	n.goOnMeasuring(now, p)
}
