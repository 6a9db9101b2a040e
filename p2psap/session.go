package p2psap

import (
	"fmt"

	"github.com/p2pdc/p2pdc/microproto"
)

// SessionState is where a session stands.
type SessionState uint8

// The states of a session, in the order in which it may pass through them.
const (
	SessionOpening      SessionState = iota + 1 // the other end has not opened it
	SessionAgreed                               // it has; its word that it is ready is missing
	SessionOpen                                 // messages may be sent
	SessionLingering                            // closed here; the last transfers are being accepted
	SessionClosing                              // closed here; the other end has not said that it knows
	SessionRemoteClosed                         // closed there; what had arrived can still be received
	SessionEnded
)

func (s SessionState) String() string {
	names := [...]string{"", "opening", "agreed", "open", "lingering", "closing", "closed by the peer", "ended"}
	if int(s) < len(names) {
		return names[s]
	}
	return "session?"
}

// session is one end of a session.
type session struct {
	busy
	watched watched
	probing probing
	change  change
	legacy  microproto.HandoverState // between two endpoints
	info    SessionInfo              // counters

	err         error // why it ended
	options     OpenOptions
	mine        open
	theirs      open       // Session 0: not yet
	conditions  Conditions // of the channel; kept when it is gone
	composition Composition
	shield      *shield // of a sealed session that both ends have agreed on
	granted     uint64  // bytes of the other end's queue that it had granted when the last channel ended
	arrived     uint64  // transfers of the other end that were complete before the channel
	news        uint64  // arrivals before the channel
	estate      []bequest
	past        SessionInfo // counters of channels that are over
}

// busy is the part of a session that every message touches.
type busy struct {
	id       SessionID
	state    SessionState
	touched  bool
	sealed   bool // its frames are protected
	gathers  bool // messages wait for company
	peer     *peer
	accepted Transfer // kept when the channel is gone
	// channel is where the user's calls go; nil before agreement and after the end.
	// former is the one of the epoch before, while it still brings transfers to
	// their end.
	channel, former *channel
	remoteCount     uint64             // transfers that the other end said it had accepted
	until           microproto.Instant // end of lingering
	spent           uint64             // bytes of the other end's queue that all synchronous transfers took
	kept            kept
}

// call holds the arguments and results of the endpoint call that is running. A node runs
// one at a time.
type call struct {
	endpoint microproto.Endpoint
	gatherer microproto.Coalescer // of a flush, or of a message that others follow at once
	tag      uint32
	label    uint64
	data     []byte
	labels   *[]microproto.SegmentLabel
	arrival  microproto.Arrival
	err      error
}

// calls are what runs inside a composite, made once for a node: a closure a call would
// allocate.
type calls struct{ send, receive, flush func(x *microproto.Exec) }

func (n *Node) makeCalls() {
	c := &n.call
	n.doing.send = func(x *microproto.Exec) {
		if c.gatherer != nil {
			_, c.err = c.gatherer.SendMore(x, c.tag, c.label, c.data)
			return
		}
		_, c.err = c.endpoint.Send(x, c.tag, c.label, c.data)
	}
	n.doing.flush = func(x *microproto.Exec) { c.err = c.gatherer.Flush(x) }
	n.doing.receive = func(x *microproto.Exec) {
		c.arrival, c.err = c.endpoint.Receive(x, c.tag, c.data, c.labels)
	}
}

func (n *Node) session(id SessionID) *session {
	i := int(id & 0xffff)
	if i >= len(n.sessions) {
		return nil
	}
	if s := n.sessions[i]; s != nil && s.id == id {
		return s
	}
	return nil
}

// allocate finds a free place for a session and numbers it.
func (n *Node) allocate() (SessionID, error) {
	place := -1
	for i, s := range n.sessions {
		if s == nil {
			place = i
			break
		}
	}
	if place < 0 {
		if len(n.sessions) >= n.config.Limits.Sessions {
			return 0, fmt.Errorf("%w: %d sessions are open; close some", ErrLimit, len(n.sessions))
		}
		place = len(n.sessions)
		n.sessions = append(n.sessions, nil)
	}
	n.lastGen++
	if n.lastGen == 0 {
		n.lastGen = 1
	}
	return SessionID(uint32(n.lastGen)<<16 | uint32(place)), nil
}

func (s *session) deadline() microproto.Instant {
	d := microproto.Never
	if s.state == SessionLingering {
		d = s.until
	}
	if s.channel != nil && s.running() {
		d = min(d, s.channel.composite.Deadline())
		if s.former != nil {
			d = min(d, s.former.composite.Deadline())
		}
	}
	return d
}

// running tells whether the channel takes part in the protocol.
func (s *session) running() bool {
	return s.state == SessionAgreed || s.state == SessionOpen || s.state == SessionLingering
}

func (n *Node) advanceSession(now microproto.Instant, s *session) {
	for _, c := range [...]*channel{s.former, s.channel} {
		if c != nil && s.running() && c.composite.Deadline() <= now {
			err := c.composite.Advance(now)
			n.settle(now, s, c, err, -1)
		}
	}
	n.resubmit(now, s)
	n.probe(now, s)
	n.lingered(now, s)
}

