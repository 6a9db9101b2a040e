package p2psap

import (
	"fmt"
	"slices"

	"github.com/p2pdc/p2pdc/microproto"
	"github.com/p2pdc/p2pdc/p2psap/internal/control"
	"github.com/p2pdc/p2pdc/p2psap/internal/rail"
)

// Frames returns frames that wait for rail number i, an index of NodeConfig.Rails, in the order in
// which its link gets them. The slice is the node's. The caller offers it to the link, which takes a
// prefix, and reports the length of the prefix with Sent. It repeats both until there are no more
// frames or the link is full, before Drain, which copies what is left out of the memory of users;
// see microproto.Frame.Body.
//
// While the link takes everything, frames leave in the order in which they were made. Those that wait
// for a full link leave by their Class, and newer values replace older ones in their places.
func (n *Node) Frames(i int) []microproto.Frame { return n.rails[i].Window.Frames() }

// Waiting returns the number of frames that wait for rail number i.
func (n *Node) Waiting(i int) int { return n.rails[i].Window.Len() }

// Sent removes the first k of the newest Frames of rail number i, which its link has taken. If those
// were more than k, the link is full.
func (n *Node) Sent(i, k int) { n.rails[i].Window.Sent(k) }

// Input takes a frame that rail number i received, or several as one, whatever they hold. Frames of
// no session are counted and dropped, never answered.
func (n *Node) Input(now microproto.Instant, i int, f microproto.Frame) {
	r := n.rails[i]
	for f.Count() > 1 {
		var same microproto.Frame
		same, f = splitHeaders(f)
		if n.receiveFrame(now, r, same); len(f.Data) == 0 {
			return
		}
	}
	n.receiveFrame(now, r, f)
}

// RailEvent reports that rail number i, or its connection with a peer, went down or came back; see
// microproto.Connected. The base rail is never down; of its events, those about routes count.
func (n *Node) RailEvent(now microproto.Instant, i int, e microproto.LinkEvent) {
	r, err := n.rails[i], e.Err
	if i == 0 || n.closed {
		n.takeRoute(now, e)
		return
	}
	if err == nil {
		err = rail.ErrNoReason
	}
	n.reschedule = true
	switch {
	case e.Peer != 0 && e.Up: // of a round in progress: another round makes another connection
		for _, p := range n.peers {
			p.paths.ConnectionUp(now, r, e.Peer)
		}
	case e.Peer != 0:
		for _, p := range n.peers {
			p.paths.ConnectionDown(now, r, e.Peer, err)
		}
	case e.Up:
		r.Err = nil
		for _, p := range n.peers {
			p.paths.RailUp(now, r)
		}
		n.advancePeers(now)
	default:
		r.Err = err
		for _, p := range n.peers {
			p.paths.RailDown(now, r, err)
		}
	}
}

// RailInfo describes a rail between this node and a peer.
type RailInfo struct {
	Network  Network
	Up       bool
	Reason   string // why it is not up
	Failures uint64 // times that it went down since the peer answered
	Chosen   bool   // sessions use it while it is up; false until a rail with Rail.Compare was found to be faster
	Route    string // over which of several cables frames go, and which are down; "": there is one
}

// takeRoute records the route that the base rail uses to a peer. When the rail has left a route that carried nothing, the
// sessions retransmit what was in flight.
func (n *Node) takeRoute(now microproto.Instant, e microproto.LinkEvent) {
	for _, p := range n.peers {
		if n.closed || e.Peer == 0 || e.Route == "" || p.Link != e.Peer || !p.Alive() {
			continue
		}
		p.route = e.Route
		if e.Err != nil {
			n.associations.Suspect(now, p.Peer)
		}
		n.out = append(n.out, Output{Kind: OutRoute, Peer: p.Name, Network: n.rails[0].Network, Route: e.Route, Err: e.Err})
		for _, s := range n.sessionsWith(p) {
			switch {
			case e.Err == nil || !s.running() || s.channel == nil:
			case s.channel.Path == nil:
				n.raise(now, s, microproto.PathMoved)
			case s.channel.Path.Network() == Stream: // the kernel's TCP may wait on the same cable for long
				p.paths.ConnectionDown(now, s.channel.Path.Rail, s.channel.Path.Addr, e.Err)
			}
		}
	}
}

