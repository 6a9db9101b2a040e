package p2psap

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/p2pdc/p2pdc/microproto"
	"github.com/p2pdc/p2pdc/p2psap/internal/control"
	"github.com/p2pdc/p2pdc/trace"
)

// active returns the session if its endpoint can be called, or why not.
func (n *Node) active(id SessionID) (*session, error) {
	s := n.session(id)
	switch {
	case s == nil:
		return nil, ErrSession
	case s.state == SessionOpening || s.state == SessionAgreed:
		return nil, s.wrap(ErrNotOpen)
	case s.state == SessionLingering || s.state == SessionClosing:
		return nil, ErrClosed
	case s.state == SessionEnded:
		return nil, s.err
	}
	return s, nil
}

// Send starts a transfer; see Socket. It returns ErrBusy when the receiver's grant is
// used up, or when the session is changing its composition and cannot keep the message meanwhile;
// OutActivity reports when to try again. After an error nothing was sent.
func (n *Node) Send(now microproto.Instant, id SessionID, tag Tag, label Label, data []byte) (Transfer, error) {
	t, _, err := n.startTransfer(now, id, tag, label, data, false)
	return t, err
}

func (n *Node) startTransfer(
	now microproto.Instant, id SessionID, tag Tag, label Label, data []byte, coalesce bool,
) (t Transfer, waits bool, err error) {
	s, err := n.active(id)
	if err != nil {
		return 0, false, err
	}
	if s.state == SessionRemoteClosed {
		return 0, false, s.err
	}
	c := s.channel
	synchronous := c.mode() == microproto.ModeSynchronous
	if err := s.checkLength(tag, len(data), synchronous); err != nil {
		return 0, false, err
	}
	if synchronous {
		accepted := s.acceptedNow()
		s.unacked.drop(uint64(accepted))
		waits = coalesce && len(data) <= coalesceBytes && accepted < Transfer(s.info.MessagesSent) &&
			c.coalescer != nil && !c.held
	}
	var record *trace.Record
	var mark uint64
	if n.recording {
		record, mark = n.recordSend(now, s, tag, label, data)
	}
	link := s.reserved.of(data)
	if synchronous && (s.renegotiation.Holds() || s.unacked.submitted < s.unacked.Len()) {
		waits = false
		err = s.enqueuePending(tag, label, data, link)
	} else if err = n.submit(now, s, tag, uint64(label), data, waits); err == nil && synchronous {
		s.unacked.Push(unackedTransfer{uint32(tag), uint64(label), data, link})
		s.unacked.submitted++
	}
	if n.recording {
		n.sendRecorded(s, tag, record, mark, err)
	}
	if err != nil {
		return 0, false, err
	}
	if link != nil && synchronous {
		s.reserved = reservation{} // it is of the transfer until that is accepted
	}
	s.queued += queueCost(len(data))
	s.info.MessagesSent++
	s.info.BytesSent += uint64(len(data))
	return Transfer(s.info.MessagesSent), waits, nil
}

// submit passes a message to the present endpoint. With more set it may wait in the coalescing
// buffer.
func (n *Node) submit(now microproto.Instant, s *session, tag Tag, label uint64, data []byte, more bool) error {
	if more && !s.coalescing {
		s.coalescing = true
		n.coalescing = append(n.coalescing, s.id)
	}
	c := s.channel
	var failed error
	c.tellLink()
	err := c.composite.Do(now, func(x *microproto.Exec) {
		if more {
			_, failed = c.coalescer.SendMore(x, uint32(tag), label, data)
		} else {
			_, failed = c.endpoint.Send(x, uint32(tag), label, data)
		}
	})
	n.collect(now, s, c, err, int64(tag))
	n.schedule(s)
	return cmp.Or(err, failed)
}

// Receive copies what has arrived; see Socket. It returns ErrNothing when there is no
// message of that tag (synchronous). After the other end has closed the session it still returns
// what arrived before, then the error.
func (n *Node) Receive(now microproto.Instant, id SessionID, slot *Slot) (Arrival, error) {
	return n.receive(now, id, slot.Tag, slot, nil)
}

// ReceiveView is Receive into a View; see Socket.
func (n *Node) ReceiveView(now microproto.Instant, id SessionID, tag Tag, v *View) (Arrival, error) {
	return n.receive(now, id, tag, nil, v)
}

