package control

import (
	"net/netip"
	"slices"

	"github.com/p2pdc/p2pdc/microproto"
	"github.com/p2pdc/p2pdc/p2psap/path"
)

// Kind is the kind of a message.
type Kind uint8

// The kinds. Of sequenced messages none is lost and none comes twice; the others are hello,
// heartbeat, ping, pong and refusal.
const (
	KindHello     Kind = iota + 1 // first on every connection, from the dialling end, then from the other
	KindHeartbeat                 // an acknowledgement, and what arrived
	KindOpen
	KindOpenAck
	KindReject
	KindClose
	KindCloseAck
	KindGoodbye  // the sender's node ends
	KindPing     // to be answered at once
	KindPong     // the answer
	KindMeasured // the sender's smallest round trip
	KindPropose
	KindSwitched
	KindPath
	KindDrained
	KindRefusal // instead of a hello
	kindsEnd
)

// kinds holds the name of each kind, and the function that returns an empty body; nil: it has none.
var kinds = [kindsEnd]struct {
	name string
	body func() Body
}{
	KindHello:     {"hello", empty[Hello]},
	KindHeartbeat: {"heartbeat", empty[Heartbeat]},
	KindOpen:      {"open", empty[Open]},
	KindOpenAck:   {"open.ack", empty[OpenAck]},
	KindReject:    {"reject", empty[Reject]},
	KindClose:     {"close", empty[Close]},
	KindCloseAck:  {"close.ack", func() Body { return &Close{Ack: true} }},
	KindGoodbye:   {"goodbye", nil},
	KindPing:      {"ping", empty[Echo]},
	KindPong:      {"pong", empty[Echo]},
	KindMeasured:  {"measured", empty[Measured]},
	KindPropose:   {"adapt", empty[Proposal]},
	KindSwitched:  {"adapted", empty[Switched]},
	KindPath:      {"rail", empty[PathState]},
	KindDrained:   {"drained", empty[Drained]},
	KindRefusal:   {"refusal", empty[Refusal]},
}

func empty[T any, P interface {
	*T
	Body
}]() Body {
	return P(new(T))
}

func (k Kind) String() string {
	if k > 0 && k < kindsEnd {
		return kinds[k].name
	}
	return "control?"
}

func (k Kind) sequenced() bool {
	return k != KindHello && k != KindHeartbeat && k != KindPing && k != KindPong && k != KindRefusal
}

// Hello introduces a node. A hello that refuses the other end has neither Offer nor
// Incarnation nor Host.
type Hello struct {
	Run         string
	Version     string // of the program
	Catalog     uint64 // fingerprint of the names of micro-protocols
	Name        string
	Incarnation uint64 // distinguishes the lives of a node of that name
	Host        string
	Process     uint64
	Cluster     string
	Addresses   []netip.Prefix
	Network     path.Network   // of the base rail
	Offer       []byte         // of the base rail's link
	Rails       []path.Network // of the other rails, best first
}

func (h *Hello) code(c *coder) {
	c.text(&h.Run, MaxName)
	c.text(&h.Version, MaxName)
	c.u64(&h.Catalog)
	c.text(&h.Name, MaxName)
	c.u64(&h.Incarnation)
	c.text(&h.Host, MaxName)
	c.u64(&h.Process)
	c.text(&h.Cluster, MaxName)
	list(c, 1, MaxAddresses, &h.Addresses, (*coder).prefix)
	code8(c, &h.Network)
	c.bytes(&h.Offer, MaxOffer)
	list(c, 1, MaxRails, &h.Rails, code8[path.Network])
	c.check(h.Name != "" && h.Network.Valid(), "hello from peer %q over network %d", h.Name, h.Network)
	for i, k := range h.Rails {
		c.check(k.Valid() && k != h.Network && !slices.Contains(h.Rails[:i], k),
			"hello from peer %q with the rails %d", h.Name, h.Rails)
	}
}

// Placement returns where the sender of a hello runs.
func (h *Hello) Placement() path.Placement {
	return path.Placement{Host: h.Host, Process: h.Process, Cluster: h.Cluster, Addresses: h.Addresses}
}

