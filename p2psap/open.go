package p2psap

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/p2pdc/p2pdc/microproto"
)

// Open starts a session with a peer that is up. OutOpened tells when both ends
// have agreed, OutEnded when they do not; State tells meanwhile. Whatever the
// outcome, Close gives the session's number back.
//
// Opening is symmetric: both ends open the same name, each sends what it wants,
// and each computes what is agreed from the two messages by the same rule, so
// there is no tie to break. A session is open at an end that has heard that the
// other is ready.
func (n *Node) Open(now microproto.Instant, name string, o OpenOptions) (SessionID, error) {
	p := n.peer(name)
	switch {
	case n.closed:
		return 0, ErrClosed
	case p == nil || p.state == PeerNew || p.state == PeerUnknown:
		return 0, fmt.Errorf("session %q: peer %q: %w: connect first", o.Name, name, ErrNotConnected)
	case p.state != PeerUp:
		return 0, p.err
	}
	if err := checkOptions(&o); err != nil {
		return 0, err
	}
	for _, s := range n.sessions {
		if s != nil && s.peer == p && s.options.Name == o.Name && s.state != SessionEnded && s.state != SessionClosing {
			return 0, fmt.Errorf("p2psap: session %q with %q is open already (%v)", o.Name, name, s.state)
		}
	}
	id, err := n.allocate()
	if err != nil {
		return 0, err
	}
	s := &session{busy: busy{id: id, peer: p, state: SessionOpening}, options: o}
	s.info.LocalityReason = p.finding.Reason
	n.lastPort++
	if n.lastPort == 0 {
		n.lastPort = 1
	}
	s.mine = open{
		Session: id, Name: o.Name, Mode: o.Mode, Port: n.lastPort, BaseBytes: uint32(n.frameBytes(p, nil, o.Mode)),
		ReceiveBytes: uint64(o.ReceiveBytes), Slots: o.Slots,
	}
	s.sealed = n.protects(p)
	if err := n.propose(s, p.best(false)); err != nil {
		return 0, err
	}
	n.offerProtection(s)
	n.sessions[id&0xffff], n.replans = s, true
	n.post(p, kindOpen, &s.mine)
	for i := range p.opens {
		if p.opens[i].Name == o.Name {
			theirs := p.opens[i]
			p.opens = slices.Delete(p.opens, i, i+1)
			n.match(now, s, theirs)
			break
		}
	}
	return id, nil
}

// propose fills in what this end wants of a session over a way; nil is the base link.
func (n *Node) propose(s *session, w *way) (err error) {
	s.conditions = Conditions{Mode: s.options.Mode, Locality: s.peer.locality, Network: n.by(w).rail.network}
	if s.composition, err = n.config.Policy.Compose(s.conditions); err != nil {
		return err
	}
	if err := Missing(n.config.Catalog, s.composition); err != nil {
		return err
	}
	m := &s.mine
	m.Network, m.Protocols, m.FrameBytes = s.conditions.Network, s.composition.Protocols, uint32(n.frameBytes(s.peer, w, s.options.Mode))
	// What the two ends compare is the composite itself: its header layout too.
	trial := &channel{conditions: s.conditions, composition: s.composition, frameBytes: int(m.FrameBytes), ride: n.by(w)}
	m.Round = trial.round
	if err := n.compose(s, trial, &open{ReceiveBytes: m.ReceiveBytes}); err != nil {
		return err
	}
	m.Fingerprint = trial.composite.Fingerprint()
	return nil
}

// sameRail tells whether the two ends want a session on one rail, as they see it.
func sameRail(mine, theirs *open) bool {
	return mine.Network == theirs.Network && mine.Round == theirs.Round
}

