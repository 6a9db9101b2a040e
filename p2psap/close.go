package p2psap

import (
	"slices"
	"time"

	"github.com/p2pdc/p2pdc/microproto"
	"github.com/p2pdc/p2pdc/p2psap/internal/control"
)

// Close ends a session at both ends. Transfers under way are first given NodeConfig.Linger to be
// accepted; State returns SessionEnded when it is over. Closing a session that has ended gives its
// number back; afterwards the number is unknown.
func (n *Node) Close(now microproto.Instant, id SessionID) { n.CloseWithin(now, id, n.config.Linger) }

// CloseWithin is Close that gives transfers under way the time of linger instead. Called again, it shortens that time.
func (n *Node) CloseWithin(now microproto.Instant, id SessionID, linger time.Duration) {
	s := n.session(id)
	if s == nil {
		return
	}
	n.reschedule = true
	switch s.state {
	case SessionEnded:
		n.sessions[s.index()] = nil
	case SessionOpening, SessionAgreed:
		n.sendClose(now, s)
	case SessionOpen:
		n.flush(now, s)
		s.state, s.lingerUntil = SessionLingering, now.Add(linger)
		n.finishLinger(now, s)
	case SessionLingering:
		s.lingerUntil = min(s.lingerUntil, now.Add(linger))
		n.finishLinger(now, s)
	case SessionRemoteClosed:
		n.end(now, s, ErrClosed)
	}
}

// sendClose closes the session at the other end and reports which of its transfers are accepted:
// the composite that would acknowledge them again is gone.
func (n *Node) sendClose(now microproto.Instant, s *session) {
	s.accepted = s.acceptedNow()
	n.send(s.peer, control.KindClose, &control.Close{Ends: s.ends(), Accepted: s.arrivedNow()})
	n.discard(now, s)
	s.state, n.reschedule = SessionClosing, true
	if s.theirs.Session == 0 {
		// The other end has not opened it and only has to forget this end's Open.
		n.end(now, s, ErrClosed)
	}
}

// receiveClose takes the other end's Close, of a session or of an Open.
func (n *Node) receiveClose(now microproto.Instant, p *peer, c *control.Close) {
	if i := slices.IndexFunc(p.opens, func(o offer) bool { return o.Session == c.From }); i >= 0 {
		p.opens = slices.Delete(p.opens, i, i+1)
		return
	}
	s := n.theirSession(p, c.From)
	if s == nil {
		if c.To != 0 {
			n.send(p, control.KindCloseAck, &control.Close{Ends: control.Ends{To: c.From, From: c.To}})
		}
		return
	}
	s.closeAccepted = max(s.closeAccepted, c.Accepted)
	if c.To != 0 {
		n.send(p, control.KindCloseAck, &control.Close{Ends: s.ends()})
	}
	if c.To != uint32(s.id) && s.state == SessionAgreed {
		// The other end closed before it knew of this session: it knew of none, or of an earlier one
		// of that name. This end's Open is on its way and will wait there.
		n.discard(now, s)
		s.state, s.theirs = SessionOpening, control.Open{}
		return
	}
	switch s.state {
	case SessionOpen, SessionAgreed:
		n.remoteClosed(s)
	case SessionLingering, SessionClosing:
		n.end(now, s, ErrClosed)
	}
}

func (n *Node) theirSession(p *peer, theirs uint32) *session {
	for _, s := range n.sessions {
		if s.isOf(p, theirs) && s.state != SessionEnded {
			return s
		}
	}
	return nil
}

// remoteClosed keeps what has arrived for Receive.
func (n *Node) remoteClosed(s *session) {
	s.state = SessionRemoteClosed
	s.err = s.wrap(ErrPeerClosed)
	n.notify(s)
}

// receiveCloseAck ends a session whose Close the other end has received.
func (n *Node) receiveCloseAck(now microproto.Instant, p *peer, c *control.Close) {
	if s := n.session(SessionID(c.To)); s != nil && s.peer == p && s.state == SessionClosing {
		n.end(now, s, ErrClosed)
	}
}
