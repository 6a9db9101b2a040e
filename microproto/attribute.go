package microproto

import (
	"encoding/binary"
	"reflect"
	"unsafe"
)

// Word is the type of an attribute's value.
type Word interface {
	~uint8 | ~uint16 | ~uint32 | ~uint64 | ~int32 | ~int64
}

// Attr is a typed attribute of messages. The micro-protocol that declares it writes it;
// those below may read it. A local attribute lives in the message only; a wire attribute
// lives in the header, big endian.
type Attr[T Word] struct {
	at int16 // wire: offset in the header + 1; local: ^index; 0: not declared
}

// field is a declared attribute, or raw header bytes.
type field struct {
	name   string
	owner  *attachment
	kind   reflect.Kind // of an attribute; reflect.Invalid for raw bytes
	wire   bool
	offset int // wire: in the header; local: index
	size   int // bytes in the header
	step   Step
}

// Get returns the attribute's value; 0 if it is local and was not set.
func (a Attr[T]) Get(m *Message) T {
	if a.at < 0 {
		i := ^a.at & (maxLocalAttrs - 1)
		if m.localSet&(1<<i) == 0 {
			return 0
		}
		return T(m.local[i])
	}
	var v T
	switch b := m.header[a.at-1:]; unsafe.Sizeof(v) { // a constant of the instance
	case 1:
		return T(b[0])
	case 2:
		return T(binary.BigEndian.Uint16(b))
	case 4:
		return T(binary.BigEndian.Uint32(b))
	default:
		return T(binary.BigEndian.Uint64(b))
	}
}

// Set sets the attribute's value. Only the declaring micro-protocol sets a wire attribute.
func (a Attr[T]) Set(m *Message, v T) {
	if a.at < 0 {
		i := ^a.at & (maxLocalAttrs - 1)
		m.local[i] = uint64(v)
		m.localSet |= 1 << i
		return
	}
	switch b := m.header[a.at-1:]; unsafe.Sizeof(v) { // a constant of the instance
	case 1:
		b[0] = byte(v)
	case 2:
		binary.BigEndian.PutUint16(b, uint16(v))
	case 4:
		binary.BigEndian.PutUint32(b, uint32(v))
	default:
		binary.BigEndian.PutUint64(b, uint64(v))
	}
}

// Has reports whether a local attribute was set; true for a wire attribute.
func (a Attr[T]) Has(m *Message) bool {
	return a.at >= 0 || m.localSet&(1<<(^a.at&(maxLocalAttrs-1))) != 0
}

// Field is a range of raw header bytes of one micro-protocol.
type Field struct{ offset, size int }

// Bytes returns the field's bytes in m's header.
func (f Field) Bytes(m *Message) []byte {
	return m.header[f.offset : f.offset+f.size : f.offset+f.size]
}

func (c *Composite) attribute(name string) *field {
	for i := range c.fields {
		if f := &c.fields[i]; f.name == name && f.kind != reflect.Invalid {
			return f
		}
	}
	return nil
}

// Region is the part of a header that one attribute or field occupies.
type Region struct {
	Protocol string // the micro-protocol that declared it
	Name     string // of the attribute; "" for a raw field
	Offset   int
	Length   int
}
