package p2psap

import (
	"bytes"
	"encoding/binary"
	"fmt"

	"github.com/p2pdc/p2pdc/microproto"
	"github.com/p2pdc/p2pdc/p2psap/internal/control"
	"github.com/p2pdc/p2pdc/p2psap/internal/seal"
)

// Protection selects the sessions of a node whose frames are encrypted and authenticated. Both ends of
// a session must come to the same result.
type Protection uint8

// The choices. ProtectDefault is ProtectAuto for a node with entropy, and ProtectNever for one without.
const (
	ProtectDefault Protection = iota
	ProtectAuto               // sessions between hosts
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

// ParseProtection parses "auto", "always" or "never".
func ParseProtection(s string) (Protection, error) {
	for p := ProtectAuto; p <= ProtectNever; p++ {
		if s == p.String() {
			return p, nil
		}
	}
	return 0, fmt.Errorf("p2psap: protection %q: want auto, always or never", s)
}

// Entropy fills b with random bytes that nobody else can predict: crypto/rand in real time, a seeded
// source in virtual time.
type Entropy func(b []byte)

// sealBytes is the size of what protection adds to a frame beside the session header.
const sealBytes = seal.NumberBytes + seal.TagBytes

// checkProtection resolves ProtectDefault and refuses protection without keys.
func (c *NodeConfig) checkProtection() error {
	switch {
	case c.Protect > ProtectNever:
		return fmt.Errorf("p2psap: node %q: protection %d: want ProtectAuto, ProtectAlways or ProtectNever",
			c.Name, c.Protect)
	case c.Protect == ProtectDefault && c.Entropy != nil:
		c.Protect = ProtectAuto
	case c.Protect == ProtectDefault:
		c.Protect = ProtectNever
	case c.Protect != ProtectNever && c.Entropy == nil:
		return fmt.Errorf("p2psap: node %q: protection %v needs a control channel that nobody else can read, "+
			"and a source of entropy for its keys", c.Name, c.Protect)
	}
	return nil
}

// protects reports whether sessions with a peer are protected. Both ends have the same two host
// identities, so they differ only if they are configured differently.
func (n *Node) protects(p *peer) bool {
	local, remote := &p.evidence.Local, &p.evidence.Remote
	return n.config.Protect == ProtectAlways ||
		n.config.Protect == ProtectAuto && (local.Host == "" || local.Host != remote.Host)
}

// offerProtection adds this end's contribution to a session's secret to its Open. It travels over the
// control channel, which nobody else can read.
func (n *Node) offerProtection(s *session) {
	s.mine.Protect = uint8(n.config.Protect)
	if s.sealed {
		s.mine.Random = make([]byte, control.RandomBytes)
		n.config.Entropy(s.mine.Random)
	}
}

// protectionDiffers returns the difference between two Opens; "" for none.
func protectionDiffers(mine, theirs *control.Open) string {
	if len(mine.Random) == len(theirs.Random) {
		return ""
	}
	state := func(o *control.Open) string {
		if len(o.Random) > 0 {
			return fmt.Sprintf("on (%v)", Protection(o.Protect))
		}
		return fmt.Sprintf("off (%v)", Protection(o.Protect))
	}
	return fmt.Sprintf("protection: this end has it %s, the peer %s", state(mine), state(theirs))
}

// securityContext is what the sealing composites of a session share. Each epoch has its own composite
// with its own keys; the numbers of frames continue.
type securityContext struct {
	theirs []byte      // the other end's contribution to the secret
	secret seal.Secret // of the session
	flow   seal.Flow
	seen   seal.Counts
	out    []microproto.Output
	opened []microproto.Frame
}

// placeHeader changes the configuration of a session's CTP* composite so that it fits above the sealing
// composite, and returns the micro-protocols in front of CTP*.
func (s *session) placeHeader(c *microproto.Config) []microproto.MicroProtocol {
	if !s.sealed {
		return []microproto.MicroProtocol{sessionHeader{}}
	}
	c.Gather = 0 // encryption writes new payloads anyway
	c.MTU -= HeaderBytes + sealBytes
	c.Train = max(0, c.Train-microproto.MaxTrain*(HeaderBytes+sealBytes))
	c.Headroom += HeaderBytes + seal.NumberBytes
	c.Frames = paddedFrames{c.Frames}
	return nil
}

// paddedFrames is a source of frames with room for the sealing composite's header and tag.
type paddedFrames struct{ below microproto.FrameSource }

func (r paddedFrames) Acquire(n int) microproto.Frame {
	const front = HeaderBytes + seal.NumberBytes
	f := r.below.Acquire(front + n + seal.TagBytes)
	if len(f.Data) < front+n+seal.TagBytes {
		f.Release()
		return microproto.Frame{}
	}
	return f.Slice(front, front+n)
}

// secure opens the sealing composite of a channel, if the session is protected. Epochs are numbered
// without wrapping here, so that no key is used twice.
func (n *Node) secure(now microproto.Instant, s *session, c *channel) error {
	if !s.sealed {
		return nil
	}
	h := s.security
	if h == nil || !bytes.Equal(h.theirs, s.theirs.Random) {
		h = &securityContext{theirs: s.theirs.Random}
		var err error
		if h.secret, err = n.sessionSecret(s); err != nil {
			return err
		}
	}
	mine, theirs, epoch := uint32(s.id), s.theirs.Session, uint64(c.number)
	out, err := h.secret.Derive(n.direction(n.config.Name, s.peer.Name, mine, theirs, epoch))
	if err != nil {
		return err
	}
	in, err := h.secret.Derive(n.direction(s.peer.Name, n.config.Name, theirs, mine, epoch))
	if err != nil {
		return err
	}
	if c.sealing, err = n.newSealing(s, c, &h.flow, out, in); err != nil {
		return err
	}
	s.security = h
	return c.sealing.Open(now)
}

func (n *Node) newSealing(s *session, c *channel, flow *seal.Flow, out, in seal.Secret) (*microproto.Composite, error) {
	caps := c.Rail.Link.Caps(c.mode())
	frames := microproto.FrameSource(c.Rail.Link)
	if caps.ReadOnly { // opened frames need memory, and a reliable link loses none
		frames = orHeap{frames}
	}
	return microproto.NewComposite(microproto.Config{
		Name: "seal " + s.options.Name + "@" + s.peer.Name, Seed: n.config.Seed, MTU: c.frameBytes,
		Headroom: caps.Headroom, Frames: frames, Train: caps.Train, ReadOnly: caps.ReadOnly,
		Limits: n.config.Limits.Composite, Tracer: n.tracer(c), Trace: c.trace,
	}, &sealedHeader{c: c}, seal.NewAEAD(flow, out, in), seal.NewAntiReplay(flow))
}

// orHeap is a source of frames that takes memory of the heap when the one below has none.
type orHeap struct{ below microproto.FrameSource }

func (s orHeap) Acquire(n int) microproto.Frame {
	f := s.below.Acquire(n)
	if len(f.Data) >= n {
		return f
	}
	f.Release()
	return microproto.NewBuffer(make([]byte, n), nil).Frame(0, 0, n)
}

// sessionSecret derives the session's secret from both ends' contributions, the lower name's first.
func (n *Node) sessionSecret(s *session) (seal.Secret, error) {
	a, b := s.mine.Random, s.theirs.Random
	if n.config.Name > s.peer.Name {
		a, b = b, a
	}
	material := append(append([]byte(nil), a...), b...)
	return seal.Extract(material, []byte("p2pdc session secret"))
}

// direction names one direction of one epoch of one session of one run. No other has its keys: a frame
// that is sent back, or comes from an earlier epoch or another session, does not pass.
func (n *Node) direction(from, to string, fromID, toID uint32, epoch uint64) []byte {
	b := control.AppendText([]byte("p2pdc direction "), n.config.Run)
	b = control.AppendText(b, from)
	b = control.AppendText(b, to)
	b = binary.BigEndian.AppendUint32(b, fromID)
	b = binary.BigEndian.AppendUint32(b, toID)
	return binary.BigEndian.AppendUint64(b, epoch)
}

// sealedHeader writes the session header before the frame is authenticated together with it.
type sealedHeader struct {
	c     *channel
	field microproto.Field
}

func (*sealedHeader) Name() string { return "SessionHeader" }

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

// sealFrame completes a frame of CTP* of a protected session for the link: it writes the header and encrypts. False:
// there was no memory; the frame is counted and dropped.
func (n *Node) sealFrame(now microproto.Instant, s *session, c *channel, f *microproto.Frame) (bool, error) {
	h := s.security
	err := c.sealing.SubmitFrame(now, *f)
	h.out = c.sealing.Drain(h.out[:0])
	if len(h.out) != 1 {
		n.counters.FramesDropped++
		return false, err
	}
	*f = h.out[0].Frame
	h.out[0] = microproto.Output{}
	return true, err
}

// openFrames decrypts a frame, or several that came as one. Frames that the other end did not send in
// this form are counted and dropped, and change nothing. The frames returned are valid until the next
// call for the session.
func (n *Node) openFrames(now microproto.Instant, s *session, c *channel, f microproto.Frame) []microproto.Frame {
	h, count := s.security, uint64(f.Count())
	_ = c.sealing.Input(now, f) // a composite that has failed decrypts nothing, and its session has ended
	h.out, h.opened = c.sealing.Drain(h.out[:0]), h.opened[:0]
	for i := range h.out {
		if h.out[i].Kind == microproto.OutMessage {
			g := c.sealing.RecycleFrame(h.out[i].Message)
			count -= min(count, uint64(g.Count()))
			h.opened = append(h.opened, g)
		}
	}
	clear(h.out)
	if count > 0 {
		n.countRefused(h, count)
	}
	return h.opened
}

// countRefused counts frames that were not decrypted. Frames too short for header and tag count as
// forged.
func (n *Node) countRefused(h *securityContext, count uint64) {
	k := h.flow.Counts()
	replayed, old, dropped := k.Replayed-h.seen.Replayed, k.Old-h.seen.Old, k.Dropped-h.seen.Dropped
	h.seen = k
	n.counters.FramesReplayed += replayed
	n.counters.FramesBeforeWindow += old
	n.counters.FramesDropped += dropped
	n.counters.FramesForged += count - min(count, replayed+old+dropped)
}

// ProtectionStack returns the names of the micro-protocols of the sealing composite, from top to
// bottom. It stands between CTP* and the link, apart from Table I.
func ProtectionStack() []string {
	var f seal.Flow
	return []string{
		(&sealedHeader{}).Name(), seal.NewAEAD(&f, seal.Secret{}, seal.Secret{}).Name(), seal.NewAntiReplay(&f).Name(),
	}
}
