package solver

import (
	"cmp"
	"fmt"
	"slices"
)

// Catalog maps names of methods to methods. It is not safe for concurrent use while methods are
// added.
type Catalog struct{ methods []Method }

// Methods returns a catalog of the methods of this module.
func Methods() *Catalog {
	return &Catalog{[]Method{richardson{}, wholeGrid{SOR}, wholeGrid{Multigrid}, additiveSchwarz{}}}
}

// Add adds a method. An empty name, or one that is in the catalog, is an error.
func (c *Catalog) Add(m Method) error {
	if m == nil || m.Name() == "" {
		return fmt.Errorf("solver: a method needs a name")
	}
	if slices.Contains(c.Names(), m.Name()) {
		return fmt.Errorf("solver: method %q is in the catalog already", m.Name())
	}
	c.methods = append(c.methods, m)
	return nil
}

// Names returns the names of the methods, in the order in which they were added.
func (c *Catalog) Names() []string {
	out := make([]string, len(c.methods))
	for i, m := range c.methods {
		out[i] = m.Name()
	}
	return out
}

// Lookup returns the method of that name; "" is Richardson. The error lists the names there are.
func (c *Catalog) Lookup(name string) (Method, error) {
	name = cmp.Or(name, Richardson)
	for _, m := range c.methods {
		if m.Name() == name {
			return m, nil
		}
	}
	return nil, fmt.Errorf("solver: no method %q; there are %q", name, c.Names())
}

// Check refuses what New would refuse for every rank by the configuration alone. The problem's
// functions are not evaluated.
func (c *Catalog) Check(config Config) error { // of a copy: check brings the problem into range
	m, err := c.Lookup(config.Method.Name)
	if err == nil {
		err = config.Method.check()
	}
	if err == nil {
		err = config.check()
	}
	if err == nil {
		err = m.Check(&config)
	}
	return err
}

// New makes the peer config.Rank of a run, by the method of the configuration.
func (c *Catalog) New(config Config) (Block, error) {
	m, err := c.Lookup(config.Method.Name)
	if err == nil {
		err = config.Method.check()
	}
	if err != nil {
		return nil, err
	}
	return m.New(config)
}

// Links returns the peers that rank r exchanges anything with in a run of this configuration,
// whose Problem, Partition, Scheme and Method alone matter; none for an unknown method.
func (c *Catalog) Links(config *Config, r Rank) []Link {
	m, err := c.Lookup(config.Method.Name)
	if err != nil {
		return nil
	}
	return m.Links(config, r)
}

// New, Check and Links are those of a catalog of the methods of this module.

// New makes the peer c.Rank of a run by a method of this module.
func New(c Config) (Block, error) { return Methods().New(c) }

// Check is Catalog.Check for the methods of this module.
func Check(c Config) error { return Methods().Check(c) }

// Links is Catalog.Links for the methods of this module.
func Links(c *Config, r Rank) []Link { return Methods().Links(c, r) }
