package problems

import (
	"fmt"
	"slices"
	"strings"

	"github.com/p2pdc/p2pdc/internal/spelling"
	"github.com/p2pdc/p2pdc/solver/iterate"
	"github.com/p2pdc/p2pdc/solver/problem"
)

// Catalog is a list of problems by name. The program solves the problems of its catalog. A Catalog must not be
// changed while it is in use.
type Catalog struct{ all []Builtin }

// Builtins returns a new catalog of the built-in problems.
func Builtins() *Catalog { return &Catalog{All()} }

// Add adds a problem. b describes it: Name, Summary, Dimension and, if it has any, Parameters are required. build
// sets the domain, the functions and the coefficients of p, whose name, dimension and grid are set. v contains the
// values of b.Parameters in their order. build is called in every process and must return the same problem for the
// same values. An error of build rejects the values.
func (c *Catalog) Add(b Builtin, build func(p *problem.Problem, v []float64) error) error {
	switch {
	case b.Name == "" || build == nil:
		return fmt.Errorf("problem %q: a name and a function that builds it are required", b.Name)
	case strings.ContainsAny(b.Name, ", ") || spelling.Visible(b.Name) != b.Name:
		return fmt.Errorf("problem %q: want a name that can be printed, without commas and spaces", b.Name)
	case b.Dimension < 1 || b.Dimension > 3:
		return fmt.Errorf("problem %s: dimension %d: want 1, 2 or 3", b.Name, b.Dimension)
	case slices.Contains(c.Names(), b.Name):
		return fmt.Errorf("problem %s: the catalog already has a problem of this name", b.Name)
	}
	b.build = build
	c.all = append(c.all, b)
	return nil
}

// AddIteration adds an iteration x ← F(x), which is then named, run, compared and simulated like a problem; see
// problem.FromFixedPoint. b describes it: Name, Summary and, if it has any, Parameters. build returns the iteration for the
// values of b.Parameters in their order. It is called in every process and must return an equal one for equal values. An error
// rejects the values.
func (c *Catalog) AddIteration(b Builtin, build func(v []float64) (iterate.FixedPoint, error)) error {
	if build == nil {
		return fmt.Errorf("iteration %q: a function that builds it is required", b.Name)
	}
	b.Dimension, b.Iteration = 1, true
	return c.Add(b, func(p *problem.Problem, v []float64) error {
		f, err := build(v)
		if err == nil {
			err = f.Check()
		}
		if err == nil {
			*p = *problem.FromFixedPoint(b.Name, f)
		}
		return err
	})
}

// All returns the problems in the order in which they were added, the built-in ones first.
func (c *Catalog) All() []Builtin { return slices.Clone(c.all) }

// Names returns their names in the same order.
func (c *Catalog) Names() []string {
	names := make([]string, len(c.all))
	for i, b := range c.all {
		names[i] = b.Name
	}
	return names
}

// Lookup returns the problem of that name. The error of an unknown name suggests a similar one and lists all.
func (c *Catalog) Lookup(name string) (Builtin, error) {
	names := c.Names()
	if i := slices.Index(names, name); i >= 0 {
		return c.all[i], nil
	}
	return Builtin{}, fmt.Errorf("no built-in problem %q%s; there are %s", name, spelling.Suggest(name, names),
		strings.Join(names, ", "))
}

// Lookup returns the built-in problem of that name; see Catalog.Lookup.
func Lookup(name string) (Builtin, error) { return Builtins().Lookup(name) }
