package control

import (
	"fmt"
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
	KindHeartbeat                 // an acknowledgement alone
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

func (k Kind) String() string {
	names := [...]string{
		"", "hello", "heartbeat", "open", "open.ack", "reject", "close", "close.ack", "goodbye", "ping", "pong",
		"measured", "adapt", "adapted", "rail", "drained", "refusal",
	}
	if k > 0 && int(k) < len(names) {
		return names[k]
	}
	return "control?"
}

// sequenced reports whether messages of the kind are numbered.
func (k Kind) sequenced() bool {
	return k != KindHello && k != KindHeartbeat && k != KindPing && k != KindPong && k != KindRefusal
}

// newBody returns an empty body of the kind; nil if it has none.
func newBody(k Kind) Body {
	switch k {
	case KindHello:
		return new(Hello)
	case KindOpen:
		return new(Open)
	case KindOpenAck:
		return new(OpenAck)
	case KindReject:
		return new(Reject)
	case KindClose, KindCloseAck:
		return &Close{Ack: k == KindCloseAck}
	case KindPing, KindPong:
		return new(Echo)
	case KindMeasured:
		return new(Measured)
	case KindPropose:
		return new(Proposal)
	case KindSwitched:
		return new(Switched)
	case KindPath:
		return new(PathState)
	case KindDrained:
		return new(Drained)
	case KindRefusal:
		return new(Refusal)
	}
	return nil
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

func (h *Hello) append(w *writer) {
	w.text(h.Run, MaxName)
	w.text(h.Version, MaxName)
	w.u64(h.Catalog)
	w.text(h.Name, MaxName)
	w.u64(h.Incarnation)
	w.text(h.Host, MaxName)
	w.u64(h.Process)
	w.text(h.Cluster, MaxName)
	w.u8(uint8(len(h.Addresses)))
	for _, p := range h.Addresses {
		w.prefix(p)
	}
	w.u8(uint8(h.Network))
	w.bytes(h.Offer, MaxOffer)
	w.u8(uint8(len(h.Rails)))
	for _, r := range h.Rails {
		w.u8(uint8(r))
	}
}

func (h *Hello) parse(r *reader) {
	h.Run, h.Version = r.text(MaxName), r.text(MaxName)
	h.Catalog = r.u64()
	h.Name = r.text(MaxName)
	h.Incarnation = r.u64()
	h.Host = r.text(MaxName)
	h.Process = r.u64()
	h.Cluster = r.text(MaxName)
	for range r.count(1, MaxAddresses) {
		h.Addresses = append(h.Addresses, r.prefix())
	}
	h.Network = path.Network(r.u8())
	h.Offer = r.bytes(MaxOffer)
	for range r.count(1, MaxRails) {
		h.Rails = append(h.Rails, path.Network(r.u8()))
	}
}

func (h *Hello) check() string {
	if h.Name == "" || !h.Network.Valid() {
		return fmt.Sprintf("hello from peer %q over network %d", h.Name, h.Network)
	}
	for i, k := range h.Rails {
		if !k.Valid() || k == h.Network || slices.Contains(h.Rails[:i], k) {
			return fmt.Sprintf("hello from peer %q with the rails %d", h.Name, h.Rails)
		}
	}
	return ""
}

// Placement returns where the sender of a hello runs.
func (h *Hello) Placement() path.Placement {
	return path.Placement{Host: h.Host, Process: h.Process, Cluster: h.Cluster, Addresses: h.Addresses}
}

// Slot is a slot that the sender of an Open declares.
type Slot struct {
	Tag    uint32
	Length int // bytes
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

func (o *Open) append(w *writer) {
	w.u32(o.Session)
	w.text(o.Name, MaxName)
	w.u8(uint8(o.Mode))
	w.names(o.Protocols)
	w.u64(o.Fingerprint)
	w.u16(o.Port)
	w.u32(o.FrameBytes)
	w.u8(uint8(o.Network))
	w.u32(o.Round)
	w.u32(o.BaseBytes)
	w.u64(o.ReceiveBytes)
	w.u16(uint16(len(o.Slots)))
	for _, s := range o.Slots {
		w.u32(s.Tag)
		w.u32(uint32(s.Length))
	}
	w.u8(o.Protect)
	w.bytes(o.Random, RandomBytes)
}

func (o *Open) parse(r *reader) {
	o.Session = r.u32()
	o.Name = r.text(MaxName)
	o.Mode = microproto.Mode(r.u8())
	o.Protocols = r.names()
	o.Fingerprint = r.u64()
	o.Port = r.u16()
	o.FrameBytes = r.u32()
	o.Network = path.Network(r.u8())
	o.Round, o.BaseBytes = r.u32(), r.u32()
	o.ReceiveBytes = r.u64()
	n := r.count(2, MaxSlots)
	for i := 0; i < n && !r.bad; i++ {
		o.Slots = append(o.Slots, Slot{Tag: r.u32(), Length: r.count(4, MaxSlotBytes)})
	}
	o.Protect = r.u8()
	o.Random = r.bytes(RandomBytes)
	r.bad = r.bad || o.Protect < 1 || o.Protect > 3 || len(o.Random) != 0 && len(o.Random) != RandomBytes
}

func (o *Open) check() string {
	if o.Session == 0 || !validMode(o.Mode) || o.FrameBytes > maxFrameBytes || o.BaseBytes > maxFrameBytes ||
		o.ReceiveBytes > MaxQueueBytes || !o.Network.Valid() {
		return fmt.Sprintf("open of session %q with a field out of bounds", o.Name)
	}
	return ""
}

func validMode(m microproto.Mode) bool {
	return m == microproto.ModeSynchronous || m == microproto.ModeAsynchronous
}

// OpenAck reports that the sender is ready, and what it computed from both Opens.
type OpenAck struct {
	To, From    uint32
	FrameBytes  uint32
	Network     path.Network
	Fingerprint uint64
}

func (a *OpenAck) append(w *writer) {
	w.u32(a.To)
	w.u32(a.From)
	w.u32(a.FrameBytes)
	w.u8(uint8(a.Network))
	w.u64(a.Fingerprint)
}

func (a *OpenAck) parse(r *reader) {
	a.To, a.From = r.u32(), r.u32()
	a.FrameBytes = r.u32()
	a.Network = path.Network(r.u8())
	a.Fingerprint = r.u64()
}

// Reject reports that the sender cannot open, or go on with, a session.
type Reject struct {
	To, From uint32
	Reason   string
}

func (j *Reject) append(w *writer) {
	w.u32(j.To)
	w.u32(j.From)
	w.text(j.Reason, MaxReason)
}

func (j *Reject) parse(r *reader) {
	j.To, j.From = r.u32(), r.u32()
	j.Reason = r.text(MaxReason)
}

// Close ends a session, or acknowledges that. To is 0 while it is unknown. All transfers of the
// receiver up to number Accepted are complete.
type Close struct {
	To, From uint32
	Accepted uint64
	Ack      bool // the message is a KindCloseAck; not encoded
}

func (c *Close) append(w *writer) {
	w.u32(c.To)
	w.u32(c.From)
	w.u64(c.Accepted)
}

func (c *Close) parse(r *reader) {
	c.To, c.From = r.u32(), r.u32()
	c.Accepted = r.u64()
}

func (c *Close) check() string {
	if c.From != 0 {
		return ""
	}
	if c.Ack {
		return "close.ack of session 0"
	}
	return "close of session 0"
}

// Echo is the body of a ping, and of the pong that answers it.
type Echo struct{ Number uint64 }

func (e *Echo) append(w *writer) { w.u64(e.Number) }
func (e *Echo) parse(r *reader)  { e.Number = r.u64() }

// Measured reports the sender's smallest round trip, in nanoseconds.
type Measured struct{ MinRTT uint64 }

func (d *Measured) append(w *writer) { w.u64(d.MinRTT) }
func (d *Measured) parse(r *reader)  { d.MinRTT = r.u64() }

func (d *Measured) check() string {
	if d.MinRTT == 0 || d.MinRTT > uint64(path.MaxRTT) {
		return fmt.Sprintf("a smallest round trip of %d ns", d.MinRTT)
	}
	return ""
}

// Cause is the reason of a Proposal.
type Cause uint8

// The causes. Zero stands for no proposal.
const (
	CauseUser    Cause = iota + 1 // the sender's user asked for a mode; both ends must
	CauseMonitor                  // the sender measured other conditions
	CauseAccept                   // the answer to a CauseMonitor or CauseRail
	CauseRail                     // the session has to leave its rail, or can go to a better one
)

// Proposal asks for another composition, or answers such a message.
type Proposal struct {
	To, From uint32
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

func (a *Proposal) append(w *writer) {
	w.u32(a.To)
	w.u32(a.From)
	w.u8(a.Epoch)
	w.u8(uint8(a.Cause))
	w.u8(uint8(a.Mode))
	w.u8(uint8(a.Network))
	w.u32(a.Round)
	w.u8(uint8(a.Distance))
	w.bool(a.Lossy)
	w.text(a.Reason, MaxReason)
	w.names(a.Protocols)
	w.u64(a.Fingerprint)
	w.u32(a.FrameBytes)
	w.u64(a.Sent)
}

func (a *Proposal) parse(r *reader) {
	a.To, a.From = r.u32(), r.u32()
	a.Epoch = r.u8()
	a.Cause = Cause(r.u8())
	a.Mode = microproto.Mode(r.u8())
	a.Network = path.Network(r.u8())
	a.Round = r.u32()
	a.Distance = path.Distance(r.u8())
	a.Lossy = r.bool()
	a.Reason = r.text(MaxReason)
	a.Protocols = r.names()
	a.Fingerprint = r.u64()
	a.FrameBytes = r.u32()
	a.Sent = r.u64()
}

func (a *Proposal) check() string {
	if a.To == 0 || a.From == 0 || a.Cause < CauseUser || a.Cause > CauseRail || !a.Network.Valid() ||
		a.Distance > path.Far || !validMode(a.Mode) || a.FrameBytes > maxFrameBytes {
		return "adapt with a field out of bounds"
	}
	return ""
}

// Switched reports that the sender takes frames of the new epoch, and none of the old one.
type Switched struct {
	To, From uint32
	Epoch    uint8
	Sent     uint64 // transfers that the sender started before; asynchronous ones are complete
	Accepted uint64 // transfers of the receiver that are complete, after a synchronous epoch
	Stored   uint64 // bytes of the sender's queue that those took
	Credit   uint64 // bytes of that queue that the receiver may take in all
}

func (a *Switched) append(w *writer) {
	w.u32(a.To)
	w.u32(a.From)
	w.u8(a.Epoch)
	w.u64(a.Sent)
	w.u64(a.Accepted)
	w.u64(a.Stored)
	w.u64(a.Credit)
}

func (a *Switched) parse(r *reader) {
	a.To, a.From = r.u32(), r.u32()
	a.Epoch = r.u8()
	a.Sent, a.Accepted = r.u64(), r.u64()
	a.Stored, a.Credit = r.u64(), r.u64()
}

// Drained reports, before the sender begins a new epoch, that everything of the old one has
// arrived. Only an epoch on a rail that can go down needs it.
type Drained struct {
	To, From uint32
	Epoch    uint8 // that would begin
}

func (d *Drained) append(w *writer) {
	w.u32(d.To)
	w.u32(d.From)
	w.u8(d.Epoch)
}

func (d *Drained) parse(r *reader) {
	d.To, d.From = r.u32(), r.u32()
	d.Epoch = r.u8()
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

func (s *PathState) append(w *writer) {
	w.u8(uint8(s.Network))
	w.u32(s.Round)
	w.u8(uint8(s.Stage))
	w.bytes(s.Offer, MaxOffer)
	w.text(s.Reason, MaxReason)
}

func (s *PathState) parse(r *reader) {
	s.Network = path.Network(r.u8())
	s.Round = r.u32()
	s.Stage = Stage(r.u8())
	s.Offer = r.bytes(MaxOffer)
	s.Reason = r.text(MaxReason)
}

func (s *PathState) check() string {
	if !s.Network.Valid() || s.Round == 0 || s.Stage < Offered || s.Stage > Down ||
		s.Stage != Offered && len(s.Offer) > 0 {
		return "rail with a field out of bounds"
	}
	return ""
}

// Refusal ends a connection instead of a hello. Another attempt may succeed.
type Refusal struct{ Reason string }

func (a *Refusal) append(w *writer) { w.text(a.Reason, MaxReason) }
func (a *Refusal) parse(r *reader)  { a.Reason = r.text(MaxReason) }
