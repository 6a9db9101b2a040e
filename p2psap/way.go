package p2psap

import (
	"fmt"
	"time"

	"github.com/p2pdc/p2pdc/microproto"
)

// A way is a rail between this node and one peer. It is made in rounds, which both ends
// number alike: in a round each end makes an offer, accepts the other's and says so.
// Then the way is joined, until either end says that it is down; after that nothing of
// the round counts, its connection is given up at both ends, and the end that found the
// fault begins another round when it can. An end that hears of a later round is in it.

// way is one end of it.
type way struct {
	rail  *rail
	round uint32 // from 1

	offered bool                // this end's offer of the round is made
	addr    microproto.LinkAddr // of the other end, whose offer is accepted; 0: not yet
	ready   bool                // the other end has accepted this one's

	settled bool               // it was joined, or known to be down, once
	why     string             // it is not joined
	since   microproto.Instant // it is joined
	raised  bool               // sessions on worse rails have been told
	retry   microproto.Instant // another round; Never: that is not this end's business
	backoff time.Duration      // between failures; 0: none yet
	said    uint64             // number of the last message about it
	moved   uint64             // times that it has gone down
}

// Back-off of rounds, and how long a way has to hold for its failures to be forgotten, in
// Watch.RailDwell.
const (
	firstRetry = 0.1
	lastRetry  = 30
	steady     = 60
)

func (n *Node) dwells(k float64) time.Duration {
	return time.Duration(k * float64(n.config.Monitor.RailDwell))
}

func (w *way) joined() bool { return w.offered && w.addr != 0 && w.ready }

// RailInfo tells where a rail stands between this node and a peer.
type RailInfo struct {
	Network  Network
	Up       bool
	Reason   string // it is not
	Failures uint64 // times that it has gone down since the peer answered
}

// Rails lists the rails that this node and a peer both have beside their base link,
// best first.
func (n *Node) Rails(peer string) (out []RailInfo) {
	if p := n.peer(peer); p != nil {
		for _, w := range p.ways {
			out = append(out, RailInfo{w.rail.network, w.joined(), w.why, w.moved})
		}
	}
	return out
}

// way finds the way of a network; nil for the base network, and if there is none.
func (p *peer) way(k Network) *way {
	for _, w := range p.ways {
		if w.rail.network == k {
			return w
		}
	}
	return nil
}

// beginWays starts the first round of every rail that both ends have. Which is better
// the end with the lower name says.
func (n *Node) beginWays(now microproto.Instant, p *peer, h *hello) {
	if p.state != PeerNew || p.ways != nil {
		return
	}
	mine := n.networks()
	first, other := mine, h.Rails
	if n.config.Name > p.name {
		first, other = other, first
	}
	for _, k := range first {
		for _, l := range other {
			if k == l {
				p.ways = append(p.ways, &way{rail: n.railOf(k), retry: microproto.Never, why: "not offered yet"})
			}
		}
	}
	for _, w := range p.ways {
		n.nextRound(now, p, w)
	}
}

func (n *Node) railOf(k Network) *rail {
	for _, r := range n.rails {
		if r.network == k {
			return r
		}
	}
	return nil
}

func (n *Node) nextRound(now microproto.Instant, p *peer, w *way) {
	w.round++
	n.offerWay(now, p, w)
}

// offerWay makes this end's offer of the round, or says that it cannot.
func (n *Node) offerWay(now microproto.Instant, p *peer, w *way) {
	w.retry = microproto.Never
	if w.rail.err != nil {
		n.sayDown(now, p, w, fmt.Errorf("%v is down at %s: %w", w.rail.network, n.config.Name, w.rail.err))
		return
	}
	offer, err := w.rail.link.Offer(p.name)
	if err == nil && len(offer) > maxOfferBytes {
		err = fmt.Errorf("%w: the link's offer has %d bytes of %d", ErrLimit, len(offer), maxOfferBytes)
	}
	if err != nil {
		n.tryLater(now, w)
		n.sayDown(now, p, w, fmt.Errorf("%v has nothing to offer at %s: %w", w.rail.network, n.config.Name, err))
		return
	}
	w.offered = true
	n.speak(p, w, standing{State: railOffered, Offer: offer})
}

// heeded tells whether another round makes sense: after the first failure at once, then
// when the other end has heard of the last one. Else they would only pile up while the
// connection is broken.
func (n *Node) heeded(p *peer, w *way) bool {
	return p.conn != nil && (w.backoff <= n.dwells(firstRetry) || len(p.unacked) == 0 || p.unacked[0].sequence > w.said)
}

// speak tells the other end where the way stands.
func (n *Node) speak(p *peer, w *way, m standing) {
	m.Network, m.Round = w.rail.network, w.round
	n.post(p, kindRail, &m)
	w.said = p.sent
}

func (n *Node) tryLater(now microproto.Instant, w *way) {
	w.retry = now.Add(w.backoff)
	w.backoff = min(max(2*w.backoff, n.dwells(firstRetry)), n.dwells(lastRetry))
}

