package p2psap

import (
	"fmt"
	"strings"

	"github.com/p2pdc/p2pdc/microproto"
	"github.com/p2pdc/p2pdc/p2psap/internal/control"
	"github.com/p2pdc/p2pdc/p2psap/internal/rail"
)

// How sessions follow the rails. A channel is bound to one round of one path. When the round is over
// the channel can no longer be drained, and nothing more passes over it. The session continues on the
// best other path, in another epoch: what the other end did not store is sent again in it, as after
// any change (see switch.go). When a better path has been up for a while, the end with the higher
// name proposes to go back to it.
//
// Leaving a rail takes precedence over every other change: messages lost on the rail may be what the
// other end's user has to receive before requesting the same change. The end that proposes to move suspends
// its own proposal and sends it again afterwards. The messages of both ends show each whether the other
// end had carried the suspended change out before the proposal to move arrived: then that change stands
// and the move is void.

// leavePath marks the channels over a path as over, and their sessions look for another path.
func (n *Node) leavePath(now microproto.Instant, p *peer, w *rail.Path) {
	for _, s := range n.sessionsWith(p) {
		channels := [...]*channel{s.channel, s.renegotiation.next, nil} // a channel on a path has no previous one
		if was := s.renegotiation.suspended; was != nil {
			channels[2] = was.next
		}
		for _, c := range channels {
			if c != nil && c.Path == w && !c.Over {
				c.Over = true
				c.Rail.Window.Discard(uint32(s.id))
			}
		}
	}
	n.reroutePeer(now, p)
}

func (n *Node) reroutePeer(now microproto.Instant, p *peer) {
	for _, s := range n.sessionsWith(p) {
		n.reroute(now, s)
	}
}

// reroute proposes another path if the session needs one, or if a better one is up.
func (n *Node) reroute(now microproto.Instant, s *session) {
	r, p := &s.renegotiation, s.peer
	if s.channel == nil || !s.established() || r.Switched {
		return
	}
	best := p.pathFor(&s.options, s.conditions.Mode, true)
	mine := r.Mine.Cause
	switch leaves := s.channel.Path == nil && p.paths.Base.Down(); {
	case leaves && (best == nil || mine != 0 || r.Theirs.Cause != 0):
		return // there is no other path, or the end of the change calls again
	case leaves:
	case s.channel.Over:
		if mine == control.CauseMonitor || mine == control.CauseAccept || mine == control.CauseRail ||
			r.Agreed && !r.DrainFirst {
			return // the other end's answer is on its way
		}
	case !p.paths.Better(best, s.channel.Path, s.conditions.Mode) || n.config.Name < p.Name || r.wanted != 0 ||
		mine != 0 || r.Theirs.Cause != 0:
		return
	}
	next, err := n.prepare(s, s.conditions, n.bind(best))
	if err != nil {
		if s.channel.Over { // otherwise the session stays on its path
			n.fail(now, s, fmt.Errorf("network %v is down, and the session cannot leave it: %w", s.conditions.Network, err))
		}
		return
	}
	var suspended *renegotiation
	if mine == control.CauseUser {
		was := *r
		suspended = &was
	}
	r.reset()
	r.suspended = suspended
	n.sendProposal(now, s, control.CauseRail, next.conditions, next, nil)
}

// proposedPath returns the path that the other end proposes.
func (n *Node) proposedPath(s *session, a *control.Proposal) (rail.Binding, error) {
	if a.Network == n.rails[0].Network {
		return n.bind(nil), nil
	}
	w := s.peer.paths.Find(a.Network)
	if w == nil || !w.Up() || w.Round != a.Round {
		return rail.Binding{}, fmt.Errorf("p2psap: network %v is down here", a.Network)
	}
	return w.Bind(), nil
}

// resumeSuspended handles a user's proposal of the other end that collided with this end's proposal
// to move. If this end had suspended a proposal of its own user, the two match.
func (n *Node) resumeSuspended(now microproto.Instant, s *session, a *control.Proposal) {
	r := &s.renegotiation
	if r.suspended == nil || r.suspended.Agreed {
		return // void: the other end sends it again
	}
	was := *r.suspended
	was.Theirs = *a
	switch d := was.Differences(); {
	case d != "":
		// The change of composition fails at both ends, so only the move to another rail goes on.
		r.suspended = nil
		r.finishAdapt(s.refused(d))
		n.report(OutAdapted, s, r.err)
		n.notify(s)
	case s.channel.mustReportDrained(was.Mine.Mode):
		// The other end agreed to the change of composition, but this end has not drained its epoch: only the
		// move to another rail goes on.
	default:
		*r = was
		n.agreeChange(now, s)
	}
}

// mustReportDrained reports whether a change to a mode has to wait until both ends have everything of
// this epoch: an asynchronous epoch sends no message again, and the rail of this one may go down
// before it is drained.
func (c *channel) mustReportDrained(to microproto.Mode) bool {
	return c.Path != nil && c.drainsBefore(to)
}

// drainsBefore reports whether everything sent in this epoch has to arrive before a change to a mode.
func (c *channel) drainsBefore(to microproto.Mode) bool {
	return c.mode() == microproto.ModeSynchronous && to == microproto.ModeAsynchronous
}

// receiveDrained notes that everything that this end has started has arrived at the other one.
func (n *Node) receiveDrained(now microproto.Instant, p *peer, d *control.Drained) error {
	s := n.established(p, d.Ends)
	if s == nil {
		return nil
	}
	r := &s.renegotiation
	if r.Mine.Cause == control.CauseRail {
		if r.suspended == nil || !r.suspended.sentDrained {
			return nil // the other end gives the change up when the proposal to move arrives
		}
		*r = *r.suspended // the other end had begun the new epoch before that
	}
	if !r.Agreed || !r.DrainFirst || r.Switched || r.peerDrained || d.Epoch != uint8(s.channel.number+1) {
		return s.outOfTurn(control.KindDrained, d.Epoch)
	}
	r.peerDrained = true
	n.switchEpoch(now, s)
	return nil
}

// networkReason returns why the session uses its rail; "" where the peers have only one rail, and one cable.
func (s *session) networkReason() string {
	var reasons []string
	var on *rail.Path
	if s.channel != nil {
		on = s.channel.Path
	}
	for _, w := range s.peer.paths.List {
		switch {
		case w == on && w.Up() && w.Found != "":
			return w.Found
		case w == on && w.Up():
			return "up at both ends"
		case w.Up() && !w.Chosen() && w.Found == "":
			reasons = append(reasons, fmt.Sprintf("%v was not compared with %v", w.Network(), s.peer.node.rails[0].Network))
		case w.Up() && !w.Chosen():
			reasons = append(reasons, w.Found)
		case w.Up():
			reasons = append(reasons, fmt.Sprintf("%v is up again, and has to stay so for a while", w.Network()))
		default:
			reasons = append(reasons, w.Reason)
		}
	}
	if b := &s.peer.paths.Base; b.Down() {
		reasons = append(reasons, b.Reason)
	}
	if on == nil && s.peer.route != "" {
		reasons = append(reasons, s.peer.route)
	}
	return strings.Join(reasons, "; ")
}
