package p2psap

import (
	"fmt"
	"slices"

	"github.com/p2pdc/p2pdc/microproto"
	"github.com/p2pdc/p2pdc/p2psap/internal/control"
	"github.com/p2pdc/p2pdc/p2psap/internal/rail"
)

// SessionState is the state of one end of a session.
type SessionState uint8

// The states of a session, in the order in which it may pass through them.
const (
	SessionOpening      SessionState = iota + 1 // the other end has not opened it
	SessionAgreed                               // both ends have opened it; the other end's OpenAck is missing
	SessionOpen                                 // messages may be sent
	SessionLingering                            // closed here; the last transfers are being accepted
	SessionClosing                              // closed here; the other end has not acknowledged that
	SessionRemoteClosed                         // closed there; what arrived before can be received
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
	id         SessionID
	state      SessionState
	notified   bool // an OutActivity waits to be drained
	sealed     bool // its frames are protected
	coalescing bool // messages wait in the coalescing buffer
	peer       *peer
	// channel serves the user's calls; nil before agreement and after the end. previous is the
	// channel of the epoch before, while transfers in it are being completed.
	channel, previous *channel
	unacked           retransmitBuffer
	reserved          reservation
	accepted          Transfer           // when the last channel ended
	closeAccepted     uint64             // transfers that the other end accepted before it closed
	lingerUntil       microproto.Instant // in SessionLingering
	queued            uint64             // bytes of the other end's queue that all synchronous transfers took

	monitor       monitorState
	probe         probeState
	renegotiation renegotiation
	handover      microproto.HandoverState // from one endpoint to the next
	info          SessionInfo              // counters

	err           error // why it ended
	options       OpenOptions
	mine          control.Open
	theirs        control.Open // Session is 0 before it has arrived
	conditions    Conditions   // of the channel; kept when it is gone
	composition   Composition
	security      *securityContext // of a protected session that both ends have agreed on
	granted       uint64           // bytes of the other end's queue, granted when the last channel ended
	arrived       uint64           // transfers of the other end that were complete before the channel
	priorArrivals uint64           // arrivals before the channel
	pathStates    []pathState
	records       *sessionRecords
	past          SessionInfo // counters of channels that have ended
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

func (n *Node) sessionsWith(p *peer) []*session {
	return slices.DeleteFunc(slices.Clone(n.sessions), func(s *session) bool { return s == nil || s.peer != p })
}

func (s *session) index() int { return int(s.id & 0xffff) }

func (n *Node) allocate() (SessionID, error) {
	index := slices.Index(n.sessions, nil)
	if index < 0 {
		if len(n.sessions) >= n.config.Limits.Sessions {
			return 0, fmt.Errorf("%w: %d sessions are open; close some", ErrLimit, len(n.sessions))
		}
		index = len(n.sessions)
		n.sessions = append(n.sessions, nil)
	}
	n.lastGen++
	if n.lastGen == 0 {
		n.lastGen = 1
	}
	return SessionID(uint32(n.lastGen)<<16 | uint32(index)), nil
}

// slot returns the index of the slot of a tag; -1: the session has none.
func (s *session) slot(tag Tag) int {
	for i := range s.options.Slots {
		if s.options.Slots[i].Tag == tag {
			return i
		}
	}
	return -1
}

// checkLength returns why n bytes cannot be a message of a tag, whatever the composition.
func (s *session) checkLength(tag Tag, n int, synchronous bool) error {
	i := s.slot(tag)
	if i < 0 {
		return s.undeclared(tag)
	}
	switch length := s.options.Slots[i].Length; {
	case synchronous && n > length:
		return fmt.Errorf("%w: session %q: %d bytes for tag %d, declared with %d at most",
			ErrSlot, s.options.Name, n, tag, length)
	case !synchronous && n != length:
		return fmt.Errorf("%w: session %q: %d bytes for tag %d, declared with %d", ErrSlot, s.options.Name, n, tag, length)
	}
	return nil
}

func (s *session) undeclared(tag Tag) error {
	return fmt.Errorf("%w: session %q does not declare tag %d: list it in OpenOptions.Slots at both ends",
		ErrSlot, s.options.Name, tag)
}

func (s *session) deadline() microproto.Instant {
	d := microproto.Never
	if s.state == SessionLingering {
		d = s.lingerUntil
	}
	if s.channel != nil && s.running() {
		d = min(d, s.channel.composite.Deadline())
		if s.previous != nil {
			d = min(d, s.previous.composite.Deadline())
		}
	}
	return d
}

// running reports whether the channel takes part in the protocol.
func (s *session) running() bool {
	return s.state == SessionAgreed || s.state == SessionOpen || s.state == SessionLingering
}

// established reports whether the session can change its composition.
func (s *session) established() bool { return s.state == SessionOpen || s.state == SessionLingering }

// ends returns the numbers of the session in a control message to the other end.
func (s *session) ends() control.Ends { return control.Ends{To: s.theirs.Session, From: uint32(s.id)} }

// isOf reports whether a control message from p is of the session, under the other end's number.
func (s *session) isOf(p *peer, theirs uint32) bool {
	return s != nil && s.peer == p && s.theirs.Session == theirs
}

func (n *Node) advanceSession(now microproto.Instant, s *session) {
	for _, c := range [...]*channel{s.previous, s.channel} {
		if c != nil && s.running() && c.composite.Deadline() <= now {
			c.tellLink()
			err := c.composite.Advance(now)
			n.collect(now, s, c, err, -1)
		}
	}
	n.resend(now, s)
	n.probeFrameLimit(now, s)
	n.finishLinger(now, s)
}

// finishLinger closes a session whose last transfers are accepted, or have had their time.
func (n *Node) finishLinger(now microproto.Instant, s *session) {
	if s.state == SessionLingering &&
		(s.acceptedNow() >= Transfer(s.info.MessagesSent) || now >= s.lingerUntil) {
		n.sendClose(now, s)
	}
}

// acceptedNow returns the highest transfer that is known to be complete, with all before it.
func (s *session) acceptedNow() Transfer {
	a := max(s.accepted, Transfer(s.closeAccepted))
	switch c := s.channel; {
	case s.previous != nil:
		a = max(a, Transfer(s.previous.first+s.previous.endpoint.Accepted()))
	case c == nil || c.held:
	case c.mode() == microproto.ModeAsynchronous:
		return Transfer(s.info.MessagesSent)
	default:
		a = max(a, Transfer(c.first+c.endpoint.Accepted()))
	}
	return min(a, Transfer(s.info.MessagesSent))
}

// arrivedNow returns the number of the other end's transfers that are complete.
func (s *session) arrivedNow() uint64 {
	if s.channel == nil || s.channel.mode() == microproto.ModeAsynchronous {
		return s.arrived
	}
	return s.arrived + s.channel.endpoint.Arrivals()
}

// notify reports activity, once per Drain.
func (n *Node) notify(s *session) {
	if !s.notified {
		s.notified = true
		n.out = append(n.out, Output{Kind: OutActivity, Session: s.id})
	}
}

// receiveFrame takes a frame, or several with one header.
func (n *Node) receiveFrame(now microproto.Instant, r *rail.Rail, f microproto.Frame) {
	n.counters.FramesIn += uint64(f.Count())
	h, ok := parseHeader(f.Data)
	s := n.session(h.session)
	switch {
	case !ok || f.Peer == 0:
		n.counters.FramesMalformed++
	case h.run != n.run:
		n.counters.FramesOtherRun++
	case s == nil || s.channel == nil || !s.running() || !s.peer.hasAddr(r, f.Peer):
		n.counters.FramesUnknown++
	case h.sealed != s.sealed:
		n.counters.FramesUnprotected++
	case h.epoch == s.channel.header.epoch && s.channel.accepts(s, r, f.Peer):
		n.countArrived(now, s, r, &f, false)
		n.decrypt(now, s, s.channel, f)
		return
	case s.previous != nil && h.epoch == s.previous.header.epoch && s.previous.accepts(s, r, f.Peer):
		n.countArrived(now, s, r, &f, false)
		n.decrypt(now, s, s.previous, f)
		return
	default:
		n.countArrived(now, s, r, &f, true)
		n.counters.FramesOtherEpoch++
		if r.Number == 0 && isLong(&f) {
			s.peer.frames.received.Probes += uint64(f.Count())
		}
	}
	f.Release()
}

// accepts reports whether a frame from an address on a rail can be the channel's.
func (c *channel) accepts(s *session, r *rail.Rail, from microproto.LinkAddr) bool {
	return c.Rail == r && c.addr(s) == from && !c.Over
}

func (p *peer) hasAddr(r *rail.Rail, addr microproto.LinkAddr) bool {
	if r.Number == 0 {
		return p.Link == addr
	}
	w := p.paths.Find(r.Network)
	return w != nil && w.Addr == addr
}

// decrypt takes the protection off a frame, if it has one.
func (n *Node) decrypt(now microproto.Instant, s *session, c *channel, f microproto.Frame) {
	if !s.sealed {
		n.deliver(now, s, c, f)
		return
	}
	for _, f := range n.openFrames(now, s, c, f) {
		if c == s.channel || c == s.previous {
			n.deliver(now, s, c, f)
		} else {
			f.Release() // an earlier frame has ended the session
		}
	}
}

// deliver passes a frame of the other end to the composite.
func (n *Node) deliver(now microproto.Instant, s *session, c *channel, f microproto.Frame) {
	s.peer.Heard(now)
	c.held = false // the other end sends in this epoch, so it takes frames of it
	c.tellLink()
	if n.recording {
		c.recordIn(now, f)
	}
	err := c.composite.Input(now, f)
	n.notify(s)
	n.collect(now, s, c, err, -1)
	if n.recording {
		n.recordAccepted(now, s)
	}
	if s.renegotiation.Agreed {
		n.switchEpoch(now, s) // the frame may be the last one of the old epoch
	}
	n.resend(now, s)
	n.finishLinger(now, s)
	if s.channel != nil && now >= s.monitor.next {
		n.monitor(now, s)
	}
	n.schedule(s)
}

func (n *Node) end(now microproto.Instant, s *session, err error) {
	if s.state == SessionEnded {
		return
	}
	s.accepted = s.acceptedNow()
	s.state, s.err = SessionEnded, err
	n.reschedule = true
	n.discard(now, s)
	n.report(OutEnded, s, err)
}

// fail ends a session that cannot go on, at both ends.
func (n *Node) fail(now microproto.Instant, s *session, err error) {
	if s.state == SessionEnded {
		return
	}
	n.send(s.peer, control.KindReject, &control.Reject{Ends: s.ends(), Reason: cut(err)})
	n.end(now, s, fmt.Errorf("p2psap: session %q with %q has failed: %w", s.options.Name, s.peer.Name, err))
}

// discard drops the channels and their frames; the counters are kept.
func (n *Node) discard(now microproto.Instant, s *session) {
	s.handover = microproto.HandoverState{}
	s.renegotiation.reset()
	if s.previous != nil {
		n.closeChannel(now, s, s.previous)
	}
	if s.channel != nil {
		n.closeChannel(now, s, s.channel)
	}
	for _, r := range n.rails {
		r.Window.Discard(uint32(s.id))
	}
	s.unacked.reset(0) // nothing refers to the messages any more
	s.unreserve()
	s.channel, s.previous = nil, nil
}

func (s *session) updateCounters() {
	sum := s.past
	if s.previous != nil {
		s.previous.addCounters(&sum)
	}
	if s.channel != nil {
		s.channel.addCounters(&sum)
	}
	i := &s.info
	i.SegmentsSent = sum.SegmentsSent
	i.SegmentsReceived = sum.SegmentsReceived
	i.Dropped = sum.Dropped
	i.Retransmitted = sum.Retransmitted
	i.Overwritten = sum.Overwritten
	i.Replaced = sum.Replaced
}
