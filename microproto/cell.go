package microproto

import (
	"fmt"
	"reflect"
	"unsafe"
)

// cell is a shared variable of a composite. It stays when its declarer is
// detached, so that who looked it up keeps a valid pointer and a successor finds
// the value.
type cell struct {
	name  string
	owner *attachment // nil: its declarer is gone
	value any         // *T
}

// Chunks of the numbers in cells and of cells.
const (
	fewWords = 32
	fewCells = 8
)

// DeclareCell declares a typed shared cell and returns it. A cell that an earlier
// declarer left behind keeps its value; otherwise it starts with initial.
func DeclareCell[T any](b *Binder, name string, initial T) *T {
	if c := b.cell(name); c != nil {
		p, ok := c.value.(*T)
		switch {
		case !ok:
			b.fail(fmt.Errorf("microproto: cell %q holds %v, not %v", name, reflect.TypeOf(c.value).Elem(), reflect.TypeFor[T]()))
		case c.owner != nil && c.owner != b.replaces && c.owner != b.to:
			b.fail(fmt.Errorf("microproto: cell %q is declared twice, by %s and %s", name, c.owner.name(), b.to.name()))
		case c.owner == b.to:
			b.fail(fmt.Errorf("microproto: cell %q is declared twice by %s", name, b.to.name()))
		default:
			b.claims = append(b.claims, c)
			return p
		}
		return new(T)
	}
	v := newValue[T](b.c)
	*v = initial
	b.newCells = append(b.newCells, b.c.newCell(cell{name, b.to, v}))
	return v
}

// newValue makes the variable of a cell. Numbers of a composite lie side by side.
func newValue[T any](c *Composite) *T {
	switch reflect.TypeFor[T]().Kind() {
	case reflect.Bool, reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Float32, reflect.Float64:
		if len(c.words) == 0 {
			c.words = make([]uint64, fewWords)
		}
		p := (*T)(unsafe.Pointer(&c.words[0])) // 8 bytes, no pointers
		c.words = c.words[1:]
		return p
	}
	return new(T)
}

func (c *Composite) newCell(v cell) *cell {
	if len(c.cellMemory) == 0 {
		c.cellMemory = make([]cell, fewCells)
	}
	p := &c.cellMemory[0]
	*p = v
	c.cellMemory = c.cellMemory[1:]
	return p
}

// LookupCell finds a cell that a micro-protocol above declared; the error names
// what is missing.
func LookupCell[T any](b *Binder, name string) (*T, error) { return valueOf[T](b.cell(name), name) }

// CompositeCell is LookupCell for the layer above, after construction.
func CompositeCell[T any](c *Composite, name string) (*T, error) {
	return valueOf[T](findCell(c.cells, name), name)
}

func findCell(cells []*cell, name string) *cell {
	for _, c := range cells {
		if c.name == name {
			return c
		}
	}
	return nil
}

func valueOf[T any](c *cell, name string) (*T, error) {
	if c == nil {
		return nil, fmt.Errorf("microproto: no cell %q is declared; the micro-protocol that declares it must stand above", name)
	}
	if p, ok := c.value.(*T); ok {
		return p, nil
	}
	return nil, fmt.Errorf("microproto: cell %q holds %v, not %v", name, reflect.TypeOf(c.value).Elem(), reflect.TypeFor[T]())
}
