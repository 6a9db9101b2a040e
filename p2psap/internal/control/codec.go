package control

import (
	"errors"
	"fmt"
	"net/netip"
)

// MaxBytes bounds one message. On a byte stream a message is preceded by its length, 4 bytes,
// big endian.
const MaxBytes = 64 << 10

// Version is the version of the messages.
const Version = 8

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
	code(c *coder)
}

// Encode returns a message. The body of a heartbeat and of a goodbye is nil.
func Encode(k Kind, sequence, ack uint64, body Body) []byte {
	c := &coder{b: make([]byte, 0, 64)}
	mark, m := uint16(magic), Message{Version: Version, Kind: k, Sequence: sequence, Ack: ack}
	m.code(c, &mark)
	if body != nil {
		body.code(c)
	}
	return c.b
}

func (m *Message) code(c *coder, mark *uint16) {
	c.u16(mark)
	code8(c, &m.Version)
	code8(c, &m.Kind)
	c.u64(&m.Sequence)
	c.u64(&m.Ack)
}

// Parse reads the envelope of a message. Of a message of another version it returns that
// version alone, so that the mismatch can be named.
func Parse(b []byte) (Message, error) {
	if len(b) > MaxBytes {
		return Message{}, fmt.Errorf("%w: control message of %d bytes, at most %d are allowed",
			ErrMalformed, len(b), MaxBytes)
	}
	var m Message
	var mark uint16
	c := &coder{b: b, reading: true}
	m.code(c, &mark)
	m.body = c.b
	switch {
	case c.bad || mark != magic:
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
	c := &coder{b: m.body, reading: true}
	var b Body
	if k := m.Kind; k < kindsEnd && kinds[k].body != nil {
		b = kinds[k].body()
		b.code(c)
	}
	switch {
	case c.bad:
		return nil, fmt.Errorf("%w: %v message too short or out of bounds", ErrMalformed, m.Kind)
	case len(c.b) != 0: // one message has one encoding
		return nil, fmt.Errorf("%w: %v message with %d bytes too many", ErrMalformed, m.Kind, len(c.b))
	}
	return b, c.wrong
}

// coder writes the fields of a message, or reads them: one description serves both directions.
// Texts beyond their bound are cut when written, and an error when read. After the first error
// every field reads as zero.
type coder struct {
	b       []byte // what was written, or what is left to read
	reading bool
	bad     bool
	wrong   error // a field out of the bounds that check states
}

// check records an error if fields that were read are not valid. It keeps the first error.
func (c *coder) check(valid bool, format string, args ...any) {
	if c.reading && !valid && c.wrong == nil {
		c.wrong = fmt.Errorf("%w: %s", ErrMalformed, fmt.Sprintf(format, args...))
	}
}

// take returns the next n bytes; nil: there are not as many.
func (c *coder) take(n int) []byte {
	if c.bad || len(c.b) < n {
		c.bad = true
		return nil
	}
	out := c.b[:n]
	c.b = c.b[n:]
	return out
}

// number codes an unsigned number of that size in bytes, big endian.
func (c *coder) number(v uint64, size int) uint64 {
	if !c.reading {
		for i := range size {
			c.b = append(c.b, byte(v>>(8*(size-1-i))))
		}
		return v
	}
	v = 0
	for _, x := range c.take(size) {
		v = v<<8 | uint64(x)
	}
	return v
}

func code8[T ~uint8](c *coder, v *T) { *v = T(c.number(uint64(*v), 1)) }

func (c *coder) u16(v *uint16) { *v = uint16(c.number(uint64(*v), 2)) }
func (c *coder) u32(v *uint32) { *v = uint32(c.number(uint64(*v), 4)) }
func (c *coder) u64(v *uint64) { *v = c.number(*v, 8) }

func (c *coder) bool(v *bool) {
	var n uint8
	if *v {
		n = 1
	}
	code8(c, &n)
	c.bad = c.bad || n > 1
	*v = n == 1
}

// count codes a number of elements of that size in bytes, at most bound when read.
func (c *coder) count(n, size, bound int) int {
	n = int(c.number(uint64(n), size))
	if c.reading && n > bound {
		c.bad = true
	}
	if c.bad {
		return 0
	}
	return n
}

// bytes copies what it reads.
func (c *coder) bytes(v *[]byte, bound int) {
	if c.reading {
		*v = append([]byte(nil), c.take(c.count(0, 2, bound))...)
		return
	}
	b := (*v)[:min(len(*v), bound)]
	c.count(len(b), 2, bound)
	c.b = append(c.b, b...)
}

func (c *coder) text(v *string, bound int) {
	b := []byte(*v)
	c.bytes(&b, bound)
	if c.reading {
		*v = string(b)
	}
}

// list codes the number of elements, in size bytes, and each element.
func list[T any](c *coder, size, bound int, v *[]T, element func(*coder, *T)) {
	n := c.count(len(*v), size, bound)
	if c.reading {
		*v = nil
	}
	for i := 0; i < n && !c.bad; i++ {
		if c.reading {
			*v = append(*v, *new(T))
		}
		element(c, &(*v)[i])
	}
}

func (c *coder) names(v *[]string) {
	list(c, 1, MaxProtocols, v, func(c *coder, s *string) { c.text(s, MaxName) })
}

// prefix codes an address with its network: the length of the address (4 or 16), the bits of the
// prefix, the address.
func (c *coder) prefix(p *netip.Prefix) {
	ip := p.Addr().AsSlice()
	size, bits := uint8(len(ip)), uint8(p.Bits())
	code8(c, &size)
	code8(c, &bits)
	if !c.reading {
		c.b = append(c.b, ip...)
		return
	}
	addr, ok := netip.AddrFromSlice(c.take(int(size)))
	if !ok || addr.Is4In6() || int(bits) > addr.BitLen() {
		c.bad = true
		return
	}
	*p = netip.PrefixFrom(addr, int(bits))
}

// AppendText appends a text of at most MaxName bytes as messages hold it.
func AppendText(b []byte, s string) []byte {
	c := &coder{b: b}
	c.text(&s, MaxName)
	return c.b
}
