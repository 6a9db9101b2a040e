package p2psap

import (
	"bytes"
	"fmt"

	"github.com/p2pdc/p2pdc/microproto"
	"github.com/p2pdc/p2pdc/microproto/seal"
)

// Protection says which sessions of a node have their frames encrypted and
// authenticated. Both ends of a session must come to the same.
type Protection uint8

// The choices. ProtectDefault is ProtectAuto for a node that has entropy, and
// ProtectNever for one that has not.
const (
	ProtectDefault Protection = iota
	ProtectAuto               // between hosts, not inside one
	ProtectAlways
	ProtectNever
)

func (p Protection) String() string {
	names := [...]string{"default", "auto", "always", "never"}
	if int(p) < len(names) {
		return names[p]
	}
	return "protection?"
}

// ParseProtection reads "auto", "always" or "never".
func ParseProtection(s string) (Protection, error) {
	for p := ProtectAuto; p <= ProtectNever; p++ {
		if s == p.String() {
			return p, nil
		}
	}
	return 0, fmt.Errorf("p2psap: protection %q: want auto, always or never", s)
}

// Entropy fills b with random bytes that nobody else can guess: crypto/rand in real
// time, a seeded source in virtual time.
type Entropy func(b []byte)

// randomBytes is what each end of a session contributes to its secret.
const randomBytes = 32

// sealBytes is what protection takes of a frame beside the session header.
const sealBytes = seal.NumberBytes + seal.TagBytes

// checkProtection settles what a node's configuration means.
func checkProtection(c *NodeConfig) error {
	switch {
	case c.Protect > ProtectNever:
		return fmt.Errorf("p2psap: node %q: protection %d: want ProtectAuto, ProtectAlways or ProtectNever", c.Name, c.Protect)
	case c.Protect == ProtectDefault && c.Entropy != nil:
		c.Protect = ProtectAuto
	case c.Protect == ProtectDefault:
		c.Protect = ProtectNever
	case c.Protect != ProtectNever && c.Entropy == nil:
		return fmt.Errorf("p2psap: node %q: protection %v needs a control channel that nobody else can read, and a source of entropy for its keys", c.Name, c.Protect)
	}
	return nil
}

// protects tells whether sessions with a peer are sealed. Both ends see the same two
// host identities, so they differ only if they were configured differently.
func (n *Node) protects(p *peer) bool {
	mine, theirs := &p.evidence.Local, &p.evidence.Remote
	return n.config.Protect == ProtectAlways ||
		n.config.Protect == ProtectAuto && (mine.Host == "" || mine.Host != theirs.Host)
}

// offerProtection is this end's part of a session's secret. It travels over the
// control channel, which nobody else can read.
func (n *Node) offerProtection(s *session) {
	s.mine.Protect, s.sealed = n.config.Protect, n.protects(s.peer)
	if s.sealed {
		s.mine.Random = make([]byte, randomBytes)
		n.config.Entropy(s.mine.Random)
	}
}

// disagreeOnProtection names what differs; empty: nothing.
func disagreeOnProtection(mine, theirs *open) string {
	if len(mine.Random) == len(theirs.Random) {
		return ""
	}
	word := func(o *open) string {
		if len(o.Random) > 0 {
			return fmt.Sprintf("on (%v)", o.Protect)
		}
		return fmt.Sprintf("off (%v)", o.Protect)
	}
	return fmt.Sprintf("protection: this end has it %s, the peer %s", word(mine), word(theirs))
}

// shield is what the sealing composites of a session have in common: each epoch has
// its own, with its own keys, and the numbers go on.
type shield struct {
	theirs []byte      // the other end's contribution to the secret
	secret seal.Secret // of the session
	flow   seal.Flow
	seen   seal.Counts
	out    []microproto.Output
	opened []microproto.Frame
}

// lower changes the configuration of a session's CTP* composite to stand on the
// sealing one, and returns what stands at its front.
func (n *Node) lower(s *session, c *microproto.Config) []microproto.MicroProtocol {
	if !s.sealed {
		return []microproto.MicroProtocol{sessionHeader{}}
	}
	c.Gather = 0 // sealing writes new payloads anyway
	c.MTU -= HeaderBytes + sealBytes
	c.Train = max(0, c.Train-microproto.MaxTrain*(HeaderBytes+sealBytes))
	c.Headroom += HeaderBytes + seal.NumberBytes
	c.Frames = roomyFrames{c.Frames}
	return nil
}

// roomyFrames lends frames with room for the sealing composite's header and tag.
type roomyFrames struct{ below microproto.FrameSource }

// Acquire implements microproto.FrameSource.
func (r roomyFrames) Acquire(n int) microproto.Frame {
	const front = HeaderBytes + seal.NumberBytes
	f := r.below.Acquire(front + n + seal.TagBytes)
	if len(f.Data) < front+n+seal.TagBytes {
		f.Release()
		return microproto.Frame{}
	}
	return f.Slice(front, front+n)
}

// raiseShield makes the sealing composite of a channel; nothing to do for a session
// that is not sealed. Channels are numbered without wrapping, so that no key comes twice.
func (n *Node) raiseShield(now microproto.Instant, s *session, c *channel) error {
	if !s.sealed {
		return nil
	}
	h := s.shield
	if h == nil || !bytes.Equal(h.theirs, s.theirs.Random) {
		h = &shield{theirs: s.theirs.Random}
		var err error
		if h.secret, err = n.sessionSecret(s); err != nil {
			return err
		}
	}
	epoch := uint64(c.number)
	out, err := h.secret.Derive(n.direction(n.config.Name, s.peer.name, s.id, s.theirs.Session, epoch))
	if err != nil {
		return err
	}
	in, err := h.secret.Derive(n.direction(s.peer.name, n.config.Name, s.theirs.Session, s.id, epoch))
	if err != nil {
		return err
	}
	if c.seal, err = n.sealer(s, c, &h.flow, out, in); err != nil {
		return err
	}
	s.shield = h
	return c.seal.Open(now)
}

