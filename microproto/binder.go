package microproto

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
)

// MicroProtocol is a set of handlers bound to events. Attach binds them and declares header
// bytes, attributes, cells and hold bits; it has no other effect.
type MicroProtocol interface {
	Name() string
	Attach(b *Binder) error
}

// State is what a micro-protocol has measured of the path, for the next one of its
// name; see StateExporter.
type State any

// attachment is one micro-protocol in one composite.
type attachment struct {
	protocol MicroProtocol
	name     string
	order    int // rank among the handlers of one priority
	version  uint16
	trains   bool        // its handlers take trains
	common   *CommonCase // nil: not declared
}

// Binder is the composite as Attach sees it. An error of a method that returns none
// fails the composite after Attach has returned.
type Binder struct {
	c   *Composite
	to  *attachment
	err error
}

func (b *Binder) fail(format string, args ...any) {
	if b.err == nil {
		b.err = fmt.Errorf(format, args...)
	}
}

// attach adds a micro-protocol at the bottom of a composite that is being made.
func (b *Binder) attach(mp MicroProtocol) error {
	c, name := b.c, mp.Name()
	if name == "" || c.lookup(name) != nil {
		return fmt.Errorf("microproto: a micro-protocol named %q cannot be attached: the name is empty or taken", name)
	}
	b.to = &attachment{protocol: mp, name: name, order: len(c.attached), version: 1}
	c.attached = append(c.attached, b.to)
	err := cmp.Or(mp.Attach(b), b.err)
	if err == nil {
		err = c.checkHeader()
	}
	if err != nil {
		return fmt.Errorf("attach %s: %w", name, err)
	}
	if e, ok := mp.(Endpoint); ok && c.endpoint == nil {
		c.endpoint = e
	}
	c.x.trace(TraceRecord{Kind: TraceAttach, Protocol: name})
	return nil
}

// Version sets the micro-protocol's version, 1 without a call. It is part of the
// composite's fingerprint.
func (b *Binder) Version(v uint16) { b.to.version = v }

// TakesTrains declares that the micro-protocol's handlers take trains: they use Length
// and Piece instead of len(Payload) and Payload, and Segments where they count. A
// composite forms trains only if all of its micro-protocols declare so.
func (b *Binder) TakesTrains() { b.to.trains = true }

// Header reserves n bytes of the header.
func (b *Binder) Header(n int) Field {
	if n <= 0 || n > MaxHeaderBytes {
		b.fail("microproto: %s asks for %d header bytes; 1 to %d are allowed", b.to.name, n, MaxHeaderBytes)
		n = 1
	}
	return Field{b.wireField(field{size: n}), n}
}

// LocalAttr declares an attribute that is not transmitted.
func LocalAttr[T Word](b *Binder, name string) Attr[T] {
	return Attr[T]{int16(^b.localField(b.attribute(name, reflect.TypeFor[T]())))}
}

// WireAttr declares an attribute of the header. It takes as many bytes as T.
func WireAttr[T Word](b *Binder, name string) Attr[T] { return SteppedAttr[T](b, name, 0) }

// SteppedAttr declares a wire attribute that grows within a train.
func SteppedAttr[T Word](b *Binder, name string, s Step) Attr[T] {
	f := b.attribute(name, reflect.TypeFor[T]())
	f.step = s
	return Attr[T]{int16(b.wireField(f) + 1)}
}

// attribute checks the name of a new attribute and returns its field, without a place.
func (b *Binder) attribute(name string, t reflect.Type) field {
	if f := b.c.attribute(name); f != nil {
		b.fail("microproto: attribute %q is declared twice, by %s and %s", name, f.owner.name, b.to.name)
	}
	if name == "" {
		b.fail("microproto: %s declares an attribute without a name", b.to.name)
	}
	return field{name: name, kind: t.Kind(), size: int(t.Size())}
}

// wireField reserves the header bytes of a field and returns the offset of the first.
func (b *Binder) wireField(f field) int {
	f.owner, f.wire, f.offset = b.to, true, b.c.pool.hdrSize
	b.c.fields = append(b.c.fields, f)
	b.c.pool.hdrSize += f.size
	return f.offset
}

func (b *Binder) localField(f field) int {
	c := b.c
	if c.locals == maxLocalAttrs {
		b.fail("%w: %s declares local attribute %q and all %d are taken", ErrLimit, b.to.name, f.name, maxLocalAttrs)
		return 0
	}
	f.owner, f.offset = b.to, c.locals
	c.fields = append(c.fields, f)
	c.locals++
	return f.offset
}

// LookupAttr returns an attribute that a micro-protocol above declared. The composite
// fails if there is none of this name and type.
func LookupAttr[T Word](b *Binder, name string) Attr[T] {
	f, want := b.c.attribute(name), reflect.TypeFor[T]().Kind()
	switch {
	case f == nil:
		b.fail("microproto: %s needs attribute %q; no micro-protocol above it declares that", b.to.name, name)
	case f.kind != want:
		b.fail("microproto: attribute %q holds %v (declared by %s), not %v", name, f.kind, f.owner.name, want)
	case f.wire:
		return Attr[T]{int16(f.offset + 1)}
	default:
		return Attr[T]{int16(^f.offset)}
	}
	return Attr[T]{}
}

// HoldBit reserves one of the composite's 32 hold bits. name is for traces.
func (b *Binder) HoldBit(name string) HoldBit {
	c, bit := b.c, len(b.c.bitNames)
	if bit == maxHoldBits {
		b.fail("%w: %s asks for hold bit %q and all %d are taken", ErrLimit, b.to.name, name, maxHoldBits)
		return 0
	}
	c.bitNames = append(c.bitNames, name)
	return 1 << bit
}

// MTU returns the largest frame of the layer below, in bytes. The largest payload is known
// once all micro-protocols are attached; see Exec.MaxPayload.
func (b *Binder) MTU() int { return b.c.config.MTU }

// Limits returns the composite's bounds with the defaults filled in.
func (b *Binder) Limits() Limits { return b.c.limits }

const noHandler = "microproto: %s binds a handler to a zero event, or no handler to %q"

// Bind binds a handler to an event.
func Bind[T any](b *Binder, e Event[T], p Priority, h Handler[T]) Binding {
	if e.id == nil || h == nil {
		b.fail(noHandler, b.to.name, e.Name())
		return Binding{}
	}
	ch, n := ensure(b.c, e), newEntry(b.c, h, b.to, p)
	b.c.binds = append(b.c.binds, bind{ch, n})
	return Binding{ch, n.number}
}

// BindNow binds a handler from inside a handler. It runs from the next raise on and belongs
// to the micro-protocol whose handler is running.
func BindNow[T any](x *Exec, e Event[T], p Priority, h Handler[T]) (Binding, error) {
	if e.id == nil || h == nil {
		return Binding{}, fmt.Errorf(noHandler, x.cur.name, e.Name())
	}
	if x.cur.common == nil {
		x.c.common = nil // a handler that the declared cases do not know
	}
	ch, n := ensure(x.c, e), newEntry(x.c, h, x.cur, p)
	if err := ch.setEntries(append(slices.Clone(ch.entries), n)); err != nil {
		return Binding{}, err
	}
	return Binding{ch, n.number}, nil
}
