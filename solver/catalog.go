// Package solver is the entry to the solvers of obstacle problems: the catalog of methods, and Solve.
package solver

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/p2pdc/p2pdc/solver/iterate"
	"github.com/p2pdc/p2pdc/solver/multilevel"
	"github.com/p2pdc/p2pdc/solver/problem"
	"github.com/p2pdc/p2pdc/solver/richardson"
	"github.com/p2pdc/p2pdc/solver/schwarz"
)

// Catalog maps names of methods to methods. It is not safe for concurrent use while methods are
// added.
type Catalog struct{ methods []problem.Method }

// Methods returns a catalog of the methods of this module.
func Methods() *Catalog {
	return &Catalog{[]problem.Method{richardson.Method{}, multilevel.SOR(), multilevel.Multigrid(), schwarz.Method{}}}
}

// Add adds a method. An empty name, or one that is in the catalog, is an error.
func (c *Catalog) Add(m problem.Method) error {
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
func (c *Catalog) Lookup(name string) (problem.Method, error) {
	name = cmp.Or(name, problem.Richardson)
	for _, m := range c.methods {
		if m.Name() == name {
			return m, nil
		}
	}
	return nil, fmt.Errorf("solver: no method %q; there are %q", name, c.Names())
}

// Check refuses what New would refuse for every rank by the configuration alone. The problem's
// functions are not evaluated.
func (c *Catalog) Check(config problem.Config) error { // of a copy: check brings the problem into range
	m, err := c.Lookup(config.Method.Name)
	if err == nil {
		err = config.Method.Check()
	}
	if err == nil {
		err = config.Prepare()
	}
	if err == nil {
		err = m.Check(&config)
	}
	return err
}

// New makes the peer config.Rank of a run, by the method of the configuration.
func (c *Catalog) New(config problem.Config) (problem.Peer, error) {
	m, err := c.Lookup(config.Method.Name)
	if err == nil {
		err = config.Method.Check()
	}
	if err != nil {
		return nil, err
	}
	return m.New(config)
}

// Links returns the peers that rank r exchanges anything with in a run of this configuration,
// whose Problem, Partition, Scheme and Method alone matter; none for an unknown method.
func (c *Catalog) Links(config *problem.Config, r iterate.Rank) []iterate.Link {
	m, err := c.Lookup(config.Method.Name)
	if err != nil {
		return nil
	}
	return m.Links(config, r)
}

// New, Check and Links are those of a catalog of the methods of this module.

// New makes the peer c.Rank of a run by a method of this module.
func New(c problem.Config) (problem.Peer, error) { return Methods().New(c) }

// Check is Catalog.Check for the methods of this module.
func Check(c problem.Config) error { return Methods().Check(c) }

// Links is Catalog.Links for the methods of this module.
func Links(c *problem.Config, r iterate.Rank) []iterate.Link { return Methods().Links(c, r) }
