package microproto

import (
	"fmt"
	"slices"
)

// Constructor returns a micro-protocol with the settings of a composition.
type Constructor func(Options) (MicroProtocol, error)

// Options are the settings of a composition. A key names its unit, as "rto.floor.ns" does.
// Do not range over Options in a micro-protocol: the order of a map is random.
type Options map[string]int64

// Catalog maps names of micro-protocols to constructors, and lists optional rows. The
// main package of a program makes one and adds to it; nothing registers itself.
type Catalog struct {
	names        []string // sorted
	constructors []Constructor
	rows         []Row // in the order of AddRow
}

// NewCatalog returns an empty catalog.
func NewCatalog() *Catalog { return &Catalog{} }

// Add lists the constructor of a micro-protocol. An error: the name is listed already.
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

// Has reports whether the catalog lists a micro-protocol of that name.
func (c *Catalog) Has(name string) bool {
	_, found := slices.BinarySearch(c.names, name)
	return found
}

// Names returns the names of the micro-protocols, sorted.
func (c *Catalog) Names() []string { return slices.Clone(c.names) }

// Build makes one micro-protocol for each name, in that order. The error for an unknown
// name lists the known ones.
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
