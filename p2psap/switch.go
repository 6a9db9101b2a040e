package p2psap

import (
	"slices"

	"github.com/p2pdc/p2pdc/microproto"
	"github.com/p2pdc/p2pdc/p2psap/internal/control"
)

// The switch to a new epoch. An end that knows that both ends have agreed switches: from then on it
// takes no frame of the old epoch and every frame of the new one, whose endpoint continues with what
// has arrived. It reports which transfers those are. When it has received the same from the other
// end it commits: it sends the remaining transfers again, in the new epoch, and the new ones behind
// them. So a frame of the new epoch never arrives before its receiver is ready for it, and no message
// arrives twice.

// switchEpoch begins the new epoch at this end, as soon as the old one is drained.
func (n *Node) switchEpoch(now microproto.Instant, s *session) {
	r := &s.renegotiation
	if !r.Agreed || r.Switched ||
		r.drains && (s.arrivedNow() < r.Theirs.Sent || s.unacked.base+uint64(s.unacked.submitted) < r.Mine.Sent) {
		return
	}
	if r.DrainFirst && !r.sentDrained {
		r.sentDrained = true
		n.send(s.peer, control.KindDrained, &control.Drained{
			Ends: s.ends(), Epoch: r.next.header.epoch,
		})
	}
	if r.DrainFirst && !r.peerDrained {
		return
	}
	old, next := s.channel, r.next
	s.accepted, s.arrived = s.acceptedNow(), s.arrivedNow()
	s.priorArrivals += old.endpoint.Arrivals()
	if old.mode() == microproto.ModeAsynchronous {
		s.unacked.reset(s.info.MessagesSent)
	}
	if err := n.handOver(now, s, old, next); err != nil {
		n.fail(now, s, err)
		return
	}
	s.channel, s.conditions, s.composition = next, next.conditions, next.composition
	s.unacked.submitted = 0
	if r.drains && !r.DrainFirst {
		s.previous = old
	} else {
		n.closeChannel(now, s, old)
		old.Rail.Window.Discard(uint32(s.id))
	}
	r.Switched = true
	n.send(s.peer, control.KindSwitched, &control.Switched{
		Ends: s.ends(), Epoch: next.header.epoch,
		Sent: s.info.MessagesSent, Accepted: s.arrived, Stored: s.handover.Stored, Credit: s.handover.Credit,
	})
	n.collect(now, s, next, nil, -1)
	n.notify(s)
	if r.peerSwitched {
		n.commit(now, s)
	}
}

// handOver moves the receiving end from one channel to the next, and opens that.
func (n *Node) handOver(now microproto.Instant, s *session, old, next *channel) error {
	from, to := old.endpoint.(microproto.Migratable), next.endpoint.(microproto.Migratable)
	if g := from.Granted(); g != 0 {
		s.granted = g
	}
	from.Export(&s.handover)
	unread := len(s.handover.Unread)
	if err := to.Import(&s.handover); err != nil {
		return err
	}
	next.inherited = uint64(unread - len(s.handover.Unread))
	next.held = next.mode() == microproto.ModeSynchronous
	for _, name := range old.composition.Protocols {
		if e, ok := old.composite.Protocol(name).(microproto.StateExporter); ok {
			s.pathStates = slices.DeleteFunc(s.pathStates, func(p pathState) bool { return p.protocol == name })
			s.pathStates = append(s.pathStates, pathState{name, e.ExportState()})
		}
	}
	for _, p := range s.pathStates {
		if e, ok := next.composite.Protocol(p.protocol).(microproto.StateExporter); ok {
			if err := e.ImportState(p.state); err != nil {
				return err
			}
		}
	}
	if err := n.secure(now, s, next); err != nil {
		return err
	}
	return next.composite.Open(now)
}

// pathState keeps what a micro-protocol measured until one of the same name is composed again. The
// next composition may not have one, but the one after that may.
type pathState struct {
	protocol string
	state    microproto.State
}

// receiveSwitched notes that the other end has begun the new epoch.
func (n *Node) receiveSwitched(now microproto.Instant, p *peer, a *control.Switched) error {
	s := n.established(p, a.Ends)
	if s == nil {
		return nil
	}
	r := &s.renegotiation
	answered := r.Answered()
	if !r.Agreed && !answered || r.peerSwitched || a.Epoch != r.next.header.epoch || a.Accepted > s.info.MessagesSent {
		return s.outOfTurn(control.KindSwitched, a.Epoch)
	}
	r.answer, r.peerSwitched = *a, true
	switch {
	case answered:
		n.agreeChange(now, s)
	case r.Switched:
		n.commit(now, s)
	}
	n.finishLinger(now, s)
	return nil
}

// commit ends a change: both ends have begun the new epoch.
func (n *Node) commit(now microproto.Instant, s *session) {
	r, next := &s.renegotiation, s.channel
	if s.previous != nil {
		n.closeChannel(now, s, s.previous)
		s.previous = nil
	}
	if r.wasMode == microproto.ModeAsynchronous {
		s.arrived = r.answer.Sent
	} else {
		s.unacked.drop(r.answer.Accepted)
	}
	if next.mode() == microproto.ModeSynchronous {
		s.accepted = max(s.accepted, Transfer(s.unacked.base))
		next.first = s.unacked.base
		s.queued = r.answer.Stored + s.unacked.cost()
		next.endpoint.(microproto.Migratable).SetCredit(r.answer.Stored, r.answer.Credit)
	} else {
		s.unacked.reset(0)
	}
	next.held = false
	s.info.Changes = next.number
	if r.moves {
		s.info.Moves++
	}
	s.info.LastPause = now.Sub(r.since)
	n.recordEpoch(now, s, next, s.info.LastPause, r.moves)
	n.collect(now, s, next, nil, -1)
	if s.channel != nil {
		n.finishChange(now, s, nil)
	}
}