// receive receives to the slot or, if that is nil, to the view.
func (n *Node) receive(now microproto.Instant, id SessionID, tag Tag, slot *Slot, v *View) (Arrival, error) {
	s, err := n.active(id)
	if err != nil {
		return Arrival{}, err
	}
	if s.slot(tag) < 0 {
		return Arrival{}, s.undeclared(tag)
	}
	if len(s.handover.Unread) > 0 {
		if a, found, err := s.receiveHandedOver(tag, slot, v); found {
			if n.recording && err == nil {
				n.recordReceive(now, s, tag, &a)
			}
			return a, err
		}
	}
	c := s.channel
	if c.empty() {
		if s.state == SessionRemoteClosed {
			return Arrival{}, s.err
		}
		return Arrival{}, ErrNothing
	}
	var a Arrival
	var failed error
	err = c.composite.Do(now, func(x *microproto.Exec) {
		if slot == nil {
			a, failed = c.endpoint.View(x, uint32(tag), v)
			return
		}
		var labels *[]microproto.SegmentLabel
		if slot.Labels != nil {
			labels = &slot.Labels
		}
		a, failed = c.endpoint.Receive(x, uint32(tag), slot.Data, labels)
	})
	n.collect(now, s, c, err, -1)
	n.schedule(s)
	err = cmp.Or(err, failed)
	if s.state == SessionRemoteClosed && (err == ErrNothing || err == nil && !a.Fresh) {
		return Arrival{}, s.err
	}
	if err != nil {
		return a, err
	}
	if a.Fresh {
		c.taken++
		s.countReceived(a)
		if n.recording {
			n.recordReceive(now, s, tag, &a)
		}
	}
	return a, nil
}

func (s *session) countReceived(a Arrival) {
	s.info.MessagesReceived++
	s.info.BytesReceived += uint64(a.Length)
}

// Post offers the slot's memory for the message that a Receive of it waits for: what arrives before
// the next Receive or Withdraw may be written there.
func (n *Node) Post(id SessionID, slot *Slot) {
	if p := n.poster(id); p != nil {
		p.Post(uint32(slot.Tag), slot.Data)
	}
}

// Withdraw takes the last Post of a session back.
func (n *Node) Withdraw(id SessionID) {
	if p := n.poster(id); p != nil {
		p.Withdraw()
	}
}

// poster returns the endpoint of a session if messages can be received in posted memory; else nil.
func (n *Node) poster(id SessionID) microproto.Poster {
	s := n.session(id)
	if s == nil || s.channel == nil {
		return nil
	}
	p, _ := s.channel.endpoint.(microproto.Poster)
	return p
}

// receiveHandedOver returns the oldest message of a tag that arrived while the session was
// synchronous, and was not received before it became asynchronous.
func (s *session) receiveHandedOver(tag Tag, slot *Slot, v *View) (a Arrival, found bool, err error) {
	h := &s.handover
	i := slices.IndexFunc(h.Unread, func(u microproto.Unread) bool { return u.Tag == uint32(tag) })
	if i < 0 {
		return Arrival{}, false, nil
	}
	u := &h.Unread[i]
	switch {
	case slot == nil:
		v.Swap(u.Data)
	case len(slot.Data) < len(u.Data):
		return Arrival{Length: len(u.Data)}, true, ErrShort
	default:
		copy(slot.Data, u.Data)
		if slot.Labels = slot.Labels[:0]; cap(slot.Labels) > 0 {
			slot.Labels = append(slot.Labels, microproto.SegmentLabel{Length: len(u.Data), Label: u.Label})
		}
	}
	a = Arrival{Label: u.Label, Newest: u.Label, Length: len(u.Data), Fresh: true, Complete: true}
	h.Consumed += u.Cost
	h.Credit += u.Cost
	h.Unread = slices.Delete(h.Unread, i, i+1)
	s.countReceived(a)
	return a, true, nil
}

