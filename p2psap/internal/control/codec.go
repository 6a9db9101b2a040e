package control

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
)

// MaxBytes bounds one message. On a byte stream a message is preceded by its length, 4 bytes,
// big endian.
const MaxBytes = 64 << 10

// Version is the version of the messages.
const Version = 5

// ErrMalformed is returned for bytes that no node of this version sends.
var ErrMalformed = errors.New("p2psap: malformed")

// Bounds of the fields of messages.
const (
	MaxName       = 255
	MaxReason     = 4096
	MaxOffer      = 8 << 10
	MaxProtocols  = 64
	MaxSlots      = 4096
	MaxSlotBytes  = 1 << 30
	MaxQueueBytes = 1 << 34 // of a receiver's queue
	MaxAddresses  = 32
	MaxRails      = 8  // beside the base rail
	RandomBytes   = 32 // contribution of each end to a session's secret
	maxFrameBytes = 1 << 30
)

// magic starts every message, so that foreign bytes are recognised at once.
const magic = 0x5032 // "P2"

// Message is a message whose body is not decoded. The envelope in front of the body is:
//
//	magic    2 bytes "P2"
//	version  1 byte: Version
//	kind     1 byte
//	sequence 8 bytes: number of a sequenced message from 1; 0 for the others
//	ack      8 bytes: highest number received from the other end
type Message struct {
	Version  uint8
	Kind     Kind
	Sequence uint64
	Ack      uint64
	body     []byte
}

// ackOffset is the offset of the acknowledgement in a message.
const ackOffset = 12

// Body is the body of a message: a pointer to one of the types of this package.
type Body interface {
	append(w *writer)
	parse(r *reader)
}

// checked is a Body whose fields have bounds beyond those that parse checks. check returns
// what is wrong with them, "" for nothing.
type checked interface{ check() string }

// Encode returns a message. The body of a heartbeat and of a goodbye is nil.
func Encode(k Kind, sequence, ack uint64, body Body) []byte {
	w := make(writer, 0, 64)
	w.u16(magic)
	w.u8(Version)
	w.u8(uint8(k))
	w.u64(sequence)
	w.u64(ack)
	if body != nil {
		body.append(&w)
	}
	return w
}

// Parse reads the envelope of a message. Of a message of another version it returns that
// version alone, so that the mismatch can be named.
func Parse(b []byte) (Message, error) {
	if len(b) > MaxBytes {
		return Message{}, fmt.Errorf("%w: control message of %d bytes, at most %d are allowed", ErrMalformed, len(b), MaxBytes)
	}
	r := &reader{b: b}
	mark := r.u16()
	m := Message{Version: r.u8(), Kind: Kind(r.u8())}
	m.Sequence, m.Ack = r.u64(), r.u64()
	m.body = r.b
	switch {
	case r.bad || mark != magic:
		return Message{}, fmt.Errorf("%w: not a control message", ErrMalformed)
	case m.Version != Version:
		return m, nil
	case m.Kind < KindHello || m.Kind >= kindsEnd:
		return Message{}, fmt.Errorf("%w: control message of kind %d", ErrMalformed, m.Kind)
	case m.Kind.sequenced() != (m.Sequence != 0):
		return Message{}, fmt.Errorf("%w: %v message with sequence number %d", ErrMalformed, m.Kind, m.Sequence)
	}
	return m, nil
}

// Decode returns the body of the message; nil for a heartbeat and a goodbye.
func (m *Message) Decode() (Body, error) {
	r := &reader{b: m.body}
	b := newBody(m.Kind)
	if b != nil {
		b.parse(r)
	}
	if err := r.end(m.Kind); err != nil {
		return nil, err
	}
	if c, ok := b.(checked); ok {
		if wrong := c.check(); wrong != "" {
			return nil, fmt.Errorf("%w: %s", ErrMalformed, wrong)
		}
	}
	return b, nil
}

// writer appends fields; texts beyond their bound are cut.
type writer []byte

func (w *writer) u8(v uint8)   { *w = append(*w, v) }
func (w *writer) u16(v uint16) { *w = binary.BigEndian.AppendUint16(*w, v) }
func (w *writer) u32(v uint32) { *w = binary.BigEndian.AppendUint32(*w, v) }
func (w *writer) u64(v uint64) { *w = binary.BigEndian.AppendUint64(*w, v) }

func (w *writer) bool(v bool) {
	if v {
		w.u8(1)
	} else {
		w.u8(0)
	}
}

func (w *writer) bytes(b []byte, bound int) {
	b = b[:min(len(b), bound)]
	w.u16(uint16(len(b)))
	*w = append(*w, b...)
}

func (w *writer) text(s string, bound int) { w.bytes([]byte(s), bound) }

func (w *writer) names(names []string) {
	w.u8(uint8(len(names)))
	for _, n := range names {
		w.text(n, MaxName)
	}
}

// prefix appends an address with its network: the length of the address (4 or 16), the bits of
// the prefix, the address.
func (w *writer) prefix(p netip.Prefix) {
	ip := p.Addr().AsSlice()
	w.u8(uint8(len(ip)))
	w.u8(uint8(p.Bits()))
	*w = append(*w, ip...)
}

// AppendText appends a text of at most MaxName bytes as messages hold it.
func AppendText(b []byte, s string) []byte {
	w := writer(b)
	w.text(s, MaxName)
	return w
}

// reader takes fields; after the first error every field is zero.
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

func (r *reader) bool() bool {
	v := r.u8()
	r.bad = r.bad || v > 1
	return v == 1
}

// count reads a number of elements of that size in bytes, at most bound.
func (r *reader) count(size, bound int) int {
	n := int(r.number(size))
	if n > bound {
		r.bad = true
	}
	if r.bad {
		return 0
	}
	return n
}

// bytes returns a copy.
func (r *reader) bytes(bound int) []byte {
	return append([]byte(nil), r.take(r.count(2, bound))...)
}

func (r *reader) text(bound int) string { return string(r.bytes(bound)) }

func (r *reader) names() (out []string) {
	n := r.count(1, MaxProtocols)
	for i := 0; i < n && !r.bad; i++ {
		out = append(out, r.text(MaxName))
	}
	return out
}

func (r *reader) prefix() netip.Prefix {
	size, bits := int(r.u8()), int(r.u8())
	if size != 4 && size != 16 {
		r.bad = true
		return netip.Prefix{}
	}
	ip, ok := netip.AddrFromSlice(r.take(size))
	if !ok || ip.Is4In6() || bits > ip.BitLen() {
		r.bad = true
		return netip.Prefix{}
	}
	return netip.PrefixFrom(ip, bits)
}

// end returns the error of the reader. Bytes left over are an error: one message has one
// encoding.
func (r *reader) end(k Kind) error {
	if r.bad {
		return fmt.Errorf("%w: %v message too short or out of bounds", ErrMalformed, k)
	}
	if len(r.b) != 0 {
		return fmt.Errorf("%w: %v message with %d bytes too many", ErrMalformed, k, len(r.b))
	}
	return nil
}
