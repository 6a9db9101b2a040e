package p2psap

import (
	"fmt"
	"time"

	"github.com/p2pdc/p2pdc/microproto"
	"github.com/p2pdc/p2pdc/p2psap/internal/control"
	"github.com/p2pdc/p2pdc/p2psap/internal/rail"
	"github.com/p2pdc/p2pdc/p2psap/path"
)

// PeerState is the state of the association with a peer.
type PeerState uint8

// The states of a peer.
const (
	PeerUnknown = PeerState(control.Unknown) // neither end has asked for an association
	PeerNew     = PeerState(control.New)     // it has not said hello, or is being measured
	PeerUp      = PeerState(control.Up)      // sessions can be opened, also while its connection is broken
	PeerRefused = PeerState(control.Refused) // it does not match
	PeerClosed  = PeerState(control.Closed)  // it said goodbye
	PeerLost    = PeerState(control.Lost)    // it was silent for too long
)

// Connect asks for an association with a peer whose control channel listens at addr, or at one of several addresses
// separated by commas; addr may be "" when the peer is expected to dial. It may be called again. OutPeerUp or
// OutPeerRefused is the answer; Peer returns the state meanwhile.
func (n *Node) Connect(now microproto.Instant, name, addr string) error {
	if n.closed {
		return ErrClosed
	}
	n.reschedule = true
	return n.associations.Connect(now, name, addr)
}

// Disconnect ends the association with a peer at both ends: this node says goodbye, and its sessions with the
// peer end at once, with ErrClosed. Of a peer that is lost, refused or closed, it forgets that. Afterwards Connect
// begins another association, and the peer may begin one.
func (n *Node) Disconnect(now microproto.Instant, name string) error {
	n.reschedule = true
	return n.associations.Disconnect(now, name)
}

// ControlUp reports a new control connection. dialled is the peer's name if OutDial asked for the
// connection, "" if it was accepted.
func (n *Node) ControlUp(now microproto.Instant, id ConnID, dialled string) {
	n.reschedule = true
	n.associations.ConnectionUp(now, uint64(id), dialled)
}

// DialFailed reports that an OutDial failed; the node asks again.
func (n *Node) DialFailed(now microproto.Instant, name string) {
	n.reschedule = true
	n.associations.DialFailed(now, name)
}

// DialRefused is DialFailed where no process listens at the address. A peer on this host is lost then.
func (n *Node) DialRefused(now microproto.Instant, name string) {
	n.reschedule = true
	n.associations.Refused(now, name)
}

// ControlDown reports that a connection broke or was closed. After OutDisconnect it may be left out.
func (n *Node) ControlDown(now microproto.Instant, id ConnID) {
	n.reschedule = true
	n.associations.ConnectionDown(now, uint64(id))
}

// Control takes one message of a connection. Bytes that no node sends end the connection; the
// association goes on over the next one.
func (n *Node) Control(now microproto.Instant, id ConnID, msg []byte) {
	n.associations.Receive(now, uint64(id), msg)
}

// Peer returns the state of the association with a peer, and why it ended.
func (n *Node) Peer(name string) (PeerState, error) {
	p := n.peer(name)
	if p == nil {
		return PeerUnknown, ErrNotConnected
	}
	return PeerState(p.State), p.Err
}

// Finding returns the locality of a peer and the reason; zero before it has answered. Its RTT is the
// smallest that was measured over the control channel.
func (n *Node) Finding(name string) Finding {
	if p := n.peer(name); p != nil {
		return p.found()
	}
	return Finding{}
}

// peer is what a node knows of a peer beside the association.
type peer struct {
	*control.Peer
	node        *Node
	paths       rail.Paths
	railsAtEnd  []RailInfo // when the association ended
	route       string     // of several over the base rail, see microproto.LinkEvent
	evidence    Evidence
	finding     Finding
	measurement path.Measurement
	measureBy   microproto.Instant // the next pong, or the peer's Measured, is due
	sentMin     bool               // the peer was sent this end's smallest round trip
	peerMin     time.Duration      // the peer's; 0: not received
	metrics     PathMetrics
	minRTT      path.MinRTT
	// frameLimit is the longest frame that the base rail is known to carry, bytes; 0: not known.
	// From limitUntil on a search for the longest frame begins.
	frameLimit int
	limitUntil microproto.Instant
	search     frameSearch
	frames     frameCounts
	opens      []offer // of sessions that this end has not opened
}

func (n *Node) newPeer(p *control.Peer) *peer {
	out := &peer{Peer: p, node: n}
	out.paths.Config = rail.Config{Node: n.config.Name, Peer: p.Name, Dwell: n.config.Monitor.RailDwell,
		Base: n.rails[0], Host: out}
	return out
}

