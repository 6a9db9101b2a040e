package p2psap

import (
	"cmp"
	"fmt"
	"time"

	"github.com/p2pdc/p2pdc/microproto"
	"github.com/p2pdc/p2pdc/p2psap/internal/control"
	"github.com/p2pdc/p2pdc/p2psap/internal/rail"
)

// A change of composition has two parts. First the two ends agree: the k-th Adapt of one end pairs
// with the k-th of the other; a monitor's proposal is carried out when the other end accepts it, and
// dropped when a user's proposal collides with it. That part is in this file, the switch to the new
// epoch in switch.go.
//
// A monitor's proposal stops no messages, since the old composition still carries them: the end that
// made it begins the new epoch when the answer arrives, the other end when it learns that. An answer
// that arrives late shows that the control channel is slow, so that the change would stop messages
// for as long. The proposal is then withdrawn.

// A monitor's proposal is withdrawn if the answer takes longer than two round trips and answerMargin,
// a period of the monitor, which a busy machine may need to run both ends. The monitor proposes
// nothing else for withdrawnPause.
const (
	answerMargin   = monitorEvery
	withdrawnPause = time.Second
	unknownRTT     = time.Second // RFC 6298 §2.1
)

// renegotiation is the state of a change of composition at one end.
type renegotiation struct {
	control.Negotiation
	wasMode      microproto.Mode // of the old epoch
	drains       bool            // everything sent in the old epoch arrives in it
	sentDrained  bool            // this end has reported that everything has arrived
	peerDrained  bool            // the other end has
	peerSwitched bool            // the other end has begun the new epoch, as answer says
	moves        bool            // the new epoch uses another path, or another round of the path
	next         *channel        // of Mine; nil if this end cannot change

	wanted    microproto.Mode // mode of an Adapt that is not over; 0: none
	count     uint64          // Adapts that have finished
	err       error           // of the last one
	answer    control.Switched
	since     microproto.Instant // messages may have waited since then; before an agreement: of Mine
	suspended *renegotiation     // what was under way when this end proposed to move; see reroute.go
}

// Adapt asks for a mode of communication. It is symmetric, as Open is: when both ends have asked,
// the session changes to the composition for that mode. The number returned is what Adapted counts
// to when the change is over; OutActivity reports when to look. It returns ErrBusy while
// an earlier Adapt of this end is not over.
func (n *Node) Adapt(now microproto.Instant, id SessionID, mode microproto.Mode) (uint64, error) {
	s, err := n.active(id)
	switch {
	case err != nil:
		return 0, err
	case s.state == SessionRemoteClosed:
		return 0, s.err
	case mode != microproto.ModeSynchronous && mode != microproto.ModeAsynchronous:
		return 0, fmt.Errorf("p2psap: session %q cannot change to mode %d; it must be sync or async", s.options.Name, mode)
	case s.renegotiation.wanted != 0:
		return 0, ErrBusy
	}
	n.reschedule = true
	s.renegotiation.wanted = mode
	number := s.renegotiation.count + 1
	n.proposeMode(now, s)
	return number, nil
}

// Adapted returns how many Adapts of this end are over, and how the last one ended: nil, or why the
// session has kept its composition.
func (n *Node) Adapted(id SessionID) (uint64, error) {
	s := n.session(id)
	if s == nil {
		return 0, ErrSession
	}
	return s.renegotiation.count, s.renegotiation.err
}

// proposeMode proposes the mode that the user wants, unless another change has to end first.
func (n *Node) proposeMode(now microproto.Instant, s *session) {
	r := &s.renegotiation
	if r.wanted == 0 || r.Mine.Cause != 0 {
		return
	}
	to := s.conditions
	to.Mode = r.wanted
	by := s.channel.Binding
	if by.Path != nil && !by.Path.ChosenFor(to.Mode) && !s.peer.paths.Base.Down() || !by.Rail.Carries(to.Mode) {
		by = n.bind(nil) // at both ends; a better path that carries the mode is proposed later
	}
	to.Network = by.Rail.Network
	next, err := n.prepare(s, to, by)
	n.sendProposal(now, s, control.CauseUser, to, next, err)
	if r.Theirs.Cause != 0 {
		n.agreeChange(now, s)
	}
}

// proposeConditions proposes other conditions in the present mode, as the monitor measured them. It
// returns ErrBusy while another change is wanted.
func (n *Node) proposeConditions(now microproto.Instant, s *session, to Conditions) error {
	r := &s.renegotiation
	if s.state != SessionOpen || r.wanted != 0 || r.Mine.Cause != 0 || r.Theirs.Cause != 0 {
		return ErrBusy
	}
	next, err := n.prepare(s, to, s.channel.Binding)
	if err == nil {
		n.sendProposal(now, s, control.CauseMonitor, next.conditions, next, nil)
	}
	return err
}