// checkOptions fills defaults in and copies what the caller might change.
func checkOptions(o *OpenOptions) error {
	if o.Name == "" || len(o.Name) > maxNameBytes {
		return fmt.Errorf("p2psap: the name of a session must have 1 to %d bytes; %q has %d", maxNameBytes, o.Name, len(o.Name))
	}
	if o.Mode != microproto.ModeSynchronous && o.Mode != microproto.ModeAsynchronous {
		return fmt.Errorf("p2psap: session %q has mode %d; it must be sync or async", o.Name, o.Mode)
	}
	if len(o.Slots) > maxSlots {
		return fmt.Errorf("p2psap: session %q declares %d slots; at most %d are allowed", o.Name, len(o.Slots), maxSlots)
	}
	if o.Mode == microproto.ModeAsynchronous && len(o.Slots) == 0 {
		return fmt.Errorf("p2psap: session %q is asynchronous and declares no slot: its values need places to go", o.Name)
	}
	o.Slots = slices.Clone(o.Slots)
	o.Options = maps.Clone(o.Options)
	total := 0
	for i, s := range o.Slots {
		if s.Length <= 0 || s.Length > maxSlotBytes || (o.Mode == microproto.ModeAsynchronous && s.Length%8 != 0) {
			return fmt.Errorf("%w: session %q, tag %d: length %d; it must be 1 to %d bytes, and a multiple of 8 when asynchronous", ErrSlot, o.Name, s.Tag, s.Length, maxSlotBytes)
		}
		for _, t := range o.Slots[:i] {
			if s.Tag == t.Tag {
				return fmt.Errorf("%w: session %q declares tag %d twice", ErrSlot, o.Name, s.Tag)
			}
		}
		total += s.Length + messageCost
	}
	if o.ReceiveBytes < 0 || o.ReceiveBytes > maxReceiveBytes {
		return fmt.Errorf("p2psap: session %q asks for a receive queue of %d bytes; 0 to %d are allowed", o.Name, o.ReceiveBytes, int64(maxReceiveBytes))
	}
	if o.ReceiveBytes == 0 {
		o.ReceiveBytes = min(max(4*total, minReceiveBytes), maxReceiveBytes)
	}
	return nil
}

// disagreements lists what the two ends of a session want differently.
func disagreements(mine, theirs *open) string {
	var d []string
	if mine.Mode != theirs.Mode {
		d = append(d, fmt.Sprintf("mode: this end is %v, the peer %v", mine.Mode, theirs.Mode))
	} else if sameRail(mine, theirs) && !slices.Equal(mine.Protocols, theirs.Protocols) {
		d = append(d, fmt.Sprintf("composition: this end has %s, the peer %s",
			strings.Join(mine.Protocols, "+"), strings.Join(theirs.Protocols, "+")))
	} else if p := disagreeOnProtection(mine, theirs); p != "" {
		d = append(d, p)
	} else if sameRail(mine, theirs) && mine.Fingerprint != theirs.Fingerprint {
		d = append(d, fmt.Sprintf("header layout or versions of micro-protocols: this end has %016x, the peer %016x", mine.Fingerprint, theirs.Fingerprint))
	}
	find := func(o *open, t Tag) int {
		for _, s := range o.Slots {
			if s.Tag == t {
				return s.Length
			}
		}
		return 0
	}
	for _, s := range mine.Slots {
		if l := find(theirs, s.Tag); l == 0 {
			d = append(d, fmt.Sprintf("slot %d: the peer does not declare it", s.Tag))
		} else if l != s.Length {
			d = append(d, fmt.Sprintf("slot %d: this end has %d bytes, the peer %d", s.Tag, s.Length, l))
		}
	}
	for _, s := range theirs.Slots {
		if find(mine, s.Tag) == 0 {
			d = append(d, fmt.Sprintf("slot %d: only the peer declares it", s.Tag))
		}
	}
	text := strings.Join(d, "; ")
	return text[:min(len(text), maxReasonBytes)]
}

// match brings the two ends' wishes together.
func (n *Node) match(now microproto.Instant, s *session, theirs open) {
	s.theirs = theirs
	p := s.peer
	refuse := func(reason string) {
		n.end(now, s, &RefusedError{Peer: p.name, Session: s.options.Name, Reason: reason})
	}
	if d := disagreements(&s.mine, &theirs); d != "" {
		refuse(d)
		return
	}
	err := n.ready(now, s)
	if err != nil {
		n.post(p, kindReject, &reject{To: theirs.Session, From: s.id, Reason: err.Error()})
		refuse(err.Error())
		return
	}
	s.state = SessionAgreed
	n.post(p, kindOpenAck, s.agreed())
}

