// Package problems contains the built-in obstacle problems, with their exact solutions where known. A problem
// consists of pure functions that are cheap enough to be evaluated at every point of a large grid and safe
// for concurrent use.
package problems

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/p2pdc/p2pdc/internal/kernel"
	"github.com/p2pdc/p2pdc/internal/spelling"
	"github.com/p2pdc/p2pdc/problems/option"
	"github.com/p2pdc/p2pdc/solver/problem"
)

// Parameter is a number of a built-in problem that a user may set.
type Parameter struct {
	Name    string  `json:"name"`
	Value   float64 `json:"value"`   // the default or the value set by With
	Summary string  `json:"summary"` // the meaning and the admissible range
}

// Builtin is a built-in problem.
type Builtin struct {
	Name       string      `json:"name"`
	Summary    string      `json:"summary"`
	Reference  string      `json:"reference"` // source of the problem or of its exact solution
	Dimension  int         `json:"dimension"` // 1, 2 or 3
	Parameters []Parameter `json:"parameters"`
	Exact      bool        `json:"exact"` // the exact solution is known
	// Iteration: it is no obstacle problem; see Catalog.AddIteration. Its grid is that of its unknowns, whatever Make is given.
	Iteration bool `json:"iteration"`

	build        func(p *problem.Problem, v []float64) error
	enumerations []enumeration                    // parameters whose value is a word
	option       func(v []float64) *option.Option // the contract of an American option, or nil
}

// enumeration lists the words that a parameter may be set to. Its Value is the index of the word.
type enumeration struct {
	name  string
	words []string
}

// Text returns the value of a parameter in the form that With accepts.
func (b Builtin) Text(p Parameter) string {
	for _, l := range b.enumerations {
		if i := int(p.Value); l.name == p.Name && i >= 0 && i < len(l.words) {
			return l.words[i]
		}
	}
	return fmt.Sprint(p.Value)
}

// Option returns the contract of a built-in American option, and nil for other problems.
func (b Builtin) Option() *option.Option {
	if b.option == nil {
		return nil
	}
	return b.option(b.values())
}

func (b Builtin) values() []float64 {
	v := make([]float64, len(b.Parameters))
	for i, p := range b.Parameters {
		v[i] = p.Value
	}
	return v
}

// All returns the built-in problems, the reference case first.
func All() []Builtin {
	return []Builtin{
		membrane(), ball3D(), ball2D(), paraboloid(), quartic(3), quartic(2), jacksboro(),
		front(3), front(2), front(1), torsion(2), torsion(1), bearing(2), bearing(1), dam(2), dam(3),
		convection(3), convection(2), convection(1), varying(3), varying(2),
		american(option.Put), american(option.Call), americanBasket(2), americanBasket(3),
		perpetual(option.Put), perpetual(option.Call), perpetualGeometric(),
	}
}

// With returns a copy of b with parameters changed. Each setting has the form "name=value".
func (b Builtin) With(settings []string) (Builtin, error) {
	b.Parameters = slices.Clone(b.Parameters)
	seen := map[string]bool{}
	for _, s := range settings {
		name, text, found := strings.Cut(s, "=")
		name, text = strings.TrimSpace(name), strings.TrimSpace(text)
		if !found {
			return b, fmt.Errorf("problem %s: parameter %q is not of the form name=value", b.Name, s)
		}
		if seen[name] {
			return b, fmt.Errorf("problem %s: parameter %q is set twice", b.Name, name)
		}
		seen[name] = true
		if err := b.set(name, text); err != nil {
			return b, err
		}
	}
	return b, nil
}

func (b Builtin) set(name, text string) error {
	at := slices.IndexFunc(b.Parameters, func(p Parameter) bool { return p.Name == name })
	if at < 0 {
		if len(b.Parameters) == 0 {
			return fmt.Errorf("problem %s has no parameter %q; it has none", b.Name, name)
		}
		var names []string
		for _, p := range b.Parameters {
			names = append(names, p.Name)
		}
		return fmt.Errorf("problem %s has no parameter %q%s; it has %s",
			b.Name, name, spelling.Suggest(name, names), strings.Join(names, ", "))
	}
	for _, l := range b.enumerations {
		if l.name != name {
			continue
		}
		i := slices.Index(l.words, text)
		if i < 0 {
			return fmt.Errorf("problem %s: parameter %s=%q: want %s%s",
				b.Name, name, text, strings.Join(l.words, ", "), spelling.Suggest(text, l.words))
		}
		b.Parameters[at].Value = float64(i)
		return nil
	}
	v, err := strconv.ParseFloat(text, 64)
	if err != nil || !kernel.Finite(v) {
		return fmt.Errorf("problem %s: parameter %s=%q is not a finite number", b.Name, name, text)
	}
	b.Parameters[at].Value = v
	return nil
}

// Make returns the problem on a grid of n interior points per axis, with 1 on unused axes. A parameter out of
// range is an error.
func (b Builtin) Make(n [3]int) (*problem.Problem, error) {
	if err := CheckGrid(b.Dimension, n); err != nil {
		return nil, fmt.Errorf("problem %s: %w", b.Name, err)
	}
	p := &problem.Problem{
		Name:      b.Name,
		Dimension: b.Dimension,
		N:         n,
		Diffusion: problem.Coefficient{Value: 1},
	}
	if err := b.build(p, b.values()); err != nil {
		return nil, fmt.Errorf("problem %s: %w", b.Name, err)
	}
	return p, nil
}

// box sets the domain (lo, hi)^d.
func box(p *problem.Problem, lo, hi float64) {
	for a := range p.Dimension {
		p.Lo[a], p.Hi[a] = lo, hi
	}
}

// zero returns homogeneous Dirichlet data.
func zero(problem.Point) float64 { return 0 }

// flat sets the obstacle φ = 0.
func flat(p *problem.Problem) {
	p.Obstacle, p.Rows.Obstacle = zero, func(dst, _ []float64, _, _ float64) { clear(dst) }
}

// setExact sets the exact solution, and with it the boundary data.
func setExact(p *problem.Problem, f problem.Function) { p.Exact, p.Boundary = f, f }

// positive returns an error unless the values with names are positive.
func positive(v []float64, names ...string) error {
	for i, name := range names {
		if name != "" && !(v[i] > 0) {
			return fmt.Errorf("%s = %g: it must be positive", name, v[i])
		}
	}
	return nil
}

// fraction returns an error unless v is between 0 and 1.
func fraction(name string, v float64) error {
	if v <= 0 || v >= 1 {
		return fmt.Errorf("%s = %g: it must be between 0 and 1", name, v)
	}
	return nil
}