// Heartbeat reports how many frames of sessions the sender has received from this life of the other end over
// the base rail. Which are long is agreed by the version of the messages. Probes are long frames of no present epoch.
type Heartbeat struct{ ShortFrames, LongFrames, Probes uint64 }

// Total returns the number of frames.
func (h *Heartbeat) Total() uint64 { return h.ShortFrames + h.LongFrames }

func (h *Heartbeat) code(c *coder) {
	c.u64(&h.ShortFrames)
	c.u64(&h.LongFrames)
	c.u64(&h.Probes)
}

// Slot is a slot that the sender of an Open declares.
type Slot struct {
	Tag    uint32
	Length uint32 // bytes
}

// Open asks for a session.
type Open struct {
	Session      uint32 // the sender's number
	Name         string
	Mode         microproto.Mode
	Protocols    []string
	Fingerprint  uint64 // of the composite
	Port         uint16
	FrameBytes   uint32 // largest frame of the rail, as the sender sees it
	Network      path.Network
	Round        uint32 // of the path, see PathState
	BaseBytes    uint32 // largest frame of the base rail
	ReceiveBytes uint64
	Slots        []Slot
	Protect      uint8  // as the sender is configured: 1 auto, 2 always, 3 never
	Random       []byte // contribution to the session's secret; empty: frames are not protected
}

func (o *Open) code(c *coder) {
	c.u32(&o.Session)
	c.text(&o.Name, MaxName)
	code8(c, &o.Mode)
	c.names(&o.Protocols)
	c.u64(&o.Fingerprint)
	c.u16(&o.Port)
	c.u32(&o.FrameBytes)
	code8(c, &o.Network)
	c.u32(&o.Round)
	c.u32(&o.BaseBytes)
	c.u64(&o.ReceiveBytes)
	list(c, 2, MaxSlots, &o.Slots, func(c *coder, s *Slot) {
		c.u32(&s.Tag)
		c.u32(&s.Length)
	})
	code8(c, &o.Protect)
	c.bytes(&o.Random, RandomBytes)
	c.check(o.Session != 0 && validMode(o.Mode) && o.FrameBytes <= maxFrameBytes && o.BaseBytes <= maxFrameBytes &&
		o.ReceiveBytes <= MaxQueueBytes && o.Network.Valid() && o.Protect >= 1 && o.Protect <= 3 &&
		(len(o.Random) == 0 || len(o.Random) == RandomBytes) &&
		!slices.ContainsFunc(o.Slots, func(s Slot) bool { return s.Length > MaxSlotBytes }),
		"open of session %q with a field out of bounds", o.Name)
}

func validMode(m microproto.Mode) bool {
	return m == microproto.ModeSynchronous || m == microproto.ModeAsynchronous
}

// Ends are the numbers of a session at the receiver and at the sender of a message.
type Ends struct{ To, From uint32 }

func (e *Ends) code(c *coder) {
	c.u32(&e.To)
	c.u32(&e.From)
}

// OpenAck reports that the sender is ready, and what it computed from both Opens.
type OpenAck struct {
	Ends
	FrameBytes  uint32
	Network     path.Network
	Fingerprint uint64
}

func (a *OpenAck) code(c *coder) {
	a.Ends.code(c)
	c.u32(&a.FrameBytes)
	code8(c, &a.Network)
	c.u64(&a.Fingerprint)
}

// Reject reports that the sender cannot open, or go on with, a session.
type Reject struct {
	Ends
	Reason string
}

func (j *Reject) code(c *coder) {
	j.Ends.code(c)
	c.text(&j.Reason, MaxReason)
}

// Close ends a session, or acknowledges that. To is 0 while it is unknown. All transfers of the
// receiver up to number Accepted are complete.
type Close struct {
	Ends
	Accepted uint64
	Ack      bool // the message is a KindCloseAck; not encoded
}

func (x *Close) code(c *coder) {
	x.Ends.code(c)
	c.u64(&x.Accepted)
	kind := KindClose
	if x.Ack {
		kind = KindCloseAck
	}
	c.check(x.From != 0, "%v of session 0", kind)
}

// Echo is the body of a ping, and of the pong that answers it.
type Echo struct{ Number uint64 }

func (e *Echo) code(c *coder) { c.u64(&e.Number) }

// Measured reports the sender's smallest round trip, in nanoseconds.
type Measured struct{ MinRTT uint64 }

