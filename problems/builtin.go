// Package problems holds the built-in obstacle problems, one file each, with
// their exact solutions beside them where one is known. It is pure: a problem
// is a handful of closures over a few numbers, cheap enough to be evaluated at
// every point of a large grid, and safe to be called from several goroutines.
package problems

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/p2pdc/p2pdc/internal/spelling"
	"github.com/p2pdc/p2pdc/problems/option"
	"github.com/p2pdc/p2pdc/solver/problem"
)

// Parameter is a number of a built-in problem that a user may set.
type Parameter struct {
	Name    string  `json:"name"`
	Value   float64 `json:"value"`   // the default, or what With set
	Summary string  `json:"summary"` // what it is, with its admissible range
}

// Builtin is a built-in problem.
type Builtin struct {
	Name       string      `json:"name"`
	Summary    string      `json:"summary"`
	Reference  string      `json:"reference"` // where the problem or its exact solution comes from
	Dimension  int         `json:"dimension"` // 1, 2 or 3
	Parameters []Parameter `json:"parameters"`
	Exact      bool        `json:"exact"` // the exact solution is known

	build  func(p *problem.Problem, v []float64) error
	words  []wordList                       // parameters whose value is a word
	option func(v []float64) *option.Option // nil: it is none
}

// wordList are the words that a parameter may be; its Value is the place of one.
type wordList struct {
	name  string
	words []string
}

// Text is a parameter's value as With takes it.
func (b Builtin) Text(p Parameter) string {
	for _, l := range b.words {
		if i := int(p.Value); l.name == p.Name && i >= 0 && i < len(l.words) {
			return l.words[i]
		}
	}
	return fmt.Sprint(p.Value)
}

// Option is the contract of a built-in American option, nil for every other problem.
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

// All lists the built-in problems, the reference case first.
func All() []Builtin {
	return []Builtin{
		membrane(), ball3D(), ball2D(), paraboloid(), quartic(3), quartic(2), jacksboro(),
		front(3), front(2), front(1), torsion(2), torsion(1), bearing(2), bearing(1), dam(2), dam(3),
		convection(3), convection(2), convection(1), varying(3), varying(2),
		american(option.Put), american(option.Call), americanBasket(2), americanBasket(3),
		perpetual(option.Put), perpetual(option.Call), perpetualGeometric(),
	}
}

// With returns the built-in with parameters changed. Each setting is
// "name=value". b itself is left as it is.
func (b Builtin) With(settings []string) (Builtin, error) {
	b.Parameters = slices.Clone(b.Parameters)
	for i, s := range settings {
		name, text, found := strings.Cut(s, "=")
		name, text = strings.TrimSpace(name), strings.TrimSpace(text)
		if !found {
			return b, fmt.Errorf("problem %s: parameter %q is not of the form name=value", b.Name, s)
		}
		for _, earlier := range settings[:i] {
			if n, _, _ := strings.Cut(earlier, "="); strings.TrimSpace(n) == name {
				return b, fmt.Errorf("problem %s: parameter %q is set twice", b.Name, name)
			}
		}
		if err := b.set(name, text); err != nil {
			return b, err
		}
	}
	return b, nil
}

func (b Builtin) set(name, text string) error {
	at := slices.IndexFunc(b.Parameters, func(p Parameter) bool { return p.Name == name })
	if at < 0 {
		return fmt.Errorf("problem %s has no parameter %q%s", b.Name, name, b.listParameters(name))
	}
	for _, l := range b.words {
		if l.name != name {
			continue
		}
		i := slices.Index(l.words, text)
		if i < 0 {
			return fmt.Errorf("problem %s: parameter %s=%q: want %s%s", b.Name, name, text, strings.Join(l.words, ", "), spelling.Suggest(text, l.words))
		}
		b.Parameters[at].Value = float64(i)
		return nil
	}
	v, err := strconv.ParseFloat(text, 64)
	if err != nil || math.IsNaN(v) || math.IsInf(v, 0) {
		return fmt.Errorf("problem %s: parameter %s=%q is not a finite number", b.Name, name, text)
	}
	b.Parameters[at].Value = v
	return nil
}

func (b Builtin) listParameters(wrong string) string {
	if len(b.Parameters) == 0 {
		return "; it has none"
	}
	names := make([]string, len(b.Parameters))
	for i, p := range b.Parameters {
		names[i] = p.Name
	}
	return spelling.Suggest(wrong, names) + "; it has " + strings.Join(names, ", ")
}

// Make builds the problem on a grid of n interior points per axis; axes that the
// problem does not use hold 1. A parameter out of its range is refused.
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

// zero is homogeneous Dirichlet data.
func zero(problem.Point) float64 { return 0 }

func zeroRow(dst, _ []float64, _, _ float64) { clear(dst) }
