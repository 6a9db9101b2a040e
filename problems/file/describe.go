package file

import (
	"encoding/hex"
	"fmt"
	"strings"

	"github.com/p2pdc/p2pdc/problems"
	"github.com/p2pdc/p2pdc/solver/problem"
)

// Description describes a problem, as text (String) or JSON.
type Description struct {
	Name      string       `json:"name"`
	Builtin   bool         `json:"builtin"`
	Dimension int          `json:"dimension"`
	Domain    [][2]float64 `json:"domain"`
	Equation  string       `json:"equation"`
	// functions of the problem, or summary and parameters of a built-in
	Entries     []Entry              `json:"entries"`
	Parameters  []problems.Parameter `json:"parameters,omitempty"`
	HasExact    bool                 `json:"has_exact"`
	Fingerprint string               `json:"fingerprint"` // SHA-256, hexadecimal
}

// Entry is one line of a description.
type Entry struct {
	Key  string `json:"key"`
	Text string `json:"text"`
}

// Check reads a problem file or a problem of the catalog and returns its description. It returns the errors of
// Open and, on a coarse grid, of Validate.
func Check(c *problems.Catalog, ref string) (Description, error) {
	s, err := Open(c, ref, nil)
	if err != nil {
		return Description{}, err
	}
	_, err = s.BuildValid([]int{checkPoints})
	return s.Describe(), err
}

// checkPoints is the number of points per axis of the coarse grid of Check.
const checkPoints = 31

// Describe returns the description of the problem.
func (s *Spec) Describe() Description {
	sum := s.Fingerprint()
	d := Description{
		Name:        s.Name(),
		Dimension:   s.Dimension(),
		Fingerprint: hex.EncodeToString(sum[:]),
	}
	if s.builtin != nil {
		s.describeBuiltin(&d)
		return d
	}
	doc := s.document
	if doc.option != nil {
		describeOption(&d, doc.option)
		return d
	}
	d.setDomain(doc.lo, doc.hi)
	d.HasExact = doc.exact.given()
	d.Equation = doc.equation()
	for _, f := range doc.fields() {
		if f.given() && f.Key != "velocity" {
			d.Entries = append(d.Entries, Entry{f.Key, oneLine(f.text)})
		}
	}
	if doc.evolves() {
		start := "max(obstacle, 0)"
		if doc.initial.given() {
			start = oneLine(doc.initial.text)
		}
		d.Entries = append(d.Entries, Entry{"time", fmt.Sprintf(
			"0 < t ≤ %g in %d steps of implicit Euler, Δt = %g; u = %s at t = 0",
			doc.end, doc.steps, doc.end/float64(doc.steps), start)})
	}
	if doc.hasVelocity() {
		var parts []string
		for a := range doc.dimension {
			parts = append(parts, doc.velocity[a].text)
		}
		text := "(" + strings.Join(parts, ", ") + "), central differences"
		if doc.upwind {
			text = strings.Replace(text, "central", "upwind", 1) + " where they are needed"
		}
		d.Entries = append(d.Entries, Entry{"velocity", text})
	}
	return d
}

func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }

func (s *Spec) describeBuiltin(d *Description) {
	b := s.builtin
	d.Builtin = true
	d.HasExact = b.Exact
	d.Parameters = b.Parameters
	d.Equation = "u ≥ φ, −Δu ≥ f, complementary"
	p, err := b.Make(smallest(b.Dimension))
	if b.Iteration {
		d.Equation = "x = F(x)"
	}
	if err == nil && p.Evolution != nil {
		d.Equation = "u ≥ φ, u_t − κΔu ≥ f, complementary"
	}
	d.Entries = []Entry{{"summary", b.Summary}, {"reference", b.Reference}}
	if b.Reference == "" {
		d.Entries = d.Entries[:1]
	}
	for _, p := range b.Parameters {
		d.Entries = append(d.Entries, Entry{p.Name, b.Text(p) + ": " + p.Summary})
	}
	if o := b.Option(); o != nil {
		describeOption(d, o)
	} else if err == nil && !b.Iteration {
		d.setDomain(p.Lo, p.Hi)
	}
}

func (d *Description) setDomain(lo, hi problem.Point) {
	for a := range d.Dimension {
		d.Domain = append(d.Domain, [2]float64{lo[a], hi[a]})
	}
}

// String returns the description as lines of text.
func (d Description) String() string {
	var b strings.Builder
	line := func(key, text string) { fmt.Fprintf(&b, "%-12s %s\n", key, text) }
	line("problem", d.Name)
	var axes []string
	for a, ends := range d.Domain {
		axes = append(axes, fmt.Sprintf("%g < %c < %g", ends[0], "xyz"[a], ends[1]))
	}
	if len(axes) > 0 {
		line("domain", strings.Join(axes, ", "))
		line("find u", d.Equation)
	} else {
		line("find x", d.Equation)
	}
	for _, e := range d.Entries {
		line(e.Key, e.Text)
	}
	if !d.HasExact && len(axes) > 0 {
		line("exact", "not known: max_error is not reported")
	}
	line("fingerprint", d.Fingerprint[:min(16, len(d.Fingerprint))])
	return b.String()
}

// fields returns the functions of the problem in the order of the keys.
func (d *document) fields() []field {
	return []field{d.obstacle, d.f, d.boundary, d.upper, d.diffusion, d.velocity[0], d.reaction, d.exact}
}

// hasVelocity reports whether the velocity is not the constant 0.
func (d *document) hasVelocity() bool {
	for a := range d.dimension {
		if v := d.velocity[a].formula; !v.constant || v.value != 0 {
			return true
		}
	}
	return false
}

// equation returns the complementarity problem with its terms.
func (d *document) equation() string {
	operator := "−div(κ∇u)"
	if k := d.diffusion.formula; k.constant && k.value == 1 {
		operator = "−Δu"
	}
	if d.hasVelocity() {
		operator += " + b·∇u"
	}
	if c := d.reaction.formula; !c.constant || c.value != 0 {
		operator += " + c·u"
	}
	if d.evolves() {
		operator = "u_t " + strings.Replace("+ "+operator, "+ −", "− ", 1)
	}
	switch {
	case !d.upper.given():
		return "u ≥ φ, " + operator + " ≥ f, complementary; φ the obstacle"
	case !d.obstacle.given():
		return "u ≤ ψ, " + operator + " ≤ f, complementary; ψ the upper obstacle"
	}
	return "φ ≤ u ≤ ψ, " + operator + " = f between; φ the obstacle, ψ the upper one"
}
