package microproto

import (
	"reflect"
	"slices"
	"unsafe"
)

type cell struct {
	name  string
	owner *attachment
	value any // *T
}

const wordChunk = 32

// DeclareCell declares a typed cell that the micro-protocols below may look up. It
// returns the variable, which holds initial.
func DeclareCell[T any](b *Binder, name string, initial T) *T {
	if c := b.c.cell(name); c != nil {
		b.fail("microproto: cell %q is declared twice, by %s and %s", name, c.owner.name, b.to.name)
	}
	v := newValue[T](b.c)
	*v = initial
	b.c.cells = append(b.c.cells, cell{name, b.to, v})
	return v
}

// newValue returns the variable of a cell. Numeric cells of a composite share memory.
func newValue[T any](c *Composite) *T {
	if k := reflect.TypeFor[T]().Kind(); reflect.Bool <= k && k <= reflect.Float64 {
		if len(c.words) == 0 {
			c.words = make([]uint64, wordChunk)
		}
		p := (*T)(unsafe.Pointer(&c.words[0])) // 8 bytes, no pointers
		c.words = c.words[1:]
		return p
	}
	return new(T)
}

// LookupCell returns a cell that a micro-protocol above declared. The composite fails if
// there is none of this name and type.
func LookupCell[T any](b *Binder, name string) *T {
	c := b.c.cell(name)
	if c == nil {
		b.fail("microproto: %s needs cell %q; no micro-protocol above it declares that", b.to.name, name)
		return new(T)
	}
	p, ok := c.value.(*T)
	if !ok {
		b.fail("microproto: cell %q holds %v (declared by %s), not %v", name, reflect.TypeOf(c.value).Elem(),
			c.owner.name, reflect.TypeFor[T]())
		return new(T)
	}
	return p
}

// TryCell returns a cell that a micro-protocol above declared, or nil if there is none of this name: a row that works in
// columns with a congestion window and without one asks so for the window. The composite fails if the cell has another
// type.
func TryCell[T any](b *Binder, name string) *T {
	if b.c.cell(name) == nil {
		return nil
	}
	return LookupCell[T](b, name)
}

// CompositeCell returns a cell to the layer above. ok is false if no micro-protocol
// declares a cell of this name and type.
func CompositeCell[T any](c *Composite, name string) (p *T, ok bool) {
	if v := c.cell(name); v != nil {
		p, ok = v.value.(*T)
	}
	return p, ok
}

func (c *Composite) cell(name string) *cell {
	i := slices.IndexFunc(c.cells, func(v cell) bool { return v.name == name })
	if i < 0 {
		return nil
	}
	return &c.cells[i]
}
