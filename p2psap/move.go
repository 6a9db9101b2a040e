package p2psap

import (
	"fmt"

	"github.com/p2pdc/p2pdc/microproto"
)

// How sessions follow the rails. A channel belongs to one round of one way; when that is
// over it can no longer be drained, and nothing more passes by it. The session goes on
// over the best other way, in another epoch: what the other end did not store is sent
// again in it, as after any change (see epoch.go). When a better way has been up for a
// while, the end with the higher name asks for the change back.
//
// To leave a rail goes before everything that is wanted, since what the other end's user
// has to see before he wants the same may be what is lost there. The end that asks to
// move shelves the wish of its own that is under way, and says it again afterwards. What
// the two have said tells both whether that wish had been carried out at the other end
// before it heard: then it holds, and the move is void.

// best is the best way that sessions may use; nil: the base link. steady tells that it
// must have held for a while.
func (p *peer) best(steady bool) *way {
	for _, w := range p.ways {
		if w.joined() && (w.raised || !steady) {
			return w
		}
	}
	return nil
}

// better tells whether a way is better than another; nil is the base link.
func (p *peer) better(a, b *way) bool {
	for _, w := range p.ways {
		if w == b {
			return false
		}
		if w == a {
			return true
		}
	}
	return false
}

// ride is what a channel is bound to: a round of a way.
type ride struct {
	way   *way // nil: the base link
	rail  *rail
	round uint32
	addr  microproto.LinkAddr // of the other end on the way
	dead  bool                // the round is over: nothing passes
}

// by is a way as it stands; nil is the base link.
func (n *Node) by(w *way) ride {
	if w == nil {
		return ride{rail: n.base()}
	}
	return ride{w, w.rail, w.round, w.addr, !w.joined()}
}

// abandon: what was to go by a way, or came by it, is lost.
func (n *Node) abandon(now microproto.Instant, p *peer, w *way) {
	for _, s := range n.sessions {
		if s == nil || s.peer != p {
			continue
		}
		of := [...]*channel{s.channel, s.change.next, nil} // a channel on a way has no former one
		if s.change.shelf != nil {
			of[2] = s.change.shelf.next
		}
		for _, c := range of {
			if c != nil && c.way == w && !c.dead {
				c.dead = true
				w.rail.queue.forget(s.id)
			}
		}
	}
	n.reroutePeer(now, p)
}

func (n *Node) reroutePeer(now microproto.Instant, p *peer) {
	for _, s := range n.sessions {
		if s != nil && s.peer == p {
			n.reroute(now, s)
		}
	}
}

// reroute asks for another rail if the session needs one, or a better one is there.
func (n *Node) reroute(now microproto.Instant, s *session) {
	c, p := &s.change, s.peer
	if s.channel == nil || s.state != SessionOpen && s.state != SessionLingering || c.frozen {
		return
	}
	w := p.best(true)
	switch {
	case s.channel.dead:
		if c.mine.Cause == causeContext || c.mine.Cause == causeAccept || c.mine.Cause == causeRail || c.agreed && !c.careful {
			return // the answer is on its way
		}
	case !p.better(w, s.channel.way) || n.config.Name < p.name || c.wanted != 0 || c.mine.Cause != 0 || c.theirs.Cause != 0:
		return
	}
	next, err := n.prepare(s, s.conditions, n.by(w))
	if err != nil {
		n.stranded(now, s, err)
		return
	}
	var shelf *change
	if c.mine.Cause == causeScheme {
		kept := *c
		shelf = &kept
	}
	c.reset()
	c.shelf = shelf
	n.say(now, s, causeRail, next)
}

// stranded: this end cannot compose the session for any rail that is left. Without one it
// has failed; otherwise it stays where it is.
func (n *Node) stranded(now microproto.Instant, s *session, err error) {
	if s.channel.dead {
		n.fail(now, s, fmt.Errorf("network %v is down, and the session cannot leave it: %w", s.conditions.Network, err))
	}
}

// destination finds the way that the other end wants to move to.
func (n *Node) destination(s *session, a *adapt) (ride, error) {
	if a.Network == n.base().network {
		return n.by(nil), nil
	}
	w := s.peer.way(a.Network)
	if w == nil || !w.joined() || w.round != a.Round {
		return ride{}, fmt.Errorf("p2psap: network %v is down here", a.Network)
	}
	return n.by(w), nil
}

// crossed: the other end has said what its scheme wants, before it knew of this end's
// wish to move. If this end had said the like before, the two have met there.
func (n *Node) crossed(now microproto.Instant, s *session, a adapt) {
	c := &s.change
	if c.shelf == nil || c.shelf.agreed {
		return // void: the other end says it again
	}
	met := *c.shelf
	met.theirs = a
	switch {
	case met.disagreement() != "":
		// It was over there when the wish to move came, and is here: that one stands.
		c.shelf = nil
		n.refused(now, s, met.disagreement())
	case s.channel.careful(met.mine.Mode):
		// Agreed there, and given up for the move, as nothing was drained here.
	default:
		*c = met
		n.conclude(now, s)
	}
}

// refused ends a scheme's wish that this end had shelved.
func (n *Node) refused(now microproto.Instant, s *session, reason string) {
	c := &s.change
	c.wanted, c.err = 0, &RefusedError{Peer: s.peer.name, Session: s.options.Name, Reason: reason}
	c.count++
	n.out = append(n.out, Output{Kind: OutAdapted, Session: s.id, Peer: s.peer.name, Err: c.err})
	n.touch(s)
}

// careful tells whether a change to a mode has to wait until both ends have all of this
// epoch: nobody sends a message again in an asynchronous one, and this one's rail may go
// down before it has been drained.
func (c *channel) careful(to microproto.Mode) bool {
	return c.way != nil && c.drains(to)
}

func (c *channel) drains(to microproto.Mode) bool {
	return c.mode() == microproto.ModeSynchronous && to == microproto.ModeAsynchronous
}

// takeDrained: all that this end had started has arrived at the other one.
func (n *Node) takeDrained(now microproto.Instant, p *peer, d drained) error {
	s := n.session(d.To)
	if s == nil || s.peer != p || s.theirs.Session != d.From || s.state != SessionOpen && s.state != SessionLingering {
		return nil // of a session that is being closed
	}
	c := &s.change
	if c.mine.Cause == causeRail {
		if c.shelf == nil || !c.shelf.told {
			return nil // given up there when the wish to move comes
		}
		*c = *c.shelf // that had begun the new epoch before the wish to move came
	}
	if !c.agreed || !c.careful || c.frozen || c.heard || d.Epoch != uint8(s.channel.number+1) {
		return fmt.Errorf("%w: drained of session %q for epoch %d out of turn", ErrMalformed, s.options.Name, d.Epoch)
	}
	c.heard = true
	n.freeze(now, s)
	return nil
}

// networkWhy tells why the session is on its rail; empty where the peers have but one.
func (s *session) networkWhy() (why string) {
	var on *way
	if s.channel != nil {
		on = s.channel.way
	}
	for _, w := range s.peer.ways {
		switch {
		case w == on && w.joined():
			return "up at both ends"
		case why != "":
		case w.joined():
			why = fmt.Sprintf("%v is up again, and has to stay so for a while", w.rail.network)
		default:
			why = w.why
		}
	}
	return why
}
