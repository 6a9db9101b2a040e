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
	at *spot
}

// spot is all that Get and Set need of a place, so that those of a composite lie side by
// side: the offset in the header, or ^index of a local attribute.
type spot int16

// Chunks of spots and of places.
const (
	fewSpots  = 32
	fewPlaces = 8
)

// place is where an attribute or field lives. The layout may move while no
// message is alive; attributes follow since they share the spot.
type place struct {
	name   string
	owner  *attachment
	spot   *spot
	kind   reflect.Kind // of an attribute; reflect.Invalid for raw bytes
	wire   bool
	offset int // wire: in the header; local: index
	size   int // bytes
	step   Step
}

// move says where a place is.
func (p *place) move(offset int) {
	p.offset = offset
	if *p.spot = spot(offset); !p.wire {
		*p.spot = ^spot(offset)
	}
}

// newPlace makes one of a micro-protocol.
func (c *Composite) newPlace(p place) *place {
	if len(c.places) == 0 {
		c.places = make([]place, fewPlaces)
	}
	if len(c.spots) == 0 {
		c.spots = make([]spot, fewSpots)
	}
	q := &c.places[0]
	*q = p
	q.spot = &c.spots[0]
	c.places, c.spots = c.places[1:], c.spots[1:]
	p.owner.places = append(p.owner.places, q)
	return q
}

// Get returns the attribute's value, 0 where a local one was never set.
func (a Attr[T]) Get(m *Message) T {
	p := *a.at
	if p < 0 {
		i := ^p & (maxLocalAttrs - 1)
		if m.has&(1<<i) == 0 {
			return 0
		}
		return T(m.local[i])
	}
	var v T
	switch b := m.header[p:]; unsafe.Sizeof(v) { // known when compiled
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
	p := *a.at
	if p < 0 {
		i := ^p & (maxLocalAttrs - 1)
		m.local[i] = uint64(v)
		m.has |= 1 << i
		return
	}
	switch b := m.header[p:]; unsafe.Sizeof(v) { // known when compiled
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
func (a Attr[T]) Has(m *Message) bool {
	p := *a.at
	return p >= 0 || m.has&(1<<(^p&(maxLocalAttrs-1))) != 0
}

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

// attrOf is the attribute at a place, of the right type; p is nil where there is none.
func attrOf[T Word](p *place, name string) (Attr[T], error) {
	if p == nil {
		return Attr[T]{}, fmt.Errorf("microproto: no attribute %q is declared; the micro-protocol that declares it must stand above", name)
	}
	if kind, _ := kindOf[T](); p.kind != kind {
		return Attr[T]{}, fmt.Errorf("microproto: attribute %q holds %v (declared by %s), not %v", name, p.kind, p.owner.name(), kind)
	}
	return Attr[T]{p.spot}, nil
}

// attribute finds the place of an attribute that a micro-protocol has declared.
func (a *attachment) attribute(name string) *place {
	for _, p := range a.places {
		if p.name == name && p.kind != reflect.Invalid {
			return p
		}
	}
	return nil
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
