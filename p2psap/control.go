package p2psap

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"time"

	"github.com/p2pdc/p2pdc/microproto"
)

// MaxControlBytes bounds one message of the control channel. On a byte stream a
// message is preceded by its length, 4 bytes, big endian.
const MaxControlBytes = 64 << 10

// Bounds of what a control message may hold.
const (
	maxNameBytes   = 255
	maxReasonBytes = 4096
	maxOfferBytes  = 8 << 10
	maxProtocols   = 64
	maxSlots       = 4096
	maxAddresses   = 32
	maxRails       = 8
	maxRTT         = time.Hour
)

// controlMagic starts every message, so that a stranger's bytes are known at once.
const controlMagic = 0x5032 // "P2"

type controlKind uint8

const (
	kindHello     controlKind = iota + 1 // first on every connection, from the dialling end, then from the other
	kindHeartbeat                        // carries the acknowledgement, nothing else
	kindOpen
	kindOpenAck
	kindReject
	kindClose
	kindCloseAck
	kindGoodbye
	kindPing     // to be answered at once
	kindPong     // the answer
	kindMeasured // the smallest round trip that the sender has measured
	kindAdapt
	kindAdapted
	kindRail    // where a rail between the two stands at the sender
	kindDrained // what the other end started in the old epoch has arrived
	kindRefusal // in place of a hello: not now
	kindsEnd
)

func (k controlKind) String() string {
	names := [...]string{"", "hello", "heartbeat", "open", "open.ack", "reject", "close", "close.ack", "goodbye", "ping", "pong", "measured", "adapt", "adapted", "rail", "drained", "refusal"}
	if k > 0 && int(k) < len(names) {
		return names[k]
	}
	return "control?"
}

// sequenced tells whether a message is numbered and sent again after a reconnect.
func (k controlKind) sequenced() bool {
	return k != kindHello && k != kindHeartbeat && k != kindPing && k != kindPong && k != kindRefusal
}

// envelope is in front of every message:
//
//	magic    2 bytes "P2"
//	version  1 byte: ControlVersion
//	kind     1 byte
//	sequence 8 bytes: number of a sequenced message from 1; 0 for the others
//	ack      8 bytes: highest number received from the other end
type envelope struct {
	version       uint8
	kind          controlKind
	sequence, ack uint64
}

// ackOffset is where an envelope holds its acknowledgement.
const ackOffset = 12

type hello struct {
	Run         string
	Version     string // of the program
	Catalog     uint64 // fingerprint of the micro-protocols' names
	Name        string
	Incarnation uint64 // tells two lives of a node of that name apart
	Host        string
	Process     uint64
	Cluster     string
	Addresses   []netip.Prefix
	Network     Network
	Offer       []byte    // the link's
	Rails       []Network // those that the node has beside it, best first
}

type open struct {
	Session      SessionID // the sender's number
	Name         string
	Mode         microproto.Mode
	Protocols    []string
	Fingerprint  uint64 // of the composite
	Port         uint16
	FrameBytes   uint32 // largest frame of the link, as the sender sees it
	Network      Network
	Round        uint32 // of the rail, see way
	BaseBytes    uint32 // largest frame of the base link
	ReceiveBytes uint64
	Slots        []SlotSpec
	Protect      Protection // as the sender is configured
	Random       []byte     // its part of the session's secret; empty: frames are not protected
}

type openAck struct {
	To, From    SessionID
	FrameBytes  uint32 // agreed, as what follows
	Network     Network
	Fingerprint uint64
}

type reject struct {
	To, From SessionID
	Reason   string
}

// closing is the body of Close and CloseAck. To is 0 while unknown. Accepted is the
// number of the other end's transfer such that it and all before it are complete.
type closing struct {
	To, From SessionID
	Accepted uint64
}

// echo is the body of Ping and Pong.
type echo struct{ Number uint64 }

// measured is in nanoseconds.
type measured struct{ Least uint64 }

// cause tells who wants a change of composition.
type cause uint8

const (
	causeScheme  cause = iota + 1 // the user, with Adapt: it needs the wish of both ends
	causeContext                  // the monitor of the end that says so
	causeAccept                   // the answer to the other end's causeContext or causeRail
	causeRail                     // the session has to leave its rail, or can go back to a better one
)

// adapt is a wish for another composition, or the answer to one.
type adapt struct {
	To, From SessionID
	Epoch    uint8 // that the change would begin
	Cause    cause
	Mode     microproto.Mode
	Network  Network
	Round    uint32
	Distance Distance
	Lossy    bool
	Reason   string // why the sender cannot; "": it can, and the rest holds
	// What the sender has made of the conditions; see open.
	Protocols   []string
	Fingerprint uint64
	FrameBytes  uint32
	Sent        uint64 // transfers that it has started
}

