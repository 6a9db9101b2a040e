package p2psap

import (
	"errors"
	"fmt"

	"github.com/p2pdc/p2pdc/microproto"
)

// The change itself. An end that knows that both want it *freezes* the old channel: from
// then on it takes nothing of the old epoch, and everything of the new one, whose
// endpoint goes on with what has arrived. It tells the other end which transfers those
// are. When it has heard the same from the other end it *commits*: it sends the other
// transfers again, in the new epoch, and the new ones behind them. So a frame of the
// new epoch never comes before its receiver is ready for it, and no message comes twice.

// freeze begins the new epoch at this end, as soon as the old one is drained.
func (n *Node) freeze(now microproto.Instant, s *session) {
	c := &s.change
	if !c.agreed || c.frozen || c.drains && (s.arrivedNow() < c.theirs.Sent || s.kept.base+uint64(s.kept.submitted) < c.mine.Sent) {
		return
	}
	if c.careful && !c.told {
		c.told = true
		n.post(s.peer, kindDrained, &drained{To: s.theirs.Session, From: s.id, Epoch: c.next.header.epoch})
	}
	if c.careful && !c.heard {
		return
	}
	old, next := s.channel, c.next
	s.accepted, s.arrived = s.acceptedNow(), s.arrivedNow()
	s.news += old.endpoint.Arrivals()
	if old.mode() == microproto.ModeAsynchronous {
		s.kept = kept{base: s.info.MessagesSent}
	}
	if err := n.succeed(now, s, old, next); err != nil {
		n.fail(now, s, err)
		return
	}
	s.channel, s.conditions, s.composition = next, next.conditions, next.composition
	s.kept.submitted = 0
	if c.drains && !c.careful {
		s.former = old
	} else {
		n.retire(now, s, old)
		old.rail.queue.forget(s.id)
	}
	c.frozen = true
	n.post(s.peer, kindAdapted, &adapted{
		To: s.theirs.Session, From: s.id, Epoch: next.header.epoch,
		Sent: s.info.MessagesSent, Accepted: s.arrived, Stored: s.legacy.Stored, Credit: s.legacy.Credit,
	})
	n.settle(now, s, next, nil, -1)
	n.touch(s)
	if c.answered {
		n.commit(now, s)
	}
}

// drain tells the old channel that it has little time.
func (n *Node) drain(now microproto.Instant, s *session) {
	c := s.channel
	err := c.composite.Do(now, func(x *microproto.Exec) { microproto.Raise(x, microproto.DrainSession, struct{}{}) })
	n.settle(now, s, c, err, -1)
}

// succeed hands over from one channel to the next, and opens that.
func (n *Node) succeed(now microproto.Instant, s *session, old, next *channel) error {
	from, to := old.endpoint.(microproto.Migratable), next.endpoint.(microproto.Migratable)
	if g := from.Granted(); g != 0 {
		s.granted = g
	}
	from.Export(&s.legacy)
	unread := len(s.legacy.Unread)
	if err := to.Import(&s.legacy); err != nil {
		return err
	}
	next.inherited = uint64(unread - len(s.legacy.Unread))
	next.held = next.mode() == microproto.ModeSynchronous
	for _, name := range old.composition.Protocols {
		if h, ok := old.composite.Protocol(name).(microproto.StateExporter); ok {
			s.bequeath(name, h.ExportState())
		}
	}
	for _, e := range s.estate {
		if h, ok := next.composite.Protocol(e.name).(microproto.StateExporter); ok {
			if err := h.ImportState(e.state); err != nil {
				return err
			}
		}
	}
	if err := n.raiseShield(now, s, next); err != nil {
		return err
	}
	return n.openComposite(now, s, next)
}

// bequest is what a micro-protocol has learnt, kept for the next of its name: the next
// composition may do without it, and the one after that not.
type bequest struct {
	name  string
	state microproto.State
}

func (s *session) bequeath(name string, state microproto.State) {
	for i := range s.estate {
		if s.estate[i].name == name {
			s.estate[i].state = state
			return
		}
	}
	s.estate = append(s.estate, bequest{name, state})
}

// takeAdapted: the peer has begun the new epoch.
func (n *Node) takeAdapted(now microproto.Instant, p *peer, a adapted) error {
	s := n.session(a.To)
	if s == nil || s.peer != p || s.theirs.Session != a.From || s.state != SessionOpen && s.state != SessionLingering {
		return nil // of a session that is being closed
	}
	c := &s.change
	if !c.agreed || c.answered || a.Epoch != c.next.header.epoch || a.Accepted > s.info.MessagesSent {
		return fmt.Errorf("%w: adapted of session %q for epoch %d out of turn", ErrMalformed, s.options.Name, a.Epoch)
	}
	c.answer, c.answered = a, true
	if c.frozen {
		n.commit(now, s)
	}
	n.lingered(now, s)
	return nil
}

// commit ends a change: both ends have begun the new epoch.
func (n *Node) commit(now microproto.Instant, s *session) {
	c, next := &s.change, s.channel
	if s.former != nil {
		n.retire(now, s, s.former)
		s.former = nil
	}
	if c.was == microproto.ModeAsynchronous {
		s.arrived = c.answer.Sent
	} else {
		s.kept.forget(c.answer.Accepted)
	}
	if next.mode() == microproto.ModeSynchronous {
		s.accepted = max(s.accepted, Transfer(s.kept.base))
		next.first = s.kept.base
		s.spent = c.answer.Stored + s.kept.bytes()
		next.endpoint.(microproto.Migratable).SetCredit(c.answer.Stored, c.answer.Credit)
	} else {
		s.kept = kept{}
	}
	next.held = false
	s.info.Changes = next.number
	if c.moves {
		s.info.Moves++
	}
	s.info.LastPause = now.Sub(c.since)
	n.settle(now, s, next, nil, -1)
	if s.channel != nil {
		n.over(now, s, nil)
	}
}

// resubmit gives the endpoint the transfers that wait: those to be sent again, and
// those that were started during a change.
func (n *Node) resubmit(now microproto.Instant, s *session) {
	k, c := &s.kept, &s.change
	for k.submitted < k.n && s.channel != nil && !s.channel.held && s.running() {
		if c.mine.Cause != 0 && (c.frozen || k.base+uint64(k.submitted) >= c.mine.Sent) {
			return
		}
		t := k.at(k.submitted)
		err := n.submit(now, s, Tag(t.tag), t.label, t.data, false)
		if errors.Is(err, microproto.ErrBusy) {
			return
		}
		if err != nil {
			n.fail(now, s, fmt.Errorf("a transfer cannot be sent again in another composition: %w", err))
			return
		}
		k.submitted++
		if c.agreed {
			n.freeze(now, s)
		}
	}
}

// fail ends a session that cannot go on, at both ends.
func (n *Node) fail(now microproto.Instant, s *session, err error) {
	if s.state == SessionEnded {
		return
	}
	reason := err.Error()
	n.post(s.peer, kindReject, &reject{To: s.theirs.Session, From: s.id, Reason: reason[:min(len(reason), maxReasonBytes)]})
	n.end(now, s, fmt.Errorf("p2psap: session %q with %q has failed: %w", s.options.Name, s.peer.name, err))
}