// sendProposal sends this end's proposal; with err, why this end cannot change.
func (n *Node) sendProposal(
	now microproto.Instant, s *session, why control.Cause, to Conditions, next *channel, err error,
) {
	n.flush(now, s) // what waits counts as sent in the old epoch
	m := &s.renegotiation.Mine
	*m = control.Proposal{
		Ends: s.ends(), Epoch: uint8(s.channel.number + 1), Cause: why,
		Mode: to.Mode, Network: to.Network, Round: s.channel.Round, Distance: to.Distance, Lossy: to.Lossy,
		Sent: s.info.MessagesSent,
	}
	if err != nil {
		m.Reason = cut(err)
	} else {
		m.Protocols, m.Fingerprint = next.composition.Protocols, next.composite.Fingerprint()
		m.FrameBytes, m.Round = uint32(n.frameBytes(s.peer, next.Path, to.Mode)), next.Round
	}
	s.renegotiation.next, s.renegotiation.since = next, now
	n.send(s.peer, control.KindPropose, m)
}

func (n *Node) prepare(s *session, to Conditions, by rail.Binding) (*channel, error) {
	to.Network = by.Rail.Network
	if to.Mode == microproto.ModeAsynchronous {
		o := s.options
		o.Mode = to.Mode
		if err := o.check(); err != nil {
			return nil, err
		}
	}
	composition, err := n.compose(to)
	if err != nil {
		return nil, err
	}
	was := s.channel
	c := &channel{
		number: was.number + 1, conditions: to, composition: composition, Binding: by,
		frameBytes: n.frameBytes(s.peer, by.Path, to.Mode),
	}
	if was.Path == by.Path {
		c.frameBytes = min(c.frameBytes, was.frameBytes)
	}
	if err := n.rebuild(s, c); err != nil {
		return nil, err
	}
	for _, e := range []microproto.Endpoint{was.endpoint, c.endpoint} {
		if _, ok := e.(microproto.Migratable); !ok {
			return nil, fmt.Errorf("p2psap: session %q: micro-protocol %s cannot be changed while the session is open",
				s.options.Name, e.Name())
		}
	}
	return c, nil
}

// rebuild builds the channel for its present frame size and declares the session's slots to its endpoint.
func (n *Node) rebuild(s *session, c *channel) error {
	if err := n.build(s, c, &s.theirs); err != nil {
		return err
	}
	for _, slot := range s.options.Slots {
		if err := c.endpoint.Slot(uint32(slot.Tag), slot.Length); err != nil {
			return fmt.Errorf("p2psap: session %q, tag %d: %w", s.options.Name, slot.Tag, err)
		}
	}
	return nil
}

// receiveProposal takes the other end's proposal, or its answer to one of this end.
func (n *Node) receiveProposal(now microproto.Instant, p *peer, a *control.Proposal) error {
	s := n.established(p, a.Ends)
	if s == nil {
		return nil
	}
	r := &s.renegotiation
	switch r.Judge(a, uint8(s.channel.number), n.config.Name > p.Name) {
	case control.Ignore:
		return nil
	case control.Refuse:
		return s.outOfTurn(control.KindPropose, a.Epoch)
	case control.Resume:
		n.resumeSuspended(now, s, a)
		return nil
	case control.Yield:
		r.reset()
	}
	if a.Cause == control.CauseWithdraw {
		r.reset()
		n.resume(now, s)
		return nil
	}
	r.Theirs = *a
	if a.Cause == control.CauseAccept {
		if r.Mine.Cause == control.CauseMonitor && r.Differences() == "" && n.answeredLate(now, s) {
			n.withdraw(now, s)
		} else {
			n.agreeChange(now, s)
		}
		return nil
	}
	if r.Mine.Cause == control.CauseMonitor { // the other end will not answer it
		r.Mine, r.next = control.Proposal{}, nil
	}
	if a.Cause != control.CauseUser {
		n.acceptProposal(now, s)
		return nil
	}
	n.resend(now, s)
	if r.Mine.Cause == control.CauseUser {
		n.agreeChange(now, s)
	} else {
		n.proposeMode(now, s)
	}
	n.reroute(now, s)
	return nil
}