func (n *Node) peer(name string) *peer {
	if p := n.associations.Peer(name); p != nil {
		return n.peers[p.Number]
	}
	return nil
}

func (n *Node) send(p *peer, k control.Kind, b control.Body) uint64 {
	return n.associations.Send(p.Peer, k, b)
}

// measure pings, or sends the peer what was measured. A ping that was lost with its connection is
// sent again over the next one.
func (p *peer) measure(now microproto.Instant) {
	m, n := &p.measurement, p.node
	switch {
	case !p.evidence.Addressed() || !p.Connected():
	case !m.Done(now):
		number := m.Ping(now)
		if t := n.config.Trace; t != nil {
			t.PingSent(int64(now), p.Name, number)
		}
		n.associations.Ping(p.Peer, number)
	case p.State == control.New && p.evidence.Measurable() && !p.sentMin:
		p.sentMin = true
		n.send(p, control.KindMeasured, &control.Measured{MinRTT: uint64(m.Min())})
		p.markUp()
	}
}

func (p *peer) receivePong(now microproto.Instant, number uint64) {
	n := p.node
	if !p.measurement.Pong(now, number) {
		n.associations.Counters.Duplicate++
		return
	}
	if t := n.config.Trace; t != nil {
		t.PingAnswered(int64(now), p.Name, number)
	}
	p.measureBy = now.Add(n.config.Handshake)
	p.measure(now)
}

// markUp declares a peer up once its locality is known at both ends and every path was tried.
func (p *peer) markUp() {
	if p.State != control.New || !p.Connected() || !p.paths.Settled() {
		return
	}
	if p.evidence.Measurable() {
		if !p.sentMin || p.peerMin == 0 {
			return
		}
		p.evidence.RTT = min(p.measurement.Min(), p.peerMin)
	}
	p.finding = path.Locate(p.evidence)
	p.OneHost, p.RTT = p.finding.Locality <= SameHost, p.measurement.Min()
	p.node.associations.MarkUp(p.Peer)
}

func (p *peer) found() Finding {
	f := p.finding
	if f.Locality != 0 && f.RTT == 0 {
		f.RTT = p.measurement.Min()
	}
	return f
}

// controlHost is the control.Host of a node.
type controlHost Node

func (h *controlHost) node() *Node { return (*Node)(h) }

func (h *controlHost) Hello(conn uint64, peer string) (*control.Hello, error) {
	n, c, base := h.node(), &h.config, h.rails[0]
	hello := &control.Hello{
		Run: c.Run, Version: c.Version, Catalog: h.catalog, Name: c.Name,
		Process: c.Process, Cluster: c.Cluster, Addresses: c.Addresses, Network: base.Network, Rails: n.networks(),
	}
	if peer == "" {
		return hello, nil
	}
	offer, err := base.Link.Offer(peer)
	switch {
	case err != nil:
		return nil, fmt.Errorf("the link offers nothing to it: %w", err)
	case len(offer) > control.MaxOffer:
		return nil, fmt.Errorf("%w: the link's offer has %d bytes of %d", ErrLimit, len(offer), control.MaxOffer)
	}
	hello.Offer, hello.Host = offer, n.hostFor(ConnID(conn), peer)
	return hello, nil
}

// hostFor returns the identity of this host for the other end of a connection. Copies of a running
// virtual machine share one identity, so it holds only where the other end has an address of this
// host. Elsewhere it is made unique to this node.
func (n *Node) hostFor(id ConnID, peer string) string {
	host := n.config.Host
	if host == "" || n.config.SameHost == nil || n.config.SameHost(id) {
		return host
	}
	own := control.Incarnation(n.config.Incarnation, peer)
	return fmt.Sprintf("%s/%016x", host[:min(len(host), control.MaxName-17)], own)
}

func (h *controlHost) AcceptOffer(offer []byte) (microproto.LinkAddr, error) {
	return h.rails[0].Link.Accept(offer)
}

func (h *controlHost) Added(p *control.Peer) { h.peers = append(h.peers, h.node().newPeer(p)) }

// Restarted replaces the peer. Sessions of the earlier life keep the peer that they had.
func (h *controlHost) Restarted(p *control.Peer) {
	was := h.peers[p.Number]
	was.paths.Release()
	*was = *h.node().newPeer(p)
	was.paths.Host = was
}

func (h *controlHost) Attached(now microproto.Instant, c *control.Peer, hello *control.Hello, took time.Duration) {
	n, p := h.node(), h.peers[c.Number]
	if p.State == control.New {
		mine := Placement{
			Host: n.hostFor(ConnID(p.Conn.ID), p.Name), Process: n.config.Process, Cluster: n.config.Cluster,
			Addresses: n.config.Addresses,
		}
		p.evidence = Evidence{Local: mine, Remote: hello.Placement()}
		p.measureBy = now.Add(n.config.Handshake)
		p.measurement.Estimate(took)
		p.paths.Begin(now, n.rails, n.networks(), hello.Rails)
	}
	p.markUp()
	p.measure(now)
}