// lingered closes a session whose last transfers are accepted, or have had their time.
func (n *Node) lingered(now microproto.Instant, s *session) {
	if s.state == SessionLingering && (s.acceptedNow() >= Transfer(s.info.MessagesSent) || now >= s.until) {
		n.sendClose(now, s)
	}
}

// acceptedNow is the highest transfer that is known to be complete, with all before it.
func (s *session) acceptedNow() Transfer {
	a := max(s.accepted, Transfer(s.remoteCount))
	switch c := s.channel; {
	case s.former != nil:
		a = max(a, Transfer(s.former.first+s.former.endpoint.Accepted()))
	case c == nil || c.held:
	case c.mode() == microproto.ModeAsynchronous:
		return Transfer(s.info.MessagesSent)
	default:
		a = max(a, Transfer(c.first+c.endpoint.Accepted()))
	}
	return min(a, Transfer(s.info.MessagesSent))
}

// arrivedNow is the number of the other end's transfers that are complete.
func (s *session) arrivedNow() uint64 {
	if s.channel == nil || s.channel.mode() == microproto.ModeAsynchronous {
		return s.arrived
	}
	return s.arrived + s.channel.endpoint.Arrivals()
}

func (n *Node) touch(s *session) {
	if !s.touched {
		s.touched = true
		n.out = append(n.out, Output{Kind: OutActivity, Session: s.id})
	}
}

func (n *Node) frame(now microproto.Instant, r *rail, f microproto.Frame) {
	n.counters.FramesIn += uint64(f.Count())
	h, ok := parseHeader(f.Data)
	s := n.session(h.session)
	switch {
	case !ok || f.Peer == 0:
		n.counters.FramesMalformed++
	case h.run != n.run:
		n.counters.FramesOtherRun++
	case s == nil || s.channel == nil || !s.running() || !n.sends(s.peer, r, f.Peer):
		n.counters.FramesUnknown++
	case h.sealed != s.sealed:
		n.counters.FramesUnprotected++
	case h.epoch == s.channel.header.epoch && s.channel.takes(s, r, f.Peer):
		n.input(now, s, s.channel, f)
		return
	case s.former != nil && h.epoch == s.former.header.epoch && s.former.takes(s, r, f.Peer):
		n.input(now, s, s.former, f)
		return
	default:
		n.counters.FramesOtherEpoch++
	}
	f.Release()
}

// takes tells whether a frame that came by a rail from an address can be the channel's.
func (c *channel) takes(s *session, r *rail, from microproto.LinkAddr) bool {
	return c.rail == r && c.peer(s) == from && !c.dead
}

// sends tells whether an address on a rail is the peer's.
func (n *Node) sends(p *peer, r *rail, from microproto.LinkAddr) bool {
	if r == n.rails[0] {
		return p.link == from
	}
	w := p.way(r.network)
	return w != nil && w.addr == from
}

func (n *Node) input(now microproto.Instant, s *session, c *channel, f microproto.Frame) {
	if !s.sealed {
		n.genuine(now, s, c, f)
		return
	}
	for _, f := range n.openFrames(now, s, c, f) {
		if c == s.channel || c == s.former {
			n.genuine(now, s, c, f)
		} else {
			f.Release() // an earlier one has ended the session
		}
	}
}

// genuine takes a frame that the other end has sent.
func (n *Node) genuine(now microproto.Instant, s *session, c *channel, f microproto.Frame) {
	s.peer.heard = max(s.peer.heard, now)
	if c.held {
		c.held = false // the other end sends in this epoch, so it takes frames of it
	}
	err := c.composite.Input(now, f)
	n.touch(s)
	n.settle(now, s, c, err, -1)
	if s.change.agreed {
		n.freeze(now, s) // it may be what this end was waiting for
	}
	n.resubmit(now, s)
	n.lingered(now, s)
	if s.channel != nil && now >= s.watched.next {
		n.monitor(now, s)
	}
	n.plan(s)
}

// end ends a session here and now.
func (n *Node) end(now microproto.Instant, s *session, err error) {
	if s.state == SessionEnded {
		return
	}
	s.accepted = s.acceptedNow()
	s.state, s.err, n.replans = SessionEnded, err, true
	n.discard(now, s)
	n.out = append(n.out, Output{Kind: OutEnded, Session: s.id, Peer: s.peer.name, Err: err})
}

// discard gives the channels and their frames up; the counters are kept.
func (n *Node) discard(now microproto.Instant, s *session) {
	s.kept = kept{}
	s.legacy = microproto.HandoverState{}
	s.change.reset()
	if s.former != nil {
		n.retire(now, s, s.former)
	}
	if s.channel != nil {
		n.retire(now, s, s.channel)
	}
	for _, r := range n.rails {
		r.queue.forget(s.id)
	}
	s.channel, s.former = nil, nil
}

// tally sums the channels' counters up.
func (s *session) tally() {
	i := s.past
	if s.former != nil {
		s.former.tally(&i)
	}
	if s.channel != nil {
		s.channel.tally(&i)
	}
	to := &s.info
	to.SegmentsSent, to.SegmentsReceived, to.Dropped = i.SegmentsSent, i.SegmentsReceived, i.Dropped
	to.Retransmitted, to.Overwritten, to.Replaced = i.Retransmitted, i.Overwritten, i.Replaced
}
