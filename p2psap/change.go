package p2psap

import (
	"fmt"
	"slices"
	"strings"

	"github.com/p2pdc/p2pdc/microproto"
)

// A change of composition has two parts. First the ends come to want the same: the
// k-th Adapt of one end pairs with the k-th of the other; what a monitor wants is
// carried out when the other end accepts it, and dropped when a scheme's wish is on its
// way. This file is that part; epoch.go is the other, the change itself.

// change is what an end knows of the change that is wanted or under way.
type change struct {
	agreed       bool            // the change will take place
	frozen       bool            // this end has begun the new epoch, and said so
	was          microproto.Mode // in the old epoch
	drains       bool            // everything sent in the old epoch arrives in it
	careful      bool            // and both ends say so before they begin the new epoch:
	told, heard  bool            // this one has, the other one has
	answered     bool            // the other end has begun it too
	moves        bool            // to another rail
	mine, theirs adapt           // what the ends have said; Cause 0: nothing
	next         *channel        // as mine says; nil when this end cannot

	wanted microproto.Mode // by an Adapt that is not over; 0: none
	count  uint64          // Adapts that are over
	err    error           // how the last one ended
	answer adapted
	since  microproto.Instant // when both had said what they want
	shelf  *change            // what was under way when this end asked to move; see move.go
}

// Adapt asks for a mode of communication. It is symmetric, as Open is: when both ends
// have asked, the session changes to the composition for that mode. The number returned
// is what Adapted counts to when it is over; OutActivity tells when to look.
// microproto.ErrBusy: an earlier Adapt of this end is not over.
func (n *Node) Adapt(now microproto.Instant, id SessionID, mode microproto.Mode) (uint64, error) {
	s, err := n.active(id)
	switch {
	case err != nil:
		return 0, err
	case s.state == SessionRemoteClosed:
		return 0, s.err
	case mode != microproto.ModeSynchronous && mode != microproto.ModeAsynchronous:
		return 0, fmt.Errorf("p2psap: session %q cannot change to mode %d; it must be sync or async", s.options.Name, mode)
	case s.change.wanted != 0:
		return 0, microproto.ErrBusy
	}
	n.replans = true
	s.change.wanted = mode
	number := s.change.count + 1
	n.ask(now, s)
	return number, nil
}

// Adapted counts the Adapts of this end that are over, and tells how the last one
// ended: nil, or why the session has kept its composition.
func (n *Node) Adapted(id SessionID) (uint64, error) {
	s := n.session(id)
	if s == nil {
		return 0, ErrSession
	}
	return s.change.count, s.change.err
}

// Mode is the present mode of communication; 0 for a session that is not there.
func (n *Node) Mode(id SessionID) microproto.Mode {
	if s := n.session(id); s != nil {
		return s.conditions.Mode
	}
	return 0
}

// ask says what the user wants, unless a monitor's change has to end first.
func (n *Node) ask(now microproto.Instant, s *session) {
	c := &s.change
	if c.wanted == 0 || c.mine.Cause != 0 {
		return
	}
	to := s.conditions
	to.Mode = c.wanted
	next, err := n.prepare(s, to, s.channel.ride)
	n.sayFor(now, s, causeScheme, to, next, err)
	if c.theirs.Cause != 0 {
		n.conclude(now, s)
	}
}

// wish asks for other conditions in the present mode, as the monitor sees them. It is
// dropped while another change is wanted, and when this end cannot carry it out.
func (n *Node) wish(now microproto.Instant, s *session, to Conditions) error {
	c := &s.change
	if s.state != SessionOpen || c.wanted != 0 || c.mine.Cause != 0 || c.theirs.Cause != 0 {
		return microproto.ErrBusy
	}
	next, err := n.prepare(s, to, s.channel.ride)
	if err == nil {
		n.say(now, s, causeContext, next)
	}
	return err
}

// say tells the other end what channel this one wants.
func (n *Node) say(now microproto.Instant, s *session, why cause, next *channel) {
	n.sayFor(now, s, why, next.conditions, next, nil)
}