// sealer builds the composite between CTP* and the link.
func (n *Node) sealer(s *session, c *channel, flow *seal.Flow, out, in seal.Secret) (*microproto.Composite, error) {
	return microproto.NewComposite(microproto.Config{
		Name: "seal " + s.options.Name + "@" + s.peer.name, Seed: n.config.Seed, MTU: c.frameBytes,
		Headroom: c.rail.link.Caps(c.mode()).Headroom, Frames: c.rail.link, Train: c.rail.link.Caps(c.mode()).Train,
		Limits: n.config.Limits.Composite, Tracer: n.tracer(s),
	}, &sealedHeader{c: c}, seal.NewAEAD(flow, out, in), seal.NewAntiReplay(flow))
}

// sessionSecret is made of what both ends have contributed, the lower name's first.
func (n *Node) sessionSecret(s *session) (seal.Secret, error) {
	a, b := s.mine.Random, s.theirs.Random
	if n.config.Name > s.peer.name {
		a, b = b, a
	}
	material := append(append([]byte(nil), a...), b...)
	return seal.Extract(material, []byte("p2pdc session secret"))
}

// direction names one direction of one epoch of one session of one run, so that no
// other has its keys: a frame that is sent back, or comes from an earlier epoch or
// another session, does not pass.
func (n *Node) direction(from, to string, fromID, toID SessionID, epoch uint64) []byte {
	w := writer("p2pdc direction ")
	w.text(n.config.Run, maxNameBytes)
	w.text(from, maxNameBytes)
	w.text(to, maxNameBytes)
	w.u32(uint32(fromID))
	w.u32(uint32(toID))
	w.u64(epoch)
	return w
}

// sealedHeader writes the session header before the frame is authenticated with it.
type sealedHeader struct {
	c     *channel
	field microproto.Field
}

// Name implements microproto.MicroProtocol.
func (*sealedHeader) Name() string { return "SessionHeader" }

// Attach implements microproto.MicroProtocol.
func (h *sealedHeader) Attach(b *microproto.Binder) error {
	b.TakesTrains()
	h.field = b.Header(HeaderBytes)
	microproto.Bind(b, microproto.MessageFromUser, microproto.Early, func(_ *microproto.Exec, m *microproto.Message) {
		to := h.c.header
		to.sealed = true
		to.put(h.field.Bytes(m))
	})
	return nil
}

// sealFrame makes a frame of CTP* one for the link: its header is written and, in a
// sealed session, it is encrypted. False: there was no room; it is counted and gone.
func (n *Node) sealFrame(now microproto.Instant, s *session, c *channel, f *microproto.Frame) (bool, error) {
	if !s.sealed {
		c.header.putAll(f)
		return true, nil
	}
	h := s.shield
	err := c.seal.SubmitFrame(now, *f)
	h.out = c.seal.Drain(h.out[:0])
	if len(h.out) != 1 {
		n.counters.FramesDropped++
		return false, err
	}
	*f = h.out[0].Frame
	h.out[0] = microproto.Output{}
	return true, err
}

// openFrames takes the protection off a frame, or of several that came as one. What did
// not come from the other end in this form is counted and gone, and has changed nothing.
// The frames returned are valid until the next call for the session.
func (n *Node) openFrames(now microproto.Instant, s *session, c *channel, f microproto.Frame) []microproto.Frame {
	h, count := s.shield, uint64(f.Count())
	_ = c.seal.Input(now, f) // a composite that has failed opens nothing, and its session has ended
	h.out, h.opened = c.seal.Drain(h.out[:0]), h.opened[:0]
	for i := range h.out {
		if h.out[i].Kind == microproto.OutMessage {
			g := c.seal.RecycleFrame(h.out[i].Message)
			count -= min(count, uint64(g.Count()))
			h.opened = append(h.opened, g)
		}
	}
	clear(h.out)
	if count > 0 {
		k := h.flow.Counts()
		replayed, old, dropped := k.Replayed-h.seen.Replayed, k.Old-h.seen.Old, k.Dropped-h.seen.Dropped
		h.seen = k
		n.counters.FramesReplayed += replayed
		n.counters.FramesBeforeWindow += old
		n.counters.FramesDropped += dropped
		n.counters.FramesForged += count - min(count, replayed+old+dropped) // too short for header and tag, too
	}
	return h.opened
}

// lowerShield closes a channel's sealing composite; what outlives an epoch is kept.
func (n *Node) lowerShield(now microproto.Instant, c *channel) {
	if c.seal != nil {
		_ = c.seal.Close(now)
	}
}

// ProtectionStack names the micro-protocols of the composite that seals a session's
// frames, from top to bottom. It stands between CTP* and the link, apart from Table I.
func ProtectionStack() []string {
	var f seal.Flow
	return []string{
		(&sealedHeader{}).Name(), seal.NewAEAD(&f, seal.Secret{}, seal.Secret{}).Name(), seal.NewAntiReplay(&f).Name(),
	}
}

// appendProtection and parseProtection are the part of an Open that is about
// protection: the sender's wish, and its part of the secret.
func (o *open) appendProtection(w *writer) {
	w.u8(uint8(o.Protect))
	w.bytes(o.Random, randomBytes)
}

func (o *open) parseProtection(r *reader) {
	o.Protect, o.Random = Protection(r.u8()), r.bytes(randomBytes)
	if o.Protect < ProtectAuto || o.Protect > ProtectNever || len(o.Random) != 0 && len(o.Random) != randomBytes {
		r.bad = true
	}
}
