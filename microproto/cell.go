package microproto

import (
	"fmt"
	"reflect"
)

// cell is a shared variable of a composite. It stays when its declarer is
// detached, so that who looked it up keeps a valid pointer and a successor finds
// the value.
type cell struct {
	name  string
	owner *attachment // nil: its declarer is gone
	value any         // *T
}

// DeclareCell declares a typed shared cell and returns it. A cell that an earlier
// declarer left behind keeps its value; otherwise it starts with initial.
func DeclareCell[T any](b *Binder, name string, initial T) *T {
	for _, c := range b.cells() {
		if c.name != name {
			continue
		}
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
	v := new(T)
	*v = initial
	b.newCells = append(b.newCells, &cell{name, b.to, v})
	return v
}

// LookupCell finds a cell that a micro-protocol above declared; the error names
// what is missing.
func LookupCell[T any](b *Binder, name string) (*T, error) { return lookupCell[T](b.cells(), name) }

// CompositeCell is LookupCell for the layer above, after construction.
func CompositeCell[T any](c *Composite, name string) (*T, error) {
	return lookupCell[T](c.cells, name)
}

func lookupCell[T any](cells []*cell, name string) (*T, error) {
	for _, c := range cells {
		if c.name != name {
			continue
		}
		if p, ok := c.value.(*T); ok {
			return p, nil
		}
		return nil, fmt.Errorf("microproto: cell %q holds %v, not %v", name, reflect.TypeOf(c.value).Elem(), reflect.TypeFor[T]())
	}
	return nil, fmt.Errorf("microproto: no cell %q is declared; the micro-protocol that declares it must stand above", name)
}