// sayFor is say that tells why this end cannot, if err is not nil.
func (n *Node) sayFor(now microproto.Instant, s *session, why cause, to Conditions, next *channel, err error) {
	n.flush(now, s) // it counts as sent in the old epoch
	m := &s.change.mine
	*m = adapt{
		To: s.theirs.Session, From: s.id, Epoch: uint8(s.channel.number + 1), Cause: why,
		Mode: to.Mode, Network: to.Network, Round: s.channel.round, Distance: to.Distance, Lossy: to.Lossy, Sent: s.info.MessagesSent,
	}
	if err != nil {
		m.Reason = err.Error()
		m.Reason = m.Reason[:min(len(m.Reason), maxReasonBytes)]
	} else {
		m.Protocols, m.Fingerprint = next.composition.Protocols, next.composite.Fingerprint()
		m.FrameBytes, m.Round = uint32(n.frameBytes(s.peer, next.way, to.Mode)), next.round
	}
	s.change.next, s.change.since = next, now
	n.post(s.peer, kindAdapt, m)
}

// prepare builds the channel for other conditions, by the present rail as the present
// channel goes by it, or another one.
func (n *Node) prepare(s *session, to Conditions, by ride) (*channel, error) {
	to.Network = by.rail.network
	if to.Mode == microproto.ModeAsynchronous {
		o := s.options
		o.Mode = to.Mode
		if err := checkOptions(&o); err != nil {
			return nil, err
		}
	}
	composition, err := n.config.Policy.Compose(to)
	if err != nil {
		return nil, err
	}
	if err := Missing(n.config.Catalog, composition); err != nil {
		return nil, err
	}
	c := &channel{number: s.channel.number + 1, conditions: to, composition: composition, ride: by, frameBytes: n.frameBytes(s.peer, by.way, to.Mode)}
	if was := s.channel; was.way == by.way {
		c.frameBytes = min(c.frameBytes, was.frameBytes)
	}
	if err := n.build(s, c); err != nil {
		return nil, err
	}
	for _, e := range []microproto.Endpoint{s.channel.endpoint, c.endpoint} {
		if _, ok := e.(microproto.Migratable); !ok {
			return nil, fmt.Errorf("p2psap: session %q: micro-protocol %s cannot be changed while the session is open", s.options.Name, e.Name())
		}
	}
	return c, nil
}

func (n *Node) build(s *session, c *channel) error {
	if err := n.compose(s, c, &s.theirs); err != nil {
		return err
	}
	return s.declare(c)
}

// takeAdapt: the peer wants another composition, or answers a wish of this end. Wishes
// may cross: a scheme's goes before a monitor's, and of two monitors' that of the end
// with the higher name.
func (n *Node) takeAdapt(now microproto.Instant, p *peer, a adapt) error {
	s := n.session(a.To)
	if s == nil || s.peer != p || s.theirs.Session != a.From || s.state != SessionOpen && s.state != SessionLingering {
		return nil // of a session that is being closed
	}
	c := &s.change
	bad := func() error {
		return fmt.Errorf("%w: adapt of session %q for epoch %d out of turn", ErrMalformed, s.options.Name, a.Epoch)
	}
	moves := a.Cause == causeRail
	switch {
	case moves && c.frozen && a.Epoch == uint8(s.channel.number):
		return nil // this end had begun the new epoch before it heard
	case c.frozen || c.agreed && !(moves && c.careful) || a.Epoch != uint8(s.channel.number+1):
		return bad()
	case moves && c.mine.Cause == causeRail && n.config.Name > p.name:
		return nil // they crossed, and the other end has to give way
	case moves:
		c.reset() // it goes before everything
	case a.Cause == causeScheme && c.mine.Cause == causeRail:
		n.crossed(now, s, a)
		return nil
	case a.Cause == causeContext && (c.mine.Cause == causeScheme || c.mine.Cause == causeRail):
		return nil // they crossed, and the other end has to give way
	case a.Cause == causeContext && c.mine.Cause == causeContext && n.config.Name > p.name:
		return nil // likewise
	case c.theirs.Cause != 0 || a.Cause == causeAccept && c.mine.Cause != causeContext && c.mine.Cause != causeRail:
		return bad()
	}
	c.theirs = a
	switch a.Cause {
	case causeScheme:
		n.withdraw(s)
		n.resubmit(now, s)
		if c.mine.Cause == causeScheme {
			n.conclude(now, s)
		} else {
			n.ask(now, s)
		}
		n.reroute(now, s)
	case causeContext, causeRail:
		n.withdraw(s)
		n.accept(now, s)
	case causeAccept:
		n.conclude(now, s)
	}
	return nil
}

// withdraw takes a monitor's wish back: the other end will not answer it.
func (n *Node) withdraw(s *session) {
	if c := &s.change; c.mine.Cause == causeContext {
		c.mine, c.next = adapt{}, nil
	}
}

