package microproto

import (
	"cmp"
	"fmt"
	"reflect"
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
	label    string
	order    int // rank among the handlers of one priority
	version  uint16
	trains   bool // its handlers take trains
}

func (a *attachment) name() string { return a.label }

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
	b.to = &attachment{protocol: mp, label: name, order: len(c.attached), version: 1}
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
	if c.x.tracer != nil {
		c.x.trace(TraceRecord{Kind: TraceAttach, Protocol: name})
	}
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
		b.fail("microproto: %s asks for %d header bytes; 1 to %d are allowed", b.to.name(), n, MaxHeaderBytes)
		n = 1
	}
	return Field{b.wireField("", n, reflect.Invalid, 0), n}
}

// LocalAttr declares an attribute that is not transmitted.
func LocalAttr[T Word](b *Binder, name string) Attr[T] {
	kind, _ := b.attrKind(name, reflect.TypeFor[T]())
	return Attr[T]{int16(^b.localField(name, kind))}
}

// WireAttr declares an attribute of the header. It takes as many bytes as T.
func WireAttr[T Word](b *Binder, name string) Attr[T] { return SteppedAttr[T](b, name, 0) }

// SteppedAttr declares a wire attribute that grows within a train.
func SteppedAttr[T Word](b *Binder, name string, s Step) Attr[T] {
	kind, size := b.attrKind(name, reflect.TypeFor[T]())
	return Attr[T]{int16(b.wireField(name, size, kind, s) + 1)}
}

// attrKind checks the name of a new attribute and returns its kind and its size in bytes.
func (b *Binder) attrKind(name string, t reflect.Type) (reflect.Kind, int) {
	if f := b.c.attribute(name); f != nil {
		b.fail("microproto: attribute %q is declared twice, by %s and %s", name, f.owner.name(), b.to.name())
	}
	if name == "" {
		b.fail("microproto: %s declares an attribute without a name", b.to.name())
	}
	return t.Kind(), int(t.Size())
}

// wireField reserves n header bytes and returns the offset of the first.
func (b *Binder) wireField(name string, n int, kind reflect.Kind, s Step) int {
	c, offset := b.c, b.c.pool.hdrSize
	f := field{name: name, owner: b.to, kind: kind, wire: true, offset: offset, size: n, step: s}
	c.fields = append(c.fields, f)
	c.pool.hdrSize += n
	return offset
}

// localField reserves an index for a local attribute.
func (b *Binder) localField(name string, kind reflect.Kind) int {
	c, index := b.c, b.c.locals
	if index == maxLocalAttrs {
		b.fail("%w: %s declares local attribute %q and all %d are taken", ErrLimit, b.to.name(), name, maxLocalAttrs)
		return 0
	}
	c.fields = append(c.fields, field{name: name, owner: b.to, kind: kind, offset: index})
	c.locals++
	return index
}

// LookupAttr returns an attribute that a micro-protocol above declared. The composite
// fails if there is none of this name and type.
func LookupAttr[T Word](b *Binder, name string) Attr[T] {
	f, want := b.c.attribute(name), reflect.TypeFor[T]().Kind()
	switch {
	case f == nil:
		b.fail("microproto: %s needs attribute %q; no micro-protocol above it declares that", b.to.name(), name)
	case f.kind != want:
		b.fail("microproto: attribute %q holds %v (declared by %s), not %v", name, f.kind, f.owner.name(), want)
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
		b.fail("%w: %s asks for hold bit %q and all %d are taken", ErrLimit, b.to.name(), name, maxHoldBits)
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
		b.fail(noHandler, b.to.name(), e.Name())
		return Binding{}
	}
	ch := ensure(b.c, e)
	b.c.lastBinding++
	b.c.binds = append(b.c.binds, bind{ch, newEntry(h, b.to, b.c.lastBinding, p)})
	return Binding{ch, b.c.lastBinding}
}

// BindNow binds a handler from inside a handler. It runs from the next raise on and belongs
// to the micro-protocol whose handler is running.
func BindNow[T any](x *Exec, e Event[T], p Priority, h Handler[T]) (Binding, error) {
	if e.id == nil || h == nil {
		return Binding{}, fmt.Errorf(noHandler, x.cur.name(), e.Name())
	}
	ch := ensure(x.c, e)
	x.c.lastBinding++
	n := newEntry(h, x.cur, x.c.lastBinding, p)
	if err := ch.insert(n); err != nil {
		return Binding{}, err
	}
	return Binding{ch, n.id()}, nil
}