// sayDown ends the round at both ends.
func (n *Node) sayDown(now microproto.Instant, p *peer, w *way, why error) {
	reason := why.Error()
	reason = reason[:min(len(reason), maxReasonBytes)]
	n.speak(p, w, standing{State: railDown, Reason: reason})
	n.leaveWay(now, p, w, reason)
}

// failWay: this end has found out that a way is down.
func (n *Node) failWay(now microproto.Instant, p *peer, w *way, err error) {
	if !w.offered {
		return // the round is over already
	}
	if w.joined() && now.Sub(w.since) >= n.dwells(steady) {
		w.backoff = 0
	}
	n.tryLater(now, w)
	n.sayDown(now, p, w, fmt.Errorf("%v is down at %s: %w", w.rail.network, n.config.Name, err))
}

// leaveWay gives a round up at this end. Sessions move away.
func (n *Node) leaveWay(now microproto.Instant, p *peer, w *way, why string) {
	joined, addr := w.joined(), w.addr
	w.offered, w.addr, w.ready, w.settled, w.raised, w.why = false, 0, false, true, false, why
	if addr != 0 {
		w.forget(addr)
	}
	if joined {
		w.moved++
		n.out = append(n.out, Output{Kind: OutRail, Peer: p.name, Network: w.rail.network, Err: fmt.Errorf("p2psap: %s", why)})
	}
	n.abandon(now, p, w)
	n.rise(p)
}

func (w *way) forget(addr microproto.LinkAddr) {
	if l, ok := w.rail.link.(interface{ Forget(microproto.LinkAddr) }); ok {
		l.Forget(addr)
	}
}

// partWays gives a peer's connections up.
func (n *Node) partWays(p *peer) {
	for _, w := range p.ways {
		if w.addr != 0 {
			w.forget(w.addr)
		}
	}
	p.ways = nil
}

// takeStanding: where a way stands at the other end.
func (n *Node) takeStanding(now microproto.Instant, p *peer, m standing) error {
	w := p.way(m.Network)
	if w == nil || m.Round > w.round+1 || m.Round == w.round+1 && m.State == railReady {
		return fmt.Errorf("%w: rail %v in round %d out of turn", ErrMalformed, m.Network, m.Round)
	}
	if m.Round < w.round {
		return nil // this end is further
	}
	if m.Round > w.round {
		n.leaveWay(now, p, w, "the peer has begun anew")
		w.round = m.Round
		if m.State == railOffered {
			n.offerWay(now, p, w)
		}
	}
	switch {
	case m.State == railDown:
		n.leaveWay(now, p, w, "the peer says: "+m.Reason)
	case !w.offered: // this end has given the round up
	case m.State == railReady:
		w.ready = true
		n.join(now, p, w)
	case w.addr != 0:
		return fmt.Errorf("%w: rail %v: a second offer in round %d", ErrMalformed, m.Network, m.Round)
	default:
		n.acceptWay(now, p, w, m.Offer)
	}
	return nil
}

func (n *Node) acceptWay(now microproto.Instant, p *peer, w *way, offer []byte) {
	addr, err := w.rail.link.Accept(offer)
	if err == nil && addr == 0 {
		err = errUnknown
	}
	if err != nil {
		w.backoff = n.dwells(lastRetry) // it will hardly be another one soon
		n.tryLater(now, w)
		n.sayDown(now, p, w, fmt.Errorf("%v does not accept the offer at %s: %w", w.rail.network, n.config.Name, err))
		return
	}
	w.addr = addr
	n.speak(p, w, standing{State: railReady})
	n.join(now, p, w)
}

// join: the way may be complete.
func (n *Node) join(now microproto.Instant, p *peer, w *way) {
	if !w.joined() {
		return
	}
	w.settled, w.why, w.since, w.raised = true, "", now, false
	n.out = append(n.out, Output{Kind: OutRail, Peer: p.name, Network: w.rail.network})
	n.rise(p)
}

// raiseAt is when sessions may go over to a way that is joined: one that goes up and down
// shall not take them along.
func (n *Node) raiseAt(w *way) microproto.Instant {
	return w.since.Add(max(n.config.Monitor.RailDwell, w.backoff))
}

// advanceWays does what is due.
func (n *Node) advanceWays(now microproto.Instant, p *peer) {
	if p.state != PeerNew && p.state != PeerUp {
		return
	}
	for _, w := range p.ways {
		if !w.offered && now >= w.retry && n.heeded(p, w) {
			n.nextRound(now, p, w)
		}
		if w.joined() && !w.raised && now >= n.raiseAt(w) {
			w.raised = true
			n.reroutePeer(now, p)
		}
	}
}

func (n *Node) waysDeadline(p *peer) microproto.Instant {
	d := microproto.Never
	for _, w := range p.ways {
		switch {
		case p.state != PeerNew && p.state != PeerUp:
		case !w.offered && !n.heeded(p, w):
		case !w.offered:
			d = min(d, w.retry)
		case w.joined() && !w.raised:
			d = min(d, n.raiseAt(w))
		}
	}
	return d
}
