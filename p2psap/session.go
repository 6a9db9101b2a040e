package p2psap

import (
	"cmp"
	"errors"
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
	id          SessionID
	peer        *peer
	state       SessionState
	err         error // why it ended
	options     OpenOptions
	conditions  Conditions
	composition Composition
	mine        open
	theirs      open // Session 0: not yet
	epoch       uint8
	composite   *microproto.Composite // nil before agreement and after the end
	endpoint    microproto.Endpoint
	header      header // of outgoing frames
	frameBytes  int
	sealed      bool    // its frames are protected
	shield      *shield // of a sealed session that both ends have agreed on
	touched     bool
	overflowed  bool               // a frame was lost that no micro-protocol repeats
	until       microproto.Instant // end of lingering
	accepted    Transfer           // kept when the composite is gone
	remoteCount uint64             // messages that the other end said it had accepted
	info        SessionInfo        // counters

	call  call
	doing struct{ send, receive func(x *microproto.Exec) } // made once: a closure a call would allocate
}

// call holds the arguments and results of the endpoint call that is running.
type call struct {
	tag      uint32
	label    uint64
	data     []byte
	labels   *[]microproto.SegmentLabel
	transfer uint64
	arrival  microproto.Arrival
	err      error
}

func newSession(id SessionID, p *peer, o OpenOptions) *session {
	s := &session{id: id, peer: p, state: SessionOpening, options: o}
	s.doing.send = func(x *microproto.Exec) {
		s.call.transfer, s.call.err = s.endpoint.Send(x, s.call.tag, s.call.label, s.call.data)
	}
	s.doing.receive = func(x *microproto.Exec) {
		s.call.arrival, s.call.err = s.endpoint.Receive(x, s.call.tag, s.call.data, s.call.labels)
	}
	return s
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
	if s.composite != nil && s.running() {
		d = min(d, s.composite.Deadline())
	}
	return d
}

// running tells whether the composite takes part in the protocol.
func (s *session) running() bool {
	return s.state == SessionAgreed || s.state == SessionOpen || s.state == SessionLingering
}

func (n *Node) advanceSession(now microproto.Instant, s *session) {
	if s.composite != nil && s.running() && s.composite.Deadline() <= now {
		err := s.composite.Advance(now)
		n.settle(now, s, err, -1)
	}
	if s.state == SessionLingering && (s.acceptedNow() >= Transfer(s.info.MessagesSent) || now >= s.until) {
		n.sendClose(now, s)
	}
}

// acceptedNow is the highest transfer that is known to be complete.
func (s *session) acceptedNow() Transfer {
	a := max(s.accepted, Transfer(s.remoteCount))
	if s.endpoint != nil {
		a = max(a, Transfer(s.endpoint.Accepted()))
	}
	return min(a, Transfer(s.info.MessagesSent))
}

// settle moves what a composite has put out. tag is the tag of the Send that made
// it, -1 when something else did.
func (n *Node) settle(now microproto.Instant, s *session, err error, tag int64) {
	n.scratch = s.composite.Drain(n.scratch[:0])
	index := int32(0)
	busy := len(n.queue.frames) > 0
	for i := range n.scratch {
		o := &n.scratch[i]
		switch o.Kind {
		case microproto.OutFrame:
			ok, failed := n.sealFrame(now, s, &o.Frame)
			err = cmp.Or(err, failed)
			if !ok {
				continue
			}
			o.Frame.Peer = s.peer.link
			owner := frameOwner{session: s.id, index: -1}
			if tag >= 0 && s.options.Mode == microproto.ModeAsynchronous {
				owner.tag, owner.index = Tag(tag), index
				index++
			}
			n.enqueue(o.Frame, owner, busy, s)
		case microproto.OutMessage:
			s.composite.Recycle(o.Message) // endpoints keep what arrives for Receive
		}
	}
	clear(n.scratch)
	if s.overflowed && err == nil {
		err = fmt.Errorf("%w: %d frames wait for a link that promises to lose none", ErrLimit, n.config.Limits.Frames)
	}
	if err != nil && !errors.Is(err, microproto.ErrNotOpen) {
		n.end(now, s, fmt.Errorf("p2psap: session %q with %q has failed: %w", s.options.Name, s.peer.name, err))
	}
}

