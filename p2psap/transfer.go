package p2psap

import (
	"cmp"
	"fmt"
	"slices"

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
// used up, or the session is changing its composition and cannot keep the message
// meanwhile; OutActivity tells when to try again. ErrSlot: nothing was sent.
func (n *Node) Send(now microproto.Instant, id SessionID, tag Tag, label Label, data []byte) (Transfer, error) {
	t, _, err := n.send(now, id, tag, label, data, false)
	return t, err
}

func (n *Node) send(now microproto.Instant, id SessionID, tag Tag, label Label, data []byte, may bool) (t Transfer, waits bool, err error) {
	s, err := n.active(id)
	if err != nil {
		return 0, false, err
	}
	if s.state == SessionRemoteClosed {
		return 0, false, s.err
	}
	synchronous := s.channel.mode() == microproto.ModeSynchronous
	if err := s.fits(tag, len(data), synchronous); err != nil {
		return 0, false, err
	}
	if synchronous {
		accepted := s.acceptedNow()
		s.kept.forget(uint64(accepted))
		waits = may && len(data) <= gatherBytes && accepted < Transfer(s.info.MessagesSent) && s.channel.gatherer != nil && !s.channel.held
	}
	if synchronous && (s.change.mine.Cause != 0 || s.kept.submitted < s.kept.n) {
		err, waits = s.keepBack(tag, label, data), false
	} else if err = n.submit(now, s, tag, uint64(label), data, waits); err == nil && synchronous {
		s.kept.push(keptTransfer{uint32(tag), uint64(label), data})
		s.kept.submitted++
	}
	if err != nil {
		return 0, false, err
	}
	s.spent += queueCost(len(data))
	s.info.MessagesSent++
	s.info.BytesSent += uint64(len(data))
	return Transfer(s.info.MessagesSent), waits, nil
}

// submit gives the present endpoint a message; more tells that others follow at once.
func (n *Node) submit(now microproto.Instant, s *session, tag Tag, label uint64, data []byte, more bool) error {
	n.call = call{endpoint: s.channel.endpoint, tag: uint32(tag), label: label, data: data}
	if more {
		n.call.gatherer = s.channel.gatherer
	}
	if more && !s.gathers {
		s.gathers = true
		n.gathers = append(n.gathers, s.id)
	}
	c := s.channel
	err := c.composite.Do(now, n.doing.send)
	cerr := n.call.err
	n.call = call{}
	n.settle(now, s, c, err, int64(tag))
	n.plan(s)
	return cmp.Or(err, cerr)
}

// maxKeptBack bounds the messages that are started during one change.
const maxKeptBack = 1 << 14

// keepBack starts a transfer that the next composition will send. Only what it is sure
// to take is started, within the bytes that the other end has granted.
func (s *session) keepBack(tag Tag, label Label, data []byte) error {
	granted := s.granted
	if e, ok := s.channel.endpoint.(microproto.Migratable); ok && !s.channel.held {
		granted = e.Granted()
	}
	to := s.change.mine.Mode
	if shelf := s.change.shelf; shelf != nil && shelf.mine.Mode == microproto.ModeAsynchronous {
		to = shelf.mine.Mode // it may turn out to hold
	}
	if to == microproto.ModeAsynchronous || s.kept.n-s.kept.submitted >= maxKeptBack || s.spent+queueCost(len(data)) > granted {
		return microproto.ErrBusy
	}
	s.kept.push(keptTransfer{uint32(tag), uint64(label), data})
	return nil
}

// Receive copies what has arrived; see Socket. microproto.ErrNothing: no message
// of that tag (synchronous). After the other end has closed, what had arrived
// before is still given, then the error.
func (n *Node) Receive(now microproto.Instant, id SessionID, slot *Slot) (Arrival, error) {
	s, err := n.active(id)
	if err != nil {
		return Arrival{}, err
	}
	if s.declared(slot.Tag) < 0 {
		return Arrival{}, s.undeclared(slot.Tag)
	}
	if len(s.legacy.Unread) > 0 {
		if a, found, err := s.leftOver(slot); found {
			return a, err
		}
	}
	if s.channel.empty() {
		if s.state == SessionRemoteClosed {
			return Arrival{}, s.err
		}
		return Arrival{}, microproto.ErrNothing
	}
	n.call = call{endpoint: s.channel.endpoint, tag: uint32(slot.Tag), data: slot.Data}
	if slot.Labels != nil {
		n.call.labels = &slot.Labels
	}
	c := s.channel
	err = c.composite.Do(now, n.doing.receive)
	a, cerr := n.call.arrival, n.call.err
	n.call = call{}
	n.settle(now, s, c, err, -1)
	n.plan(s)
	if err == nil {
		err = cerr
	}
	if s.state == SessionRemoteClosed && (err == microproto.ErrNothing || (err == nil && !a.Fresh)) {
		return Arrival{}, s.err
	}
	if err != nil {
		return a, err
	}
	if a.Fresh {
		c.taken++
		s.info.MessagesReceived++
		s.info.BytesReceived += uint64(a.Length)
	}
	return a, nil
}

// Post offers the slot's memory for the message that a Receive of it waits for: what
// comes until the next Receive or Withdraw may be written there.
func (n *Node) Post(id SessionID, slot *Slot) {
	if s := n.session(id); s != nil && s.channel != nil {
		if p, ok := s.channel.endpoint.(microproto.Poster); ok {
			p.Post(uint32(slot.Tag), slot.Data)
		}
	}
}

// Withdraw takes the last Post of a session back.
func (n *Node) Withdraw(id SessionID) {
	if s := n.session(id); s != nil && s.channel != nil {
		if p, ok := s.channel.endpoint.(microproto.Poster); ok {
			p.Withdraw()
		}
	}
}

// leftOver gives the oldest message of a tag that arrived while the session was
// synchronous, and was not received before it became asynchronous.
func (s *session) leftOver(slot *Slot) (a Arrival, found bool, err error) {
	for i := range s.legacy.Unread {
		u := &s.legacy.Unread[i]
		if u.Tag != uint32(slot.Tag) {
			continue
		}
		if len(slot.Data) < len(u.Data) {
			return Arrival{Length: len(u.Data)}, true, microproto.ErrShort
		}
		copy(slot.Data, u.Data)
		if slot.Labels != nil {
			slot.Labels = slot.Labels[:0]
			if cap(slot.Labels) > 0 {
				slot.Labels = append(slot.Labels, microproto.SegmentLabel{Length: len(u.Data), Label: u.Label})
			}
		}
		a = Arrival{Label: u.Label, Newest: u.Label, Length: len(u.Data), Fresh: true, Complete: true}
		s.legacy.Consumed += u.Cost
		s.legacy.Credit += u.Cost
		s.legacy.Unread = slices.Delete(s.legacy.Unread, i, i+1)
		s.info.MessagesReceived++
		s.info.BytesReceived += uint64(a.Length)
		return a, true, nil
	}
	return Arrival{}, false, nil
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
	if s := n.session(id); s != nil {
		return s.acceptedNow()
	}
	return 0
}

// Arrivals counts the messages or segments that the session has accepted; it only
// grows while the session is open.
func (n *Node) Arrivals(id SessionID) uint64 {
	if s := n.session(id); s != nil && s.channel != nil {
		return s.news + s.channel.endpoint.Arrivals()
	}
	return 0
}

// Unread is the number of messages that wait for a Receive. Asynchronous values do
// not count.
func (n *Node) Unread(id SessionID) uint64 {
	s := n.session(id)
	switch {
	case s == nil || s.channel == nil:
		return 0
	case s.channel.mode() == microproto.ModeAsynchronous:
		return uint64(len(s.legacy.Unread))
	}
	return s.channel.unread()
}

// unread is the number of messages that wait in a synchronous endpoint.
func (c *channel) unread() uint64 { return c.inherited + c.endpoint.Arrivals() - c.taken }

// empty tells that a Receive would find nothing, under whatever tag.
func (c *channel) empty() bool { return c.mode() == microproto.ModeSynchronous && c.unread() == 0 }

// Info describes a session.
func (n *Node) Info(id SessionID) (SessionInfo, error) {
	s := n.session(id)
	if s == nil {
		return SessionInfo{}, ErrSession
	}
	s.tally()
	i := s.info
	i.Name, i.Peer, i.State, i.Epoch = s.options.Name, s.peer.name, s.state, uint8(i.Changes)
	i.RTT, i.Path = s.peer.found().RTT, s.peer.path
	i.NetworkReason = s.networkWhy()
	i.Conditions, i.Composition = s.conditions, append([]string(nil), s.composition.Protocols...)
	if s.sealed {
		i.Protection = ProtectionStack()
	}
	if s.channel != nil {
		i.SegmentSize = s.channel.segmentBytes()
	}
	return i, nil
}
