package p2psap

import (
	"fmt"

	"github.com/p2pdc/p2pdc/microproto"
)

// Close ends a session at both ends. Transfers that are under way are given
// NodeConfig.Linger to be accepted first; State tells when it is over. Closing a
// session that has ended gives its number back, after which it is unknown.
func (n *Node) Close(now microproto.Instant, id SessionID) {
	s := n.session(id)
	if s == nil {
		return
	}
	n.replans = true
	switch s.state {
	case SessionEnded:
		n.sessions[id&0xffff] = nil
	case SessionOpening, SessionAgreed:
		n.sendClose(now, s)
	case SessionOpen:
		n.flush(now, s)
		s.state, s.until = SessionLingering, now.Add(n.config.Linger)
		n.lingered(now, s)
	case SessionRemoteClosed:
		n.end(now, s, ErrClosed)
	}
}

// sendClose tells the other end, and what of its messages have been accepted: the
// composite that would acknowledge them again is gone.
func (n *Node) sendClose(now microproto.Instant, s *session) {
	s.accepted = s.acceptedNow()
	n.post(s.peer, kindClose, &closing{To: s.theirs.Session, From: s.id, Accepted: s.arrivedNow()})
	n.discard(now, s)
	s.state, n.replans = SessionClosing, true
	if s.theirs.Session == 0 {
		// The other end has not opened it: all it has to forget is our wish.
		n.end(now, s, ErrClosed)
	}
}

// takeClose: the peer has closed a session, or no longer wants to open it.
func (n *Node) takeClose(now microproto.Instant, p *peer, c closing) {
	for i := range p.opens {
		if p.opens[i].Session == c.From {
			p.opens = append(p.opens[:i], p.opens[i+1:]...)
			return
		}
	}
	s := n.theirSession(p, c.From)
	if s == nil {
		if c.To != 0 {
			n.post(p, kindCloseAck, &closing{To: c.From, From: c.To})
		}
		return
	}
	s.remoteCount = max(s.remoteCount, c.Accepted)
	if c.To != 0 {
		n.post(p, kindCloseAck, &closing{To: c.From, From: s.id})
	}
	if c.To != s.id && s.state == SessionAgreed {
		// It gave up before it knew of this session: it knew of none, or of an
		// earlier one of that name. Our wish is on its way and will wait there.
		n.discard(now, s)
		s.state, s.theirs = SessionOpening, open{}
		return
	}
	switch s.state {
	case SessionOpen, SessionAgreed:
		n.remoteClosed(s)
	case SessionLingering, SessionClosing:
		n.end(now, s, ErrClosed)
	}
}

// theirSession finds a session by the other end's number.
func (n *Node) theirSession(p *peer, theirs SessionID) *session {
	for _, s := range n.sessions {
		if s != nil && s.peer == p && s.theirs.Session == theirs && s.state != SessionEnded {
			return s
		}
	}
	return nil
}

// remoteClosed keeps what has arrived for Receive.
func (n *Node) remoteClosed(s *session) {
	s.state = SessionRemoteClosed
	s.err = fmt.Errorf("session %q with %q: %w", s.options.Name, s.peer.name, ErrPeerClosed)
	n.touch(s)
}

// takeCloseAck: the peer knows.
func (n *Node) takeCloseAck(now microproto.Instant, p *peer, c closing) {
	if s := n.session(c.To); s != nil && s.peer == p && s.state == SessionClosing {
		n.end(now, s, ErrClosed)
	}
}
