package p2psap

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/p2pdc/p2pdc/microproto"
	"github.com/p2pdc/p2pdc/p2psap/internal/control"
	"github.com/p2pdc/p2pdc/p2psap/internal/rail"
)

// Open starts a session with a peer that is up. OutOpened reports that both ends have agreed,
// OutEnded that they do not match; State returns the state meanwhile. In either case Close gives
// the session's number back.
//
// Opening is symmetric: both ends open the same name, each sends its proposal, and each computes
// the agreement from the two messages by the same rule. A session is open at an end that has
// received the other end's OpenAck.
func (n *Node) Open(now microproto.Instant, name string, o OpenOptions) (SessionID, error) {
	p := n.peer(name)
	switch {
	case n.closed:
		return 0, ErrClosed
	case p == nil || p.State == control.New:
		return 0, fmt.Errorf("session %q: peer %q: %w: connect first", o.Name, name, ErrNotConnected)
	case p.State != control.Up:
		return 0, p.Err
	}
	if err := o.check(); err != nil {
		return 0, err
	}
	for _, s := range n.sessions {
		if s != nil && s.peer == p && s.options.Name == o.Name && s.state != SessionEnded && s.state != SessionClosing {
			return 0, fmt.Errorf("%w: %q with %q (%v)", ErrOpen, o.Name, name, s.state)
		}
	}
	id, err := n.allocate()
	if err != nil {
		return 0, err
	}
	s := &session{id: id, peer: p, state: SessionOpening, options: o}
	s.info.LocalityReason = p.finding.Reason
	n.lastPort++
	if n.lastPort == 0 {
		n.lastPort = 1
	}
	s.mine = control.Open{
		Session: uint32(id), Name: o.Name, Mode: o.Mode, Port: n.lastPort, BaseBytes: uint32(n.frameBytes(p, nil, o.Mode)),
		ReceiveBytes: uint64(o.ReceiveBytes), Slots: o.slots(),
	}
	s.sealed = n.protects(p)
	n.beginRecords(s)
	if err := n.propose(s, p.pathFor(&o, o.Mode, false)); err != nil {
		return 0, err
	}
	n.offerProtection(s)
	n.sessions[s.index()] = s
	n.reschedule = true
	n.send(p, control.KindOpen, &s.mine)
	if i := p.waiting(o.Name); i >= 0 {
		theirs := p.opens[i].Open
		p.opens = slices.Delete(p.opens, i, i+1)
		n.match(now, s, theirs)
	}
	return id, nil
}

// waiting returns the index in opens of the session of a name; -1: there is none.
func (p *peer) waiting(name string) int {
	return slices.IndexFunc(p.opens, func(o offer) bool { return o.Name == name })
}

// offer is a session that the other end has opened and this end has not.
type offer struct {
	control.Open
	returned bool // by Accept
}

// ReservedName is the beginning of the names of sessions that nodes open for themselves. Accept does not return them.
const ReservedName = "p2psap/"

// Accept returns a session that a peer has opened and this end has not, as the peer's name and the options with
// which Open opens it here; every session once. match selects by the session's name. ok is false if there is
// none; OutOffered and OutPeerUp report that there may be one.
func (n *Node) Accept(match func(name string) bool) (peer string, o OpenOptions, ok bool) {
	for _, p := range n.peers {
		for i := range p.opens {
			f := &p.opens[i]
			if p.State != control.Up || f.returned || strings.HasPrefix(f.Name, ReservedName) || !match(f.Name) {
				continue
			}
			f.returned = true
			o = OpenOptions{Name: f.Name, Mode: f.Mode}
			for _, s := range f.Slots {
				o.Slots = append(o.Slots, SlotSpec{Tag: Tag(s.Tag), Length: int(s.Length)})
			}
			return p.Name, o, true
		}
	}
	return "", OpenOptions{}, false
}

// Refuse refuses a session that a peer has opened and this end has not: the peer's Open fails with the reason.
func (n *Node) Refuse(name, session, reason string) error {
	p := n.peer(name)
	if p == nil {
		return fmt.Errorf("session %q: peer %q: %w", session, name, ErrNotConnected)
	}
	i := p.waiting(session)
	if i < 0 {
		return fmt.Errorf("p2psap: peer %q has opened no session %q that waits", name, session)
	}
	to := p.opens[i].Session
	p.opens = slices.Delete(p.opens, i, i+1)
	n.send(p, control.KindReject, &control.Reject{
		Ends: control.Ends{To: to}, Reason: reason[:min(len(reason), control.MaxReason)],
	})
	return nil
}

