// Package solver solves obstacle problems and runs fixed-point iterations on parallel peers.
//
// Solve solves a problem of package problem with all peers in this process or with one peer in each of several processes,
// by any method of a Catalog or by the one that Catalog.Choose selects. Iterate runs the blocks of an iteration of your
// own; see package iterate. Both return a result together with an error that wraps ErrNotConverged when a bound or the
// context ended the run.
package solver

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/p2pdc/p2pdc/solver/fas"
	"github.com/p2pdc/p2pdc/solver/fixedpoint"
	"github.com/p2pdc/p2pdc/solver/iterate"
	"github.com/p2pdc/p2pdc/solver/multilevel"
	"github.com/p2pdc/p2pdc/solver/problem"
	"github.com/p2pdc/p2pdc/solver/richardson"
	"github.com/p2pdc/p2pdc/solver/schwarz"
)

// Catalog maps names to methods. Add must not be called concurrently with other methods.
type Catalog struct{ methods []problem.Method }

// Methods returns a new catalog with the methods of this module.
func Methods() *Catalog {
	return &Catalog{[]problem.Method{
		richardson.Method{}, multilevel.SOR(), multilevel.Multigrid(), schwarz.Method{}, fas.Method{}, fixedpoint.Method{},
	}}
}

// Add adds a method. An empty name is an error, and so is a name in the catalog or one that is no printable word.
func (c *Catalog) Add(m problem.Method) error {
	if m == nil || m.Name() == "" {
		return fmt.Errorf("solver: a method needs a name")
	}
	unfit := func(r rune) bool { return !unicode.IsPrint(r) || r == ' ' || r == ',' || r == unicode.ReplacementChar }
	if strings.ContainsFunc(m.Name(), unfit) {
		return fmt.Errorf("solver: the name %q of a method is no word that can be printed, without commas and spaces", m.Name())
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

// Lookup returns the method with a name. The empty name selects Richardson.
func (c *Catalog) Lookup(name string) (problem.Method, error) {
	name = cmp.Or(name, problem.Richardson)
	if i := slices.Index(c.Names(), name); i >= 0 {
		return c.methods[i], nil
	}
	return nil, fmt.Errorf("solver: no method %q; there are %q", name, c.Names())
}

// Check returns an error if New would fail for every rank because of the configuration. It does not
// evaluate the functions of the problem.
func (c *Catalog) Check(config problem.Config) error { // config is a copy because Prepare scales the problem
	m, err := c.method(&config)
	if err == nil {
		err = config.Prepare()
	}
	if err == nil {
		err = m.Check(&config)
	}
	return err
}

// New returns the peer config.Rank of a run by the method of the configuration.
func (c *Catalog) New(config problem.Config) (problem.Peer, error) {
	m, err := c.method(&config)
	if err != nil {
		return nil, err
	}
	return m.New(config)
}

// method returns the method of the configuration, whose settings it checks.
func (c *Catalog) method(config *problem.Config) (problem.Method, error) {
	m, err := c.Lookup(config.Method.Name)
	if err == nil {
		err = config.Method.Check()
	}
	if err == nil && config.Problem != nil && config.Problem.FixedPoint != nil && m.Name() != problem.FixedPoint {
		err = fmt.Errorf("solver: %q is an iteration of its own, which has no other method: leave out %s", config.Problem.Name, m.Name())
	}
	return m, err
}

// Links returns the links of rank r in a run of this configuration, nil for an unknown method. Only
// Problem, Partition, Scheme and Method of the configuration are used.
func (c *Catalog) Links(config *problem.Config, r iterate.Rank) []iterate.Link {
	m, err := c.Lookup(config.Method.Name)
	if err != nil {
		return nil
	}
	return m.Links(config, r)
}

// New returns the peer c.Rank of a run by a method of this module.
func New(c problem.Config) (problem.Peer, error) { return Methods().New(c) }

// Links is Catalog.Links for the methods of this module.
func Links(c *problem.Config, r iterate.Rank) []iterate.Link { return Methods().Links(c, r) }