func (d *Measured) code(c *coder) {
	c.u64(&d.MinRTT)
	c.check(d.MinRTT > 0 && d.MinRTT <= uint64(path.MaxRTT), "a smallest round trip of %d ns", d.MinRTT)
}

// Cause is the reason of a Proposal.
type Cause uint8

// The causes. Zero stands for no proposal.
const (
	CauseUser     Cause = iota + 1 // the sender's user asked for a mode; both ends must
	CauseMonitor                   // the sender measured other conditions
	CauseAccept                    // the answer to a CauseMonitor or CauseRail
	CauseRail                      // the session has to leave its rail, or can go to a better one
	CauseWithdraw                  // the sender's CauseMonitor, which was answered too late, is void
)

// Proposal asks for another composition, or answers such a message.
type Proposal struct {
	Ends
	Epoch    uint8 // that would begin
	Cause    Cause
	Mode     microproto.Mode
	Network  path.Network
	Round    uint32
	Distance path.Distance
	Lossy    bool
	Reason   string // why the sender cannot; "": it can, and what follows holds
	// The channel that the sender built for the conditions; see Open.
	Protocols   []string
	Fingerprint uint64
	FrameBytes  uint32
	Sent        uint64 // transfers that the sender has started
}

func (a *Proposal) code(c *coder) {
	a.Ends.code(c)
	code8(c, &a.Epoch)
	code8(c, &a.Cause)
	code8(c, &a.Mode)
	code8(c, &a.Network)
	c.u32(&a.Round)
	code8(c, &a.Distance)
	c.bool(&a.Lossy)
	c.text(&a.Reason, MaxReason)
	c.names(&a.Protocols)
	c.u64(&a.Fingerprint)
	c.u32(&a.FrameBytes)
	c.u64(&a.Sent)
	c.check(a.To != 0 && a.From != 0 && a.Cause >= CauseUser && a.Cause <= CauseWithdraw && a.Network.Valid() &&
		a.Distance <= path.Far && validMode(a.Mode) && a.FrameBytes <= maxFrameBytes, "adapt with a field out of bounds")
}

// Switched reports that the sender takes frames of the new epoch, and none of the old one.
type Switched struct {
	Ends
	Epoch    uint8
	Sent     uint64 // transfers that the sender started before; asynchronous ones are complete
	Accepted uint64 // transfers of the receiver that are complete, after a synchronous epoch
	Stored   uint64 // bytes of the sender's queue that those took
	Credit   uint64 // bytes of that queue that the receiver may take in all
}

func (a *Switched) code(c *coder) {
	a.Ends.code(c)
	code8(c, &a.Epoch)
	c.u64(&a.Sent)
	c.u64(&a.Accepted)
	c.u64(&a.Stored)
	c.u64(&a.Credit)
}

// Drained reports, before the sender begins a new epoch, that everything of the old one has
// arrived. Only an epoch on a rail that can go down needs it.
type Drained struct {
	Ends
	Epoch uint8 // that would begin
}

func (d *Drained) code(c *coder) {
	d.Ends.code(c)
	code8(c, &d.Epoch)
}

// Stage is how far a path is in its round.
type Stage uint8

// The stages.
const (
	Offered Stage = iota + 1 // the sender makes its offer
	Ready                    // the sender accepted the receiver's offer
	Down                     // the round failed or is over
)

// PathState reports the state of a path at the sender; see package rail.
type PathState struct {
	Network path.Network
	Round   uint32
	Stage   Stage
	Offer   []byte // of Offered
	Reason  string // of Down
}

func (s *PathState) code(c *coder) {
	code8(c, &s.Network)
	c.u32(&s.Round)
	code8(c, &s.Stage)
	c.bytes(&s.Offer, MaxOffer)
	c.text(&s.Reason, MaxReason)
	c.check(s.Network.Valid() && s.Round != 0 && s.Stage >= Offered && s.Stage <= Down &&
		(s.Stage == Offered || len(s.Offer) == 0), "rail with a field out of bounds")
}

// Refusal ends a connection instead of a hello. Another attempt may succeed.
type Refusal struct{ Reason string }

func (a *Refusal) code(c *coder) { c.text(&a.Reason, MaxReason) }