// propose fills in this end's proposal of a session over a path; nil: over the base rail.
func (n *Node) propose(s *session, w *rail.Path) (err error) {
	by := n.bind(w)
	s.conditions = Conditions{Mode: s.options.Mode, Locality: s.peer.finding.Locality, Network: by.Rail.Network}
	if s.composition, err = n.compose(s.conditions); err != nil {
		return err
	}
	frame := n.frameBytes(s.peer, w, s.options.Mode)
	m := &s.mine
	m.Network, m.Round = s.conditions.Network, by.Round
	m.Protocols = s.composition.Protocols
	m.FrameBytes = uint32(frame)
	// The two ends compare the composite itself, its header layout included.
	c := &channel{conditions: s.conditions, composition: s.composition, frameBytes: frame, Binding: by}
	if err := n.build(s, c, &control.Open{ReceiveBytes: m.ReceiveBytes}); err != nil {
		return err
	}
	m.Fingerprint = c.composite.Fingerprint()
	return nil
}

// compose returns the policy's composition if the catalog lists all of it.
func (n *Node) compose(c Conditions) (Composition, error) {
	composition, err := n.config.Policy.Compose(c)
	if err != nil {
		return Composition{}, err
	}
	return composition, Missing(n.config.Catalog, composition)
}

// sameRail reports whether the two ends propose the same rail, in the same round of its path.
func sameRail(mine, theirs *control.Open) bool {
	return mine.Network == theirs.Network && mine.Round == theirs.Round
}

func (o *OpenOptions) slots() (out []control.Slot) {
	for _, s := range o.Slots {
		out = append(out, control.Slot{Tag: uint32(s.Tag), Length: uint32(s.Length)})
	}
	return out
}

// check refuses options that cannot work, fills defaults in and copies what the caller might change.
func (o *OpenOptions) check() error {
	if o.Name == "" || len(o.Name) > control.MaxName {
		return fmt.Errorf("p2psap: the name of a session must have 1 to %d bytes; %q has %d",
			control.MaxName, o.Name, len(o.Name))
	}
	if o.Mode != microproto.ModeSynchronous && o.Mode != microproto.ModeAsynchronous {
		return fmt.Errorf("p2psap: session %q has mode %d; it must be sync or async", o.Name, o.Mode)
	}
	if o.Network != 0 && !o.Network.Valid() {
		return fmt.Errorf("p2psap: session %q asks for network %d; see Network", o.Name, o.Network)
	}
	if o.Class > ClassBulk {
		return fmt.Errorf("p2psap: session %q has class %d; see Class", o.Name, o.Class)
	}
	if len(o.Slots) > control.MaxSlots {
		return fmt.Errorf("p2psap: session %q declares %d slots; at most %d are allowed",
			o.Name, len(o.Slots), control.MaxSlots)
	}
	if o.Mode == microproto.ModeAsynchronous && len(o.Slots) == 0 {
		return fmt.Errorf("p2psap: session %q is asynchronous and declares no slot: "+
			"its values need places to go", o.Name)
	}
	o.Slots = slices.Clone(o.Slots)
	o.Options = maps.Clone(o.Options)
	total := 0
	for i, s := range o.Slots {
		if s.Length <= 0 || s.Length > control.MaxSlotBytes ||
			(o.Mode == microproto.ModeAsynchronous && s.Length%8 != 0) {
			return fmt.Errorf("%w: session %q, tag %d: length %d; it must be 1 to %d bytes, "+
				"and a multiple of 8 when asynchronous", ErrSlot, o.Name, s.Tag, s.Length, control.MaxSlotBytes)
		}
		for _, t := range o.Slots[:i] {
			if s.Tag == t.Tag {
				return fmt.Errorf("%w: session %q declares tag %d twice", ErrSlot, o.Name, s.Tag)
			}
		}
		total += s.Length + messageCost
	}
	if o.ReceiveBytes < 0 || o.ReceiveBytes > control.MaxQueueBytes {
		return fmt.Errorf("p2psap: session %q asks for a receive queue of %d bytes; 0 to %d are allowed",
			o.Name, o.ReceiveBytes, int64(control.MaxQueueBytes))
	}
	if o.ReceiveBytes == 0 {
		o.ReceiveBytes = min(max(4*total, minReceiveBytes), control.MaxQueueBytes)
	}
	return nil
}

