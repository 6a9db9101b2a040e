package p2psap

import (
	"fmt"

	"github.com/p2pdc/p2pdc/microproto"
)

// active returns the session if its endpoint can be called, or why not.
func (n *Node) active(id SessionID) (*session, error) {
	s := n.session(id)
	switch {
	case s == nil:
		return nil, ErrSession
	case s.state == SessionOpening || s.state == SessionAgreed:
		return nil, fmt.Errorf("session %q with %q: %w", s.options.Name, s.peer.name, ErrNotOpen)
	case s.state == SessionLingering || s.state == SessionClosing:
		return nil, ErrClosed
	case s.state == SessionEnded:
		return nil, s.err
	}
	return s, nil
}

// Send starts a transfer; see Socket. microproto.ErrBusy: the receiver's grant is
// used up; OutTouched tells when to try again.
func (n *Node) Send(now microproto.Instant, id SessionID, tag Tag, label Label, data []byte) (Transfer, error) {
	s, err := n.active(id)
	if err != nil {
		return 0, err
	}
	if s.state == SessionRemoteClosed {
		return 0, s.err
	}
	s.call = call{tag: uint32(tag), label: uint64(label), data: data}
	err = s.composite.Do(now, s.doing.send)
	t, cerr := s.call.transfer, s.call.err
	s.call = call{}
	n.settle(now, s, err, int64(tag))
	switch {
	case err != nil:
		return 0, err
	case cerr != nil:
		return 0, cerr
	}
	s.info.MessagesSent++
	s.info.BytesSent += uint64(len(data))
	return Transfer(t), nil
}

// Receive copies what has arrived; see Socket. microproto.ErrNothing: no message
// of that tag (synchronous). After the other end has closed, what had arrived
// before is still given, then the error.
func (n *Node) Receive(now microproto.Instant, id SessionID, slot *Slot) (Arrival, error) {
	s, err := n.active(id)
	if err != nil {
		return Arrival{}, err
	}
	s.call = call{tag: uint32(slot.Tag), data: slot.Data}
	if slot.Labels != nil {
		s.call.labels = &slot.Labels
	}
	err = s.composite.Do(now, s.doing.receive)
	a, cerr := s.call.arrival, s.call.err
	s.call = call{}
	n.settle(now, s, err, -1)
	if err == nil {
		err = cerr
	}
	if s.state == SessionRemoteClosed && (err == microproto.ErrNothing || (err == nil && !a.Fresh)) {
		return Arrival{}, s.err
	}
	if err != nil {
		return Arrival{}, err
	}
	if a.Fresh {
		s.info.MessagesReceived++
		s.info.BytesReceived += uint64(a.Length)
	}
	return a, nil
}

// State tells where a session stands, and why it ended.
func (n *Node) State(id SessionID) (SessionState, error) {
	s := n.session(id)
	if s == nil {
		return SessionEnded, ErrSession
	}
	return s.state, s.err
}

// Accepted is the highest transfer such that it and all before it are complete.
// An asynchronous transfer is complete at once.
func (n *Node) Accepted(id SessionID) Transfer {
	s := n.session(id)
	switch {
	case s == nil:
		return 0
	case s.options.Mode == microproto.ModeAsynchronous:
		return Transfer(s.info.MessagesSent)
	}
	return s.acceptedNow()
}

// Arrivals counts the messages or segments that the session has accepted; it only
// grows while the session is open.
func (n *Node) Arrivals(id SessionID) uint64 {
	if s := n.session(id); s != nil && s.endpoint != nil {
		return s.endpoint.Arrivals()
	}
	return 0
}

// Unread is the number of messages that wait for a Receive; 0 when asynchronous.
func (n *Node) Unread(id SessionID) uint64 {
	s := n.session(id)
	if s == nil || s.endpoint == nil || s.options.Mode == microproto.ModeAsynchronous {
		return 0
	}
	return s.endpoint.Arrivals() - s.info.MessagesReceived
}

// Info describes a session.
func (n *Node) Info(id SessionID) (SessionInfo, error) {
	s := n.session(id)
	if s == nil {
		return SessionInfo{}, ErrSession
	}
	n.tally(s)
	i := s.info
	i.Name, i.Peer, i.State, i.Epoch = s.options.Name, s.peer.name, s.state, s.epoch
	i.RTT = s.peer.found().RTT
	i.Conditions, i.Composition = s.conditions, append([]string(nil), s.composition.Protocols...)
	if s.sealed {
		i.Protection = ProtectionStack()
	}
	if s.composite != nil {
		i.SegmentSize = s.composite.MaxPayload()
	}
	return i, nil
}