func (h *controlHost) Receive(now microproto.Instant, c *control.Peer, body control.Body) error {
	n, p := h.node(), h.peers[c.Number]
	switch b := body.(type) {
	case *control.Open:
		n.receiveOpen(now, p, b)
	case *control.OpenAck:
		n.receiveOpenAck(now, p, b)
	case *control.Reject:
		n.receiveReject(now, p, b)
	case *control.Close:
		if b.Ack {
			n.receiveCloseAck(now, p, b)
		} else {
			n.receiveClose(now, p, b)
		}
	case *control.Proposal:
		return n.receiveProposal(now, p, b)
	case *control.Switched:
		return n.receiveSwitched(now, p, b)
	case *control.Drained:
		return n.receiveDrained(now, p, b)
	case *control.PathState:
		return p.paths.Receive(now, b)
	case *control.Measured:
		if p.peerMin == 0 {
			p.peerMin = time.Duration(b.MinRTT)
			p.markUp()
		}
	case *control.Echo:
		p.receivePong(now, b.Number)
	case *control.Heartbeat:
		n.receiveHeartbeat(now, p, b)
	}
	return nil
}

func (h *controlHost) Pinged(now microproto.Instant, c *control.Peer, number uint64) {
	if t := h.config.Trace; t != nil {
		t.PingReflected(int64(now), c.Name, number)
	}
}

func (h *controlHost) Heartbeat(c *control.Peer) *control.Heartbeat {
	f := &h.peers[c.Number].frames
	f.reported, f.beat = f.received, true
	return &f.reported
}

func (h *controlHost) Advance(now microproto.Instant, c *control.Peer) {
	p := h.peers[c.Number]
	if p.State == control.New && p.Connected() && now >= p.measureBy {
		h.associations.Expire(now, c)
	}
	if p.Alive() {
		p.paths.Advance(now)
		if next := p.frames.first.next; next != 0 && now >= next {
			h.node().askForLong(now, p)
		}
	}
	if now >= h.node().dataLostAt(p) {
		silent := now.Sub(p.paths.Base.Since)
		reason := fmt.Sprintf("no data for %v: %s", silent.Round(time.Millisecond), p.paths.Base.Reason)
		h.associations.Fail(now, c, h.LostError(p.Name, silent, reason))
	}
}

func (h *controlHost) Deadline(c *control.Peer) microproto.Instant {
	p, d := h.peers[c.Number], microproto.Never
	if p.Alive() {
		d = min(p.paths.Deadline(), h.node().dataLostAt(p))
		if next := p.frames.first.next; next != 0 {
			d = min(d, next)
		}
	}
	if p.State == control.New && p.Connected() {
		d = min(d, p.measureBy)
	}
	return d
}

// Silent has the sessions send again what has timed out: during an outage their time-outs have become
// long, and the first frame that gets through ends it.
func (h *controlHost) Silent(now microproto.Instant, c *control.Peer) {
	n := h.node()
	for _, s := range n.sessionsWith(h.peers[c.Number]) {
		if s.channel != nil && s.running() {
			n.raise(now, s, microproto.PathSilent)
		}
	}
}

// Disconnected ends every session with the peer.
func (h *controlHost) Disconnected(now microproto.Instant, c *control.Peer) {
	n, p := h.node(), h.peers[c.Number]
	for _, s := range n.sessionsWith(p) {
		switch {
		case p.State == control.Closed && s.state == SessionOpen && !p.Forgotten():
			n.remoteClosed(s)
		case p.State == control.Closed && (s.state == SessionRemoteClosed || s.state == SessionEnded):
		case s.state == SessionClosing:
			n.end(now, s, ErrClosed)
		default:
			n.end(now, s, p.Err)
		}
	}
	p.opens = nil
	p.railsAtEnd = p.rails()
	p.paths.Release()
}

func (h *controlHost) Changed() { h.reschedule = true }

func (h *controlHost) Emit(o control.Output) {
	h.out = append(h.out, Output{
		Kind: OutputKind(o.Kind), Conn: ConnID(o.Conn), Peer: o.Peer, Addrs: o.Addrs, Data: o.Data, Err: o.Err,
	})
}

func (*controlHost) RefusedError(peer, reason string) error {
	return &RefusedError{Peer: peer, Reason: reason}
}

func (*controlHost) LostError(peer string, silent time.Duration, reason string) error {
	return &PeerLostError{peer, silent, reason}
}