func (n *Node) enqueue(f microproto.Frame, owner frameOwner, busy bool, s *session) {
	switch {
	case busy && owner.index >= 0 && n.queue.replace(f, owner):
		n.counters.FramesReplaced++
		s.info.Replaced++
	case len(n.queue.frames) >= n.config.Limits.Frames:
		f.Release()
		n.counters.FramesDropped++
		// Nobody below repeats it where the link is trusted to.
		mode := s.options.Mode
		s.overflowed = mode == microproto.ModeSynchronous && n.config.Link.Caps(mode).Reliable
	default:
		n.queue.push(f, owner)
	}
}

func (n *Node) touch(s *session) {
	if !s.touched {
		s.touched = true
		n.out = append(n.out, Output{Kind: OutTouched, Session: s.id})
	}
}

// Frame takes a frame that the link received, whatever it holds. Frames of nobody
// are dropped and counted, never answered.
func (n *Node) Frame(now microproto.Instant, f microproto.Frame) {
	n.counters.FramesIn++
	h, ok := parseHeader(f.Data)
	s := n.session(h.session)
	switch {
	case !ok || f.Peer == 0:
		n.counters.FramesMalformed++
	case h.run != n.run:
		n.counters.FramesRun++
	case s == nil || s.peer.link != f.Peer || s.composite == nil || !s.running():
		n.counters.FramesUnknown++
	case h.epoch != s.epoch:
		n.counters.FramesEpoch++
	case h.sealed != s.sealed:
		n.counters.FramesPlain++
	case !n.openFrame(now, s, &f):
		return
	default:
		s.peer.heard = max(s.peer.heard, now)
		err := s.composite.Input(now, f)
		n.touch(s)
		n.settle(now, s, err, -1)
		if s.state == SessionLingering && s.acceptedNow() >= Transfer(s.info.MessagesSent) {
			n.sendClose(now, s)
		}
		return
	}
	f.Release()
}

// end ends a session here and now.
func (n *Node) end(now microproto.Instant, s *session, err error) {
	if s.state == SessionEnded {
		return
	}
	s.accepted = s.acceptedNow()
	s.state, s.err = SessionEnded, err
	n.discard(now, s)
	n.out = append(n.out, Output{Kind: OutEnded, Session: s.id, Peer: s.peer.name, Err: err})
}

// discard gives the composite and its frames up; the counters are kept.
func (n *Node) discard(now microproto.Instant, s *session) {
	if s.composite == nil {
		return
	}
	n.tally(s)
	n.lowerShield(now, s)
	_ = s.composite.Close(now)
	n.scratch = s.composite.Drain(n.scratch[:0])
	for i := range n.scratch {
		o := &n.scratch[i]
		if o.Kind == microproto.OutFrame {
			o.Frame.Release()
		} else if o.Kind == microproto.OutMessage {
			s.composite.Recycle(o.Message)
		}
	}
	clear(n.scratch)
	n.queue.forget(s.id)
	s.composite, s.endpoint = nil, nil
}

// tally copies the composite's counters.
func (n *Node) tally(s *session) {
	if s.composite == nil {
		return
	}
	c := s.composite.Counters()
	s.info.SegmentsSent, s.info.SegmentsReceived = c.Transmitted, c.Inputs
	s.info.Dropped = c.Dropped + c.FramesRefused
	s.info.Retransmitted, s.info.Overwritten = 0, 0
	for _, name := range s.composition.Protocols {
		p := s.composite.Protocol(name)
		if r, ok := p.(Retransmitter); ok {
			s.info.Retransmitted += r.Retransmitted()
		}
		if o, ok := p.(Overwriter); ok {
			s.info.Overwritten += o.Overwritten()
		}
	}
}

// Retransmitter is a micro-protocol that counts segments sent again.
type Retransmitter interface{ Retransmitted() uint64 }

// Overwriter is a micro-protocol that counts values replaced before they were read.
type Overwriter interface{ Overwritten() uint64 }