// agreed is what this end takes the two to have agreed on.
func (s *session) agreed() *openAck {
	return &openAck{
		To: s.theirs.Session, From: s.id, FrameBytes: uint32(s.channel.frameBytes), Network: s.conditions.Network,
		Fingerprint: s.channel.composite.Fingerprint(),
	}
}

// ready makes the composite that the ends have agreed on. When one of them does not know
// yet that a rail is there, or that it is not any more, both take the base link.
func (n *Node) ready(now microproto.Instant, s *session) error {
	by, said, frame := n.by(s.peer.way(s.mine.Network)), s.mine, min(s.mine.FrameBytes, s.theirs.FrameBytes)
	if by.way != nil {
		by.dead = by.dead || by.round != said.Round
		by.round = said.Round
	}
	if !sameRail(&said, &s.theirs) {
		by, frame = n.by(nil), min(s.mine.BaseBytes, s.theirs.BaseBytes)
	}
	if s.conditions.Network != by.rail.network {
		err := n.propose(s, by.way)
		if s.mine = said; err != nil { // the other end may have to compare with it again
			return err
		}
	}
	c := &channel{conditions: s.conditions, composition: s.composition, frameBytes: int(frame), ride: by}
	if err := n.compose(s, c, &s.theirs); err != nil {
		return err
	}
	if err := s.declare(c); err != nil {
		return err
	}
	s.channel = c
	s.legacy.Credit, s.granted = uint64(s.options.ReceiveBytes), s.theirs.ReceiveBytes
	if err := n.raiseShield(now, s, c); err != nil {
		n.discard(now, s)
		return err
	}
	if err := n.openComposite(now, s, c); err != nil {
		n.discard(now, s)
		return err
	}
	n.settle(now, s, c, nil, -1)
	return nil
}

// takeOpen: the peer wants a session.
func (n *Node) takeOpen(now microproto.Instant, p *peer, o open) {
	if m := &p.measure; m.sent != 0 {
		m.seem(now.Sub(m.sent))
	}
	for _, s := range n.sessions {
		if s != nil && s.peer == p && s.state == SessionOpening && s.options.Name == o.Name {
			n.match(now, s, o)
			return
		}
	}
	for i := range p.opens {
		if p.opens[i].Name == o.Name {
			p.opens[i] = o // it closed the earlier one; only one of a name can be meant
			return
		}
	}
	if len(p.opens) >= n.config.Limits.PendingOpens {
		n.post(p, kindReject, &reject{To: o.Session, Reason: fmt.Sprintf("%d sessions wait to be opened at the other end", len(p.opens))})
		return
	}
	p.opens = append(p.opens, o)
}

// takeOpenAck: the peer is ready.
func (n *Node) takeOpenAck(now microproto.Instant, p *peer, a openAck) {
	s := n.session(a.To)
	if s == nil || s.peer != p || s.state != SessionAgreed || s.theirs.Session != a.From {
		return // of a session that was closed meanwhile
	}
	mine := s.agreed()
	if a.FrameBytes != mine.FrameBytes && a.Network == mine.Network {
		n.end(now, s, &RefusedError{Peer: p.name, Session: s.options.Name,
			Reason: fmt.Sprintf("frame size: this end has agreed on %d bytes, the peer on %d", s.channel.frameBytes, a.FrameBytes)})
		return
	}
	if a.Network != mine.Network || a.Fingerprint != mine.Fingerprint {
		n.end(now, s, &RefusedError{Peer: p.name, Session: s.options.Name,
			Reason: fmt.Sprintf("network or header layout: this end has agreed on %v and %016x, the peer on %v and %016x", mine.Network, mine.Fingerprint, a.Network, a.Fingerprint)})
		return
	}
	s.state = SessionOpen
	n.out = append(n.out, Output{Kind: OutOpened, Session: s.id, Peer: p.name})
	n.touch(s)
	n.reroute(now, s)
}

// takeReject: the peer cannot.
func (n *Node) takeReject(now microproto.Instant, p *peer, j reject) {
	if s := n.session(j.To); s != nil && s.peer == p {
		n.end(now, s, &RefusedError{Peer: p.name, Session: s.options.Name, Reason: "the peer says: " + j.Reason})
	}
}