// resend submits the transfers that wait: those to be sent again after a change of composition, and
// those that were started during the change.
func (n *Node) resend(now microproto.Instant, s *session) {
	b, r := &s.unacked, &s.renegotiation
	for b.submitted < b.Len() && s.channel != nil && !s.channel.held && s.running() {
		if r.Holds() && (r.Switched || b.base+uint64(b.submitted) >= r.Mine.Sent) {
			return
		}
		t := b.At(b.submitted)
		err := n.submit(now, s, Tag(t.tag), t.label, t.data, false)
		if errors.Is(err, ErrBusy) {
			return
		}
		if err != nil {
			n.fail(now, s, fmt.Errorf("a transfer cannot be sent again in another composition: %w", err))
			return
		}
		b.submitted++
		if r.Agreed {
			n.switchEpoch(now, s)
		}
	}
}

// State returns the state of a session, and why it ended.
func (n *Node) State(id SessionID) (SessionState, error) {
	s := n.session(id)
	if s == nil {
		return SessionEnded, ErrSession
	}
	return s.state, s.err
}

// Accepted returns the highest transfer such that it and all before it are complete. An asynchronous
// transfer is complete at once.
func (n *Node) Accepted(id SessionID) Transfer {
	if s := n.session(id); s != nil {
		return s.acceptedNow()
	}
	return 0
}

// Arrivals returns the number of messages or segments that the session has accepted. It only grows
// while the session is open.
func (n *Node) Arrivals(id SessionID) uint64 {
	if s := n.session(id); s != nil && s.channel != nil {
		return s.priorArrivals + s.channel.endpoint.Arrivals()
	}
	return 0
}

// Unread returns the number of messages that wait for a Receive. Asynchronous values do not count.
func (n *Node) Unread(id SessionID) uint64 {
	s := n.session(id)
	switch {
	case s == nil || s.channel == nil:
		return 0
	case s.channel.mode() == microproto.ModeAsynchronous:
		return uint64(len(s.handover.Unread))
	}
	return s.channel.unread()
}

// Mode returns the present mode of communication; 0 for an unknown session.
func (n *Node) Mode(id SessionID) microproto.Mode {
	if s := n.session(id); s != nil {
		return s.conditions.Mode
	}
	return 0
}

// Carries reports whether a session uses the rail of a number, an index in NodeConfig.Rails.
func (n *Node) Carries(number int) bool {
	return slices.ContainsFunc(n.sessions, func(s *session) bool {
		return s != nil && (s.channel.over(number) || s.previous.over(number))
	})
}

// over reports whether the channel uses the rail of a number. A nil channel uses none.
func (c *channel) over(number int) bool { return c != nil && c.Rail != nil && c.Rail.Number == number }

// Info describes a session.
func (n *Node) Info(id SessionID) (SessionInfo, error) {
	s := n.session(id)
	if s == nil {
		return SessionInfo{}, ErrSession
	}
	s.updateCounters()
	i := s.info
	i.Name, i.Peer = s.options.Name, s.peer.Name
	i.State, i.Epoch = s.state, uint8(i.Changes)
	i.RTT, i.Path = s.peer.found().RTT, s.peer.metrics
	i.NetworkReason = s.networkReason()
	i.Conditions = s.conditions
	i.Composition = slices.Clone(s.composition.Protocols)
	if s.sealed {
		i.Protection = ProtectionStack()
	}
	if s.channel != nil && s.channel.Path == nil {
		i.PathDown = s.peer.paths.Base.Reason
	}
	if i.PathDown == "" && s.peer.Silent() {
		i.PathDown = fmt.Sprintf("nothing arrives from %s, no heartbeat of the control connection either", s.peer.Name)
	}
	if s.channel != nil {
		i.SegmentSize, i.FrameBytes = s.channel.composite.MaxPayload(), s.channel.frameBytes
		if most := s.channel.cells.segmentBytes; most != nil {
			i.SegmentSize = *most
		}
	}
	return i, nil
}

// established returns the session of a control message about a change of composition; nil if it is
// being closed.
func (n *Node) established(p *peer, e control.Ends) *session {
	if s := n.session(SessionID(e.To)); s.isOf(p, e.From) && s.established() {
		return s
	}
	return nil
}

// outOfTurn returns the error of a message about a change that the other end may not send now.
func (s *session) outOfTurn(k control.Kind, epoch uint8) error {
	return fmt.Errorf("%w: %v of session %q for epoch %d out of turn", ErrMalformed, k, s.options.Name, epoch)
}