// adapted tells that the sender takes frames of the new epoch, and no new messages of
// the old one.
type adapted struct {
	To, From       SessionID
	Epoch          uint8
	Sent           uint64 // transfers that it started before; asynchronous ones are complete
	Accepted       uint64 // transfers of the other end that are complete, after a synchronous epoch
	Stored, Credit uint64 // bytes of its queue that those took, and that the other end may take in all
}

// drained tells, before the sender begins the new epoch, that all of the old one has
// arrived. Only an epoch on a rail that may go down needs it.
type drained struct {
	To, From SessionID
	Epoch    uint8 // that the change would begin
}

// railState is where a rail stands in a round.
type railState uint8

const (
	railOffered railState = iota + 1 // here is my offer
	railReady                        // I have accepted yours
	railDown                         // this round has come to nothing, or is over
)

// standing tells where a rail between the two ends stands at the sender; see way.
type standing struct {
	Network Network
	Round   uint32
	State   railState
	Offer   []byte // of railOffered
	Reason  string // of railDown
}

// writer appends fields; texts past their bound are cut.
type writer []byte

func (w *writer) u8(v uint8)   { *w = append(*w, v) }
func (w *writer) u16(v uint16) { *w = binary.BigEndian.AppendUint16(*w, v) }
func (w *writer) u32(v uint32) { *w = binary.BigEndian.AppendUint32(*w, v) }
func (w *writer) u64(v uint64) { *w = binary.BigEndian.AppendUint64(*w, v) }
func (w *writer) bytes(b []byte, bound int) {
	b = b[:min(len(b), bound)]
	w.u16(uint16(len(b)))
	*w = append(*w, b...)
}
func (w *writer) text(s string, bound int) { w.bytes([]byte(s), bound) }

// reader takes fields; after the first error everything is zero.
type reader struct {
	b   []byte
	bad bool
}

func (r *reader) take(n int) []byte {
	if r.bad || len(r.b) < n {
		r.bad = true
		return nil
	}
	out := r.b[:n]
	r.b = r.b[n:]
	return out
}

func (r *reader) number(n int) (v uint64) {
	for _, c := range r.take(n) {
		v = v<<8 | uint64(c)
	}
	return v
}

func (r *reader) u8() uint8   { return uint8(r.number(1)) }
func (r *reader) u16() uint16 { return uint16(r.number(2)) }
func (r *reader) u32() uint32 { return uint32(r.number(4)) }
func (r *reader) u64() uint64 { return r.number(8) }

// bytes returns a copy.
func (r *reader) bytes(bound int) []byte {
	n := int(r.u16())
	if n > bound {
		r.bad = true
	}
	return append([]byte(nil), r.take(n)...)
}

func (r *reader) text(bound int) string { return string(r.bytes(bound)) }

// end reports what went wrong. Bytes left over are an error: one message has one
// encoding.
func (r *reader) end(k controlKind) error {
	if r.bad {
		return fmt.Errorf("%w: %v message too short or out of bounds", ErrMalformed, k)
	}
	if len(r.b) != 0 {
		return fmt.Errorf("%w: %v message with %d bytes too many", ErrMalformed, k, len(r.b))
	}
	return nil
}

func (e envelope) append(w *writer) {
	w.u16(controlMagic)
	w.u8(ControlVersion)
	w.u8(uint8(e.kind))
	w.u64(e.sequence)
	w.u64(e.ack)
}

// parseEnvelope splits a message. Of a Hello in another version it still gives the
// envelope, so that the mismatch can be named.
func parseEnvelope(b []byte) (envelope, *reader, error) {
	r := &reader{b: b}
	if len(b) > MaxControlBytes {
		return envelope{}, nil, fmt.Errorf("%w: control message of %d bytes, at most %d are allowed", ErrMalformed, len(b), MaxControlBytes)
	}
	magic := r.u16()
	e := envelope{version: r.u8(), kind: controlKind(r.u8())}
	e.sequence, e.ack = r.u64(), r.u64()
	switch {
	case r.bad || magic != controlMagic:
		return envelope{}, nil, fmt.Errorf("%w: not a control message", ErrMalformed)
	case e.version != ControlVersion:
		return e, nil, nil
	case e.kind < kindHello || e.kind >= kindsEnd:
		return envelope{}, nil, fmt.Errorf("%w: control message of kind %d", ErrMalformed, e.kind)
	case e.kind.sequenced() != (e.sequence != 0):
		return envelope{}, nil, fmt.Errorf("%w: %v message with sequence number %d", ErrMalformed, e.kind, e.sequence)
	}
	return e, r, nil
}