// acceptProposal answers a proposal of the other end's monitor, or one to use another path.
func (n *Node) acceptProposal(now microproto.Instant, s *session) {
	a := &s.renegotiation.Theirs
	to, by, err := s.conditions, s.channel.Binding, error(nil)
	if a.Cause == control.CauseRail {
		by, err = n.proposedPath(s, a)
		to.Network = a.Network
	} else {
		to.Distance, to.Lossy = a.Distance, a.Lossy
	}
	var next *channel
	if err == nil {
		next, err = n.prepare(s, to, by)
	}
	n.sendProposal(now, s, control.CauseAccept, to, next, err)
	if a.Cause == control.CauseRail || s.renegotiation.Differences() != "" {
		n.agreeChange(now, s)
	}
}

// answeredLate reports whether the answer to a monitor's proposal took too long. A proposal of
// shorter frames is never late: the old composition does not carry what waits.
func (n *Node) answeredLate(now microproto.Instant, s *session) bool {
	r, p := &s.renegotiation, s.peer
	rtt := cmp.Or(max(valueOf(s.channel.cells.rtt), p.metrics.RTT, p.found().RTT), unknownRTT)
	return r.next.frameBytes >= s.channel.frameBytes && now.Sub(r.since) > 2*rtt+answerMargin
}

// withdraw gives up a proposal of this end's monitor that the other end has accepted.
func (n *Node) withdraw(now microproto.Instant, s *session) {
	r := &s.renegotiation
	w := r.Mine
	w.Cause = control.CauseWithdraw
	n.send(s.peer, control.KindPropose, &w)
	r.reset()
	s.monitor.rest = now.Add(withdrawnPause)
	n.resume(now, s)
}

// agreeChange computes the agreement from both ends' proposals; both ends get the same.
func (n *Node) agreeChange(now microproto.Instant, s *session) {
	r := &s.renegotiation
	if d := r.Differences(); d != "" {
		n.finishChange(now, s, s.refused(d))
		return
	}
	frame := min(int(r.Mine.FrameBytes), int(r.Theirs.FrameBytes))
	if r.Mine.Cause != control.CauseUser && r.next.Path == nil && frame == ShortFrame && frame < s.channel.frameBytes &&
		!n.config.Monitor.Off {
		s.peer.limitFrames(now) // one end has found out; each searches in its direction
	}
	if frame != r.next.frameBytes {
		r.next.frameBytes = frame
		if err := n.rebuild(s, r.next); err != nil {
			n.fail(now, s, err)
			return
		}
	}
	if n.flush(now, s); s.channel == nil {
		return // sending what was buffered has ended the session
	}
	r.Agreed = true
	if r.Mine.Cause != control.CauseRail {
		r.since = now
	}
	r.moves = s.channel.Path != r.next.Path || s.channel.Round != r.next.Round
	r.suspended = nil
	r.wasMode = s.channel.mode()
	r.drains, r.DrainFirst = s.channel.drainsBefore(r.Mine.Mode), s.channel.mustReportDrained(r.Mine.Mode)
	if r.drains {
		c := s.channel // it sends what it still holds back
		err := c.composite.Do(now, func(x *microproto.Exec) { microproto.Raise(x, microproto.DrainSession, struct{}{}) })
		n.collect(now, s, c, err, -1)
	}
	n.resend(now, s) // what waited for an earlier proposal that was dropped
	n.switchEpoch(now, s)
}

// finishChange ends a change, carried out or not.
func (n *Node) finishChange(now microproto.Instant, s *session, err error) {
	r := &s.renegotiation
	cause := r.Mine.Cause
	if cause != control.CauseUser && cause != control.CauseRail && r.Theirs.Cause != control.CauseRail {
		to := s.conditions
		to.Distance, to.Lossy = r.Mine.Distance, r.Mine.Lossy
		pause := n.config.Monitor.Dwell
		if err != nil {
			s.monitor.refused = to
		} else {
			if to.Lossy != s.monitor.lossy {
				s.monitor.theirs = to.Lossy && cause == control.CauseAccept
			}
			pause = s.monitor.pause(now, to.Lossy, pause)
		}
		s.monitor.rest = now.Add(pause)
	}
	r.reset()
	if cause == control.CauseUser {
		r.finishAdapt(err)
	}
	n.report(OutAdapted, s, err)
	n.resume(now, s)
}

// resume goes on after a change is over, or was withdrawn.
func (n *Node) resume(now microproto.Instant, s *session) {
	n.notify(s)
	n.resend(now, s)
	n.reroute(now, s)
	if s.state == SessionOpen {
		n.proposeMode(now, s)
	}
}

func (r *renegotiation) finishAdapt(err error) {
	r.wanted, r.err = 0, err
	r.count++
}

func (r *renegotiation) reset() {
	*r = renegotiation{wanted: r.wanted, count: r.count, err: r.err}
}