// differences lists the fields in which the proposals of the two ends differ.
func differences(mine, theirs *control.Open) string {
	var d []string
	if mine.Mode != theirs.Mode {
		d = append(d, fmt.Sprintf("mode: this end is %v, the peer %v", mine.Mode, theirs.Mode))
	} else if sameRail(mine, theirs) && !slices.Equal(mine.Protocols, theirs.Protocols) {
		d = append(d, control.CompositionsDiffer(mine.Protocols, theirs.Protocols))
	} else if p := protectionDiffers(mine, theirs); p != "" {
		d = append(d, p)
	} else if sameRail(mine, theirs) && mine.Fingerprint != theirs.Fingerprint {
		d = append(d, control.LayoutsDiffer(mine.Fingerprint, theirs.Fingerprint))
	}
	find := func(o *control.Open, tag uint32) uint32 {
		for _, s := range o.Slots {
			if s.Tag == tag {
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
	return text[:min(len(text), control.MaxReason)]
}

// match computes the agreement from both ends' Opens.
func (n *Node) match(now microproto.Instant, s *session, theirs control.Open) {
	s.theirs = theirs
	if d := differences(&s.mine, &theirs); d != "" {
		n.end(now, s, s.refused(d))
		return
	}
	if err := n.agree(now, s); err != nil {
		n.send(s.peer, control.KindReject, &control.Reject{Ends: s.ends(), Reason: err.Error()})
		n.end(now, s, s.refused(err.Error()))
		return
	}
	s.state = SessionAgreed
	n.send(s.peer, control.KindOpenAck, s.agreement())
}

func (s *session) agreement() *control.OpenAck {
	return &control.OpenAck{
		Ends: s.ends(), FrameBytes: uint32(s.channel.frameBytes), Network: s.conditions.Network,
		Fingerprint: s.channel.composite.Fingerprint(),
	}
}

// agree builds and opens the channel on which the ends have agreed. When one of them does not know
// yet that a path is up, or that it is down, both take the base rail.
func (n *Node) agree(now microproto.Instant, s *session) error {
	said, frame := s.mine, min(s.mine.FrameBytes, s.theirs.FrameBytes)
	by := n.bind(s.peer.paths.Find(said.Network))
	if by.Path != nil {
		by.Over = by.Over || by.Round != said.Round
		by.Round = said.Round
	}
	if !sameRail(&said, &s.theirs) {
		by, frame = n.bind(nil), min(s.mine.BaseBytes, s.theirs.BaseBytes)
	}
	if s.conditions.Network != by.Rail.Network {
		err := n.propose(s, by.Path)
		if s.mine = said; err != nil { // the other end may have to compare with it again
			return err
		}
	}
	c := &channel{conditions: s.conditions, composition: s.composition, frameBytes: int(frame), Binding: by}
	if err := n.rebuild(s, c); err != nil {
		return err
	}
	s.channel = c
	s.handover.Credit, s.granted = uint64(s.options.ReceiveBytes), s.theirs.ReceiveBytes
	err := n.secure(now, s, c)
	if err == nil {
		err = c.composite.Open(now)
	}
	if err != nil {
		n.discard(now, s)
		return err
	}
	n.recordEpoch(now, s, c, 0, false)
	n.collect(now, s, c, nil, -1)
	return nil
}

// receiveOpen takes the other end's proposal of a session.
func (n *Node) receiveOpen(now microproto.Instant, p *peer, o *control.Open) {
	p.measurement.EstimatePending(now)
	for _, s := range n.sessions {
		if s != nil && s.peer == p && s.state == SessionOpening && s.options.Name == o.Name {
			n.match(now, s, *o)
			return
		}
	}
	if i := p.waiting(o.Name); i >= 0 {
		p.opens[i] = offer{Open: *o} // the peer closed the earlier one: names are unique
		n.out = append(n.out, Output{Kind: OutOffered, Peer: p.Name})
		return
	}
	if len(p.opens) >= n.config.Limits.PendingOpens {
		reason := fmt.Sprintf("%d sessions wait to be opened at the other end", len(p.opens))
		n.send(p, control.KindReject, &control.Reject{Ends: control.Ends{To: o.Session}, Reason: reason})
		return
	}
	p.opens = append(p.opens, offer{Open: *o})
	n.out = append(n.out, Output{Kind: OutOffered, Peer: p.Name})
}

// receiveOpenAck opens a session whose other end is ready.
func (n *Node) receiveOpenAck(now microproto.Instant, p *peer, a *control.OpenAck) {
	s := n.session(SessionID(a.To))
	if !s.isOf(p, a.From) || s.state != SessionAgreed {
		return // of a session that was closed meanwhile
	}
	mine := s.agreement()
	if a.FrameBytes != mine.FrameBytes && a.Network == mine.Network {
		n.end(now, s, s.refused(fmt.Sprintf("frame size: this end has agreed on %d bytes, the peer on %d",
			mine.FrameBytes, a.FrameBytes)))
		return
	}
	if a.Network != mine.Network || a.Fingerprint != mine.Fingerprint {
		n.end(now, s, s.refused(fmt.Sprintf(
			"network or header layout: this end has agreed on %v and %016x, the peer on %v and %016x",
			mine.Network, mine.Fingerprint, a.Network, a.Fingerprint)))
		return
	}
	s.state = SessionOpen
	n.report(OutOpened, s, nil)
	n.notify(s)
	n.reroute(now, s)
}

// receiveReject ends a session that the other end cannot open, or go on with.
func (n *Node) receiveReject(now microproto.Instant, p *peer, j *control.Reject) {
	if s := n.session(SessionID(j.To)); s != nil && s.peer == p {
		n.end(now, s, s.refused("the peer says: "+j.Reason))
	}
}
