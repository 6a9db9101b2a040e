package microproto

import "fmt"

// MicroProtocol is a set of handlers bound to events. Attach binds them and
// declares header bytes, attributes, cells and hold bits; it has no other effect.
type MicroProtocol interface {
	Name() string
	Attach(b *Binder) error
}

// Versioned is optional; the version (1 without it) goes into the fingerprint.
type Versioned interface{ Version() uint16 }

// State is what a micro-protocol hands to its successor when it is replaced at
// run time.
type State any

// Detacher is a micro-protocol that can be detached while running. Detach
// releases what the micro-protocol holds and returns what a successor needs. Its
// timers are cancelled and its handlers unbound afterwards by the kernel.
type Detacher interface {
	Detach(x *Exec) (State, error)
}

// Adopter takes the state of its predecessor when attached while running.
type Adopter interface {
	Adopt(x *Exec, s State) error
}

// attachment is one micro-protocol in one composite.
type attachment struct {
	protocol MicroProtocol
	label    string
	order    int // place among the handlers of one priority
	places   []*place
	bits     HoldBit
}

func (a *attachment) name() string { return a.label }

// Binder is what Attach sees. Nothing takes effect unless Attach succeeds as a
// whole; errors of methods without one of their own surface after Attach.
type Binder struct {
	c        *Composite
	to       *attachment
	replaces *attachment // or nil
	binds    []bind
	newCells []*cell
	claims   []*cell
	bits     []string
	err      error
}

func (b *Binder) fail(err error) {
	if b.err == nil {
		b.err = err
	}
}

// Header reserves n raw header bytes.
func (b *Binder) Header(n int) Field {
	if n <= 0 || n > MaxHeaderBytes {
		b.fail(fmt.Errorf("microproto: %s asks for %d header bytes; allowed are 1 to %d", b.to.name(), n, MaxHeaderBytes))
		n = 1
	}
	return Field{b.c.newPlace(place{owner: b.to, wire: true, size: n, offset: -1})}
}

// LocalAttr declares an attribute that lives in the message only.
func LocalAttr[T Word](b *Binder, name string) Attr[T] { return declareAttr[T](b, name, false) }

// WireAttr declares an attribute that takes sizeof(T) header bytes.
func WireAttr[T Word](b *Binder, name string) Attr[T] { return declareAttr[T](b, name, true) }

func declareAttr[T Word](b *Binder, name string, wire bool) Attr[T] {
	kind, size := kindOf[T]()
	if p := b.attribute(name); p != nil {
		b.fail(fmt.Errorf("microproto: attribute %q is declared twice, by %s and %s", name, p.owner.name(), b.to.name()))
	}
	if name == "" {
		b.fail(fmt.Errorf("microproto: %s declares an attribute without a name", b.to.name()))
	}
	return Attr[T]{b.c.newPlace(place{name: name, owner: b.to, kind: kind, wire: wire, size: size}).spot}
}

// LookupAttr finds an attribute that a micro-protocol above declared; the error
// names what is missing.
func LookupAttr[T Word](b *Binder, name string) (Attr[T], error) {
	return attrOf[T](b.attribute(name), name)
}

// CompositeAttr is LookupAttr for the layer above, after construction.
func CompositeAttr[T Word](c *Composite, name string) (Attr[T], error) {
	for _, a := range c.attached {
		if p := a.attribute(name); p != nil {
			return attrOf[T](p, name)
		}
	}
	return attrOf[T](nil, name)
}

// attribute finds the place of an attribute: of every other attached micro-protocol but
// the one being replaced, and of those declared so far here.
func (b *Binder) attribute(name string) *place {
	for _, a := range b.c.attached {
		if a != b.replaces && a != b.to {
			if p := a.attribute(name); p != nil {
				return p
			}
		}
	}
	return b.to.attribute(name)
}

// cell finds a cell, of those declared so far here too.
func (b *Binder) cell(name string) *cell {
	if c := findCell(b.c.cells, name); c != nil {
		return c
	}
	return findCell(b.newCells, name)
}

// HoldBit reserves one of the composite's 32 hold bits. name is for traces.
func (b *Binder) HoldBit(name string) HoldBit {
	taken := HoldBit(0)
	for _, a := range b.c.attached {
		if a != b.replaces {
			taken |= a.bits
		}
	}
	taken |= b.to.bits
	for i := range maxHoldBits {
		// A successor may hold messages before its predecessor's bits are gone.
		h := HoldBit(1) << i
		if taken&h != 0 || (b.replaces != nil && b.replaces.bits&h != 0) {
			continue
		}
		b.to.bits |= h
		b.bits = append(b.bits, name)
		return h
	}
	b.fail(fmt.Errorf("%w: %s asks for hold bit %q and all %d are taken", ErrLimit, b.to.name(), name, maxHoldBits))
	return 0
}

// Headroom is the number of bytes that the layer below wants free before a frame.
func (b *Binder) Headroom() int { return b.c.config.Headroom }

// MTU is the largest frame of the layer below, in bytes; the payload's share is
// known after all have attached: Exec.MaxPayload.
func (b *Binder) MTU() int { return b.c.config.MTU }

// Limits are the composite's bounds, defaults filled in.
func (b *Binder) Limits() Limits { return b.c.limits }

// Bind binds a handler to an event.
func Bind[T any](b *Binder, e Event[T], p Priority, h Handler[T]) Binding {
	if e.id == nil || h == nil {
		b.fail(fmt.Errorf("microproto: %s binds a handler to a zero event, or no handler to %q", b.to.name(), e.Name()))
		return Binding{}
	}
	ch := ensure(b.c, e)
	b.c.lastBinding++
	b.binds = append(b.binds, bind{ch, newEntry(h, b.to, b.c.lastBinding, p)})
	return Binding{ch, b.c.lastBinding}
}

// BindNow binds a handler from inside a handler; it runs from the next raise on
// and belongs to the micro-protocol whose handler is running.
func BindNow[T any](x *Exec, e Event[T], p Priority, h Handler[T]) (Binding, error) {
	if e.id == nil || h == nil {
		return Binding{}, fmt.Errorf("microproto: %s binds a handler to a zero event, or no handler to %q", x.cur.name(), e.Name())
	}
	ch := ensure(x.c, e)
	x.c.lastBinding++
	n := newEntry(h, x.cur, x.c.lastBinding, p)
	if err := ch.insert(n); err != nil {
		return Binding{}, err
	}
	return Binding{ch, n.id()}, nil
}