// accept answers what the other end's monitor wants, or its wish to move.
func (n *Node) accept(now microproto.Instant, s *session) {
	c := &s.change
	to, by, err := s.conditions, s.channel.ride, error(nil)
	if c.theirs.Cause == causeRail {
		by, err = n.destination(s, &c.theirs)
		to.Network = c.theirs.Network
	} else {
		to.Distance, to.Lossy = c.theirs.Distance, c.theirs.Lossy
		if c.theirs.FrameBytes > ShortFrame && by.way == nil {
			s.peer.frameLimit = 0 // the other end tries longer frames again
		}
	}
	var next *channel
	if err == nil {
		next, err = n.prepare(s, to, by)
	}
	n.sayFor(now, s, causeAccept, to, next, err)
	n.conclude(now, s)
}

// conclude: both ends have spoken, and both come to the same result.
func (n *Node) conclude(now microproto.Instant, s *session) {
	c := &s.change
	if d := c.disagreement(); d != "" {
		n.over(now, s, &RefusedError{Peer: s.peer.name, Session: s.options.Name, Reason: d})
		return
	}
	frame := min(int(c.mine.FrameBytes), int(c.theirs.FrameBytes))
	if c.mine.Cause != causeScheme && c.next.way == nil && frame == ShortFrame && frame < s.channel.frameBytes {
		s.peer.limitFrames(now) // one end has found out, and both know
	}
	if frame != c.next.frameBytes {
		c.next.frameBytes = frame
		if err := n.build(s, c.next); err != nil {
			n.fail(now, s, err)
			return
		}
	}
	c.agreed = true
	if c.mine.Cause != causeContext && c.mine.Cause != causeRail {
		c.since = now
	}
	c.moves, c.shelf = s.channel.way != c.next.way || s.channel.round != c.next.round, nil
	// Where nobody would send a transfer again, the new epoch begins when it has arrived.
	c.was, c.drains, c.careful = s.channel.mode(), s.channel.drains(c.mine.Mode), s.channel.careful(c.mine.Mode)
	if c.drains {
		n.drain(now, s)
	}
	n.resubmit(now, s) // what an earlier wish, withdrawn since, has kept back
	n.freeze(now, s)
}

// disagreement names what keeps the two ends from changing; "" when nothing does.
func (c *change) disagreement() string {
	var d []string
	if c.mine.Mode != c.theirs.Mode {
		d = append(d, fmt.Sprintf("change of mode: this end wants %v, the peer %v", c.mine.Mode, c.theirs.Mode))
	}
	if c.mine.Reason != "" {
		d = append(d, "this end cannot change: "+c.mine.Reason)
	}
	if c.theirs.Reason != "" {
		d = append(d, "the peer says: "+c.theirs.Reason)
	}
	switch {
	case d != nil:
	case !slices.Equal(c.mine.Protocols, c.theirs.Protocols):
		d = append(d, fmt.Sprintf("composition: this end has %s, the peer %s",
			strings.Join(c.mine.Protocols, "+"), strings.Join(c.theirs.Protocols, "+")))
	case c.mine.Network != c.theirs.Network || c.mine.Round != c.theirs.Round:
		d = append(d, fmt.Sprintf("network: this end has %v, the peer %v", c.mine.Network, c.theirs.Network))
	case c.mine.Fingerprint != c.theirs.Fingerprint:
		d = append(d, fmt.Sprintf("header layout or versions of micro-protocols: this end has %016x, the peer %016x", c.mine.Fingerprint, c.theirs.Fingerprint))
	}
	return strings.Join(d, "; ")
}

// over ends a change, carried out or not.
func (n *Node) over(now microproto.Instant, s *session, err error) {
	c := &s.change
	by, moved := c.mine.Cause, c.mine.Cause == causeRail || c.theirs.Cause == causeRail
	if by != causeScheme && !moved {
		to := s.conditions
		to.Distance, to.Lossy = c.mine.Distance, c.mine.Lossy
		s.monitorOver(now, to, err)
	}
	c.reset()
	if by == causeScheme {
		c.wanted, c.err = 0, err
		c.count++
	}
	n.out = append(n.out, Output{Kind: OutAdapted, Session: s.id, Peer: s.peer.name, Err: err})
	n.touch(s)
	n.resubmit(now, s)
	n.reroute(now, s)
	if s.state == SessionOpen {
		n.ask(now, s)
	}
}

// reset forgets the change that was under way; what the user wants stays.
func (c *change) reset() {
	*c = change{wanted: c.wanted, count: c.count, err: c.err}
}
