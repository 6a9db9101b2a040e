package microproto

import (
	"fmt"
	"slices"
)

// Constructor makes a micro-protocol with the settings of a composition.
type Constructor func(Options) (MicroProtocol, error)

// Options are string-keyed settings of a composition, units in the key:
// "rto.floor.ns". Look keys up; do not range over them.
type Options map[string]int64

// Catalog maps names of micro-protocols to constructors. The program's main
// builds one; nothing registers itself.
type Catalog struct {
	names        []string // sorted
	constructors []Constructor
}

// NewCatalog returns an empty catalog.
func NewCatalog() *Catalog { return &Catalog{} }

// Add lists a constructor. A name twice is an error.
func (c *Catalog) Add(name string, f Constructor) error {
	if name == "" || f == nil {
		return fmt.Errorf("microproto: catalog entry %q needs a name and a constructor", name)
	}
	i, found := slices.BinarySearch(c.names, name)
	if found {
		return fmt.Errorf("microproto: %q is in the catalog already", name)
	}
	c.names = slices.Insert(c.names, i, name)
	c.constructors = slices.Insert(c.constructors, i, f)
	return nil
}

// Has tells whether the catalog lists the name.
func (c *Catalog) Has(name string) bool {
	_, found := slices.BinarySearch(c.names, name)
	return found
}

// Names returns the names listed, sorted.
func (c *Catalog) Names() []string { return slices.Clone(c.names) }

// Build makes one micro-protocol per name, in that order. An unknown name is an
// error that tells which are known.
func (c *Catalog) Build(names []string, o Options) ([]MicroProtocol, error) {
	out := make([]MicroProtocol, 0, len(names))
	for _, name := range names {
		i, found := slices.BinarySearch(c.names, name)
		if !found {
			return nil, fmt.Errorf("microproto: no micro-protocol %q in the catalog (it lists %q)", name, c.names)
		}
		mp, err := c.constructors[i](o)
		if err != nil {
			return nil, fmt.Errorf("microproto: make %s: %w", name, err)
		}
		if mp.Name() != name {
			return nil, fmt.Errorf("microproto: catalog entry %q makes a micro-protocol named %q", name, mp.Name())
		}
		out = append(out, mp)
	}
	return out, nil
}