// raise raises an event in the composite of a session.
func (n *Node) raise(now microproto.Instant, s *session, e microproto.Event[struct{}]) {
	c := s.channel
	err := c.composite.Do(now, func(x *microproto.Exec) { microproto.Raise(x, e, struct{}{}) })
	n.collect(now, s, c, err, -1)
	n.reschedule = true
}

// Rails returns the rails that this node and a peer have beside the base rail, best first, and the base rail once its
// path has been down, or where several cables lead to the peer. Of a peer that is lost or closed they are those of the end,
// all down.
func (n *Node) Rails(peer string) []RailInfo {
	if p := n.peer(peer); p != nil {
		return p.rails()
	}
	return nil
}

func (p *peer) rails() (out []RailInfo) {
	if !p.Alive() && p.railsAtEnd != nil {
		return slices.Clone(p.railsAtEnd)
	}
	for _, w := range p.paths.List {
		out = append(out, RailInfo{w.Network(), w.Up() && p.Alive(), w.Reason, w.Downs, w.Chosen(), ""})
	}
	if b := &p.paths.Base; b.Downs > 0 || p.route != "" {
		out = append(out, RailInfo{p.node.rails[0].Network, !b.Down() && p.Alive(), b.Reason, b.Downs, true, p.route})
	}
	return out
}

func (n *Node) networks() (out []Network) {
	for _, r := range n.rails[1:] {
		out = append(out, r.Network)
	}
	return out
}

// bind returns the binding of a channel to a path; nil: to the base rail.
func (n *Node) bind(w *rail.Path) rail.Binding {
	if w == nil {
		return rail.Binding{Rail: n.rails[0]}
	}
	return w.Bind()
}

// The methods of rail.Host.

func (p *peer) Announce(s *control.PathState) uint64 { return p.node.send(p, control.KindPath, s) }

func (p *peer) PathUp(now microproto.Instant, w *rail.Path) {
	p.recordRail(now, w, true)
	p.node.out = append(p.node.out, Output{Kind: OutRail, Peer: p.Name, Network: w.Network()})
	p.markUp()
	if p.paths.Base.Down() {
		p.node.reroutePeer(now, p)
	}
}

func (p *peer) PathDown(now microproto.Instant, w *rail.Path, wasUp bool) {
	if wasUp {
		p.recordRail(now, w, false)
		err := fmt.Errorf("p2psap: %s", w.Reason)
		p.node.out = append(p.node.out, Output{Kind: OutRail, Peer: p.Name, Network: w.Network(), Err: err})
	}
	p.node.leavePath(now, p, w)
	p.markUp()
}

func (p *peer) PathSteady(now microproto.Instant) { p.node.reroutePeer(now, p) }

func (p *peer) BaseDown(now microproto.Instant) {
	p.baseChanged(now, fmt.Errorf("p2psap: %s", p.paths.Base.Reason))
}

func (p *peer) BaseUp(now microproto.Instant) { p.baseChanged(now, nil) }

func (p *peer) baseChanged(now microproto.Instant, err error) {
	n := p.node
	n.out = append(n.out, Output{Kind: OutRail, Peer: p.Name, Network: n.rails[0].Network, Err: err})
	n.reschedule = true
	n.reroutePeer(now, p)
}

// dataLostAt returns when a peer is lost because its base path is down and a session has no other.
func (n *Node) dataLostAt(p *peer) microproto.Instant {
	if !p.Alive() || !p.paths.Base.Down() {
		return microproto.Never
	}
	for _, s := range n.sessionsWith(p) {
		if s.running() && s.channel != nil && s.channel.Path == nil {
			return p.paths.Base.Since.Add(n.config.PeerTimeout)
		}
	}
	return microproto.Never
}
