package microproto

import (
	"encoding/binary"
	"fmt"
	"reflect"
	"unsafe"
)

// Word is what an attribute may hold.
type Word interface {
	~uint8 | ~uint16 | ~uint32 | ~uint64 | ~int32 | ~int64
}

// Attr is a typed attribute of messages, declared by the micro-protocol that
// writes it and readable by others. A local attribute lives in the message only;
// a wire attribute lives in the header, big endian.
type Attr[T Word] struct {
	at *place
}

// place is where an attribute or field lives. The layout may move while no
// message is alive; attributes follow since they share the place.
type place struct {
	name   string
	owner  *attachment
	kind   reflect.Kind // of an attribute; reflect.Invalid for raw bytes
	wire   bool
	offset int // wire: in the header; local: index
	size   int // bytes
	step   Step
}

// Get returns the attribute's value, 0 where a local one was never set.
func (a Attr[T]) Get(m *Message) T {
	p := a.at
	if !p.wire {
		if m.has&(1<<p.offset) == 0 {
			return 0
		}
		return T(m.local[p.offset&(maxLocalAttrs-1)])
	}
	var v T
	switch b := m.header[p.offset:]; unsafe.Sizeof(v) { // known when compiled
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

// Set gives the attribute a value. Only its declarer sets a wire attribute.
func (a Attr[T]) Set(m *Message, v T) {
	p := a.at
	if !p.wire {
		m.local[p.offset&(maxLocalAttrs-1)] = uint64(v)
		m.has |= 1 << p.offset
		return
	}
	switch b := m.header[p.offset:]; unsafe.Sizeof(v) { // known when compiled
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

// Has tells whether a local attribute was set; a wire attribute always is.
func (a Attr[T]) Has(m *Message) bool { return a.at.wire || m.has&(1<<a.at.offset) != 0 }

// Valid tells whether the attribute was declared or found; the zero Attr is not
// and must not be used.
func (a Attr[T]) Valid() bool { return a.at != nil }

// Field is a run of raw header bytes that one micro-protocol owns.
type Field struct {
	at *place
}

// Bytes returns the field's bytes in m's header.
func (f Field) Bytes(m *Message) []byte {
	o := f.at.offset
	return m.header[o : o+f.at.size : o+f.at.size]
}

func kindOf[T Word]() (reflect.Kind, int) {
	t := reflect.TypeFor[T]()
	return t.Kind(), int(t.Size())
}

// lookupPlace finds a declared attribute of the right type.
func lookupPlace[T Word](places []*place, name string) (Attr[T], error) {
	kind, _ := kindOf[T]()
	for _, p := range places {
		if p.name != name || p.kind == reflect.Invalid {
			continue
		}
		if p.kind != kind {
			return Attr[T]{}, fmt.Errorf("microproto: attribute %q holds %v (declared by %s), not %v", name, p.kind, p.owner.name(), kind)
		}
		return Attr[T]{p}, nil
	}
	return Attr[T]{}, fmt.Errorf("microproto: no attribute %q is declared; the micro-protocol that declares it must stand above", name)
}

// Region is the part of a header that one attribute or field takes.
type Region struct {
	Protocol string // who declared it
	Name     string // of the attribute; "" for a raw field
	Offset   int
	Length   int
}

// Layout returns the header's regions in order of offset.
func (c *Composite) Layout() []Region {
	var out []Region
	for _, a := range c.attached {
		for _, p := range a.places {
			if p.wire {
				out = append(out, Region{a.name(), p.name, p.offset, p.size})
			}
		}
	}
	return out
}
