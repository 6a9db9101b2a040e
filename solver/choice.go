package solver

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/p2pdc/p2pdc/solver/problem"
)

// Auto is the value of --method that leaves the method to Choose.
const Auto = "auto"

// Run describes a run for Catalog.Choose.
type Run struct {
	// Config is that of the run, with a method that has no name. Without a partition, the number of peers is chosen
	// after the method.
	problem.Config
	// Clusters is the number of clusters that the peers are declared to form, 0 if none are declared.
	Clusters int
	// Given names the flags of methods that the user gave, without "--", such as "omega". Their methods come first.
	Given []string
}

// Choice is the method that Choose selects.
type Choice struct {
	Name  string
	Local string // of Schwarz; empty: its default
	Why   string // the reason, without the name
	// Next is the method to try if this one does not converge, empty if no other accepts the run.
	Next string
	// Others says of each other method what it would need, or why it does not fit.
	Others []Other

	work work
}

// Faster reports whether both methods of a run in lockstep have estimates and another one needs more than twice the work.
func (c *Choice) Faster(than string) bool {
	own, known := c.work.estimate(c.Name)
	other, comparable := c.work.estimate(than)
	return known && comparable && other > 2*own
}

// FlowDominates reports whether the work of the methods is not known because a flow dominates the diffusion.
func (c *Choice) FlowDominates() bool { return c.work.dominates }

// Set sets the chosen method in m. Of two methods of the whole grid, the next one takes part in the run.
func (c *Choice) Set(m *problem.MethodConfig) {
	m.Name = c.Name
	m.Local = cmp.Or(c.Local, m.Local)
	whole := []string{problem.SOR, problem.Multigrid}
	if m.Next = ""; slices.Contains(whole, c.Name) && slices.Contains(whole, c.Next) {
		m.Next = c.Next
	}
}

// Other is a method that was not chosen, and why.
type Other struct {
	Name string `json:"method"`
	Why  string `json:"why"`
}

// Choose selects the method of a run that names none: one of richardson, sor, multigrid, schwarz and fas, as far as the
// catalog has them and they accept the run, and problem.FixedPoint for an iteration. It evaluates the coefficients at a few thousand points at most. Equal arguments give
// equal choices, so every process of a run may call it. Its error says which flags exclude each other.
func (c *Catalog) Choose(r Run) (Choice, error) {
	if r.Problem.FixedPoint != nil {
		return Choice{Name: problem.FixedPoint, Why: "the problem is an iteration of its own"}, nil
	}
	e := estimateWork(r.Problem, r.Tolerance)
	ranked, err := r.given()
	if err == nil && ranked == nil {
		ranked = r.rank(&e)
	}
	if err != nil {
		return Choice{}, err
	}
	chosen := -1
	refused := make([]error, len(ranked))
	for i := range ranked {
		switch refused[i] = c.accepts(&r, &ranked[i]); {
		case refused[i] != nil:
		case chosen < 0:
			chosen = i
		case ranked[chosen].Next == "":
			ranked[chosen].Next = ranked[i].Name
		}
	}
	out := ranked[max(chosen, 0)] // if all are refused, the caller's check of the first one says why
	out.work = e
	for _, name := range []string{problem.Richardson, problem.SOR, problem.Multigrid, problem.Schwarz, problem.FAS} {
		if name == out.Name || !slices.Contains(c.Names(), name) {
			continue
		}
		o := Other{name, e.against(name, r.lockstep())}
		whole := slices.Contains([]string{problem.Richardson, problem.SOR, problem.Multigrid}, name)
		switch {
		case name == problem.Schwarz && out.Name == problem.FAS:
			o.Why = "it relaxes two to ten times as much, since its own coarse grid carries values less far"
		case whole && (out.Name == problem.FAS || out.Name == problem.Schwarz) && r.lockstep() && len(r.Given) == 0:
			o.Why = e.needs(name) + ", and in each it waits for messages between the clusters"
		}
		if i := slices.IndexFunc(ranked, func(x Choice) bool { return x.Name == name }); i >= 0 && refused[i] != nil {
			o.Why = strings.TrimPrefix(refused[i].Error(), name+": ")
		}
		out.Others = append(out.Others, o)
	}
	return out, nil
}

// accepts returns an error if the catalog lacks a method or the method refuses the run.
func (c *Catalog) accepts(r *Run, choice *Choice) error {
	if _, err := c.Lookup(choice.Name); err != nil {
		return err
	}
	config := r.Config
	if r.Partition.Peers() == 0 {
		if choice.Name != problem.FAS {
			return nil
		}
		var err error
		if config.Partition, _, err = problem.SlabsOrBoxes(r.Problem.N, manyPeers, nil); err != nil {
			return err
		}
	}
	config.Method.Name, config.Method.Local = choice.Name, choice.Local
	return c.Check(config)
}

// manyPeers is the number of peers for which FAS, which needs boxes of several points, is checked if it is not known.
const manyPeers = 64

func (r *Run) lockstep() bool { return r.Scheme.Lockstep() }

// flagMethods are the methods of the flags that belong to one.
var flagMethods = map[string]string{
	"step": problem.Richardson, "order": problem.Richardson, "sweeps-per-pass": problem.Richardson,
	"balance": problem.Richardson, "omega": problem.SOR, "cycle": problem.Multigrid,
	"local": problem.Schwarz, "overlap": problem.Schwarz, "inner-cycles": problem.Schwarz, "coarse": problem.Schwarz,
	"flexible": problem.Schwarz,
}

// Unused returns an error that names the first of the given flags of methods that m does not use, nil if it uses all of
// them. --balance and --order are left to the checks of the methods, and all flags to a method that is none of this module.
func Unused(given []string, m problem.MethodConfig) error {
	of := []string{m.Name}
	name := m.Name
	switch m.Name {
	case problem.Schwarz:
		local := cmp.Or(m.Local, problem.Multigrid)
		of, name = append(of, local), m.Name+" with "+local
	case problem.FAS:
		of = append(of, problem.Multigrid) // the replicated grids
	case problem.Richardson, problem.SOR, problem.Multigrid, problem.FixedPoint:
	default:
		return nil
	}
	for _, f := range given {
		owner, known := flagMethods[f]
		if !known || f == "balance" || f == "order" || slices.Contains(of, owner) {
			continue
		}
		instead := "--method " + owner
		if m.Name == problem.FixedPoint {
			return fmt.Errorf("--%s is for method %s, and the problem is an iteration of its own: leave it out", f, owner)
		}
		if m.Name == problem.Schwarz && owner != problem.Richardson {
			instead = "--local " + owner
		}
		return fmt.Errorf("--%s is for method %s, and the method is %s: leave it out, or give %s", f, owner, name, instead)
	}
	return nil
}

// given returns the method that the given flags belong to, nil if there are none. A flag of sor or multigrid beside one
// of schwarz is for the method of a peer on its box.
func (r *Run) given() ([]Choice, error) {
	flags := map[string]string{} // by method, the first one
	for _, f := range r.Given {
		if name, known := flagMethods[f]; known && flags[name] == "" {
			flags[name] = f
		}
	}
	if slices.Contains(r.Given, "local") && r.Method.Local != "" && flags[r.Method.Local] == "" {
		flags[r.Method.Local] = "local " + r.Method.Local
	}
	var base string
	for _, name := range []string{problem.Richardson, problem.SOR, problem.Multigrid} {
		switch {
		case flags[name] == "":
		case base != "":
			return nil, exclude(flags, base, name)
		default:
			base = name
		}
	}
	box := flags[problem.Schwarz] != ""
	switch {
	case base == "" && !box:
		return nil, nil
	case base == "":
		return []Choice{{Name: problem.Schwarz, Why: "--" + flags[problem.Schwarz]}}, nil
	case box && base == problem.Richardson && r.Method.Local != base:
		return nil, exclude(flags, base, problem.Schwarz)
	case box:
		return []Choice{{Name: problem.Schwarz, Local: base, Why: "--" + flags[problem.Schwarz]}}, nil
	case !r.lockstep() && base != problem.Richardson:
		return []Choice{{Name: problem.Schwarz, Local: base, Why: fmt.Sprintf(
			"--%s; with scheme %s, %s is the method of each peer on its box", flags[base], r.Scheme.Name(), base)}}, nil
	}
	return []Choice{{Name: base, Why: "--" + flags[base]}}, nil
}

// givenSettings returns the names of the flags of the settings of a configuration that differ from their zero values.
func givenSettings(c *problem.Config) (names []string) {
	m := &c.Method
	for _, s := range []struct {
		name  string
		given bool
	}{
		{"step", m.Step != 0}, {"order", c.Order != problem.Jacobi}, {"sweeps-per-pass", m.SweepsPerPass != 0},
		{"balance", c.Balance}, {"omega", m.Omega != 0}, {"cycle", m.Cycle != ""}, {"local", m.Local != ""},
		{"overlap", m.Overlap != 0}, {"inner-cycles", m.InnerCycles != 0}, {"coarse", m.Coarse != 0},
		{"flexible", m.Flexible},
	} {
		if s.given {
			names = append(names, s.name)
		}
	}
	return names
}

// exclude returns the error of flags of two methods.
func exclude(flags map[string]string, a, b string) error {
	return fmt.Errorf("--%s is for method %s and --%s for method %s: leave one of them out, or give --method",
		flags[a], a, flags[b], b)
}

// rank returns the methods for the run, the best one first.
func (r *Run) rank(e *work) []Choice {
	var (
		richardson = Choice{Name: problem.Richardson, Why: "no other method accepts this run"}
		boxes      = Choice{Name: problem.Schwarz}
		replicated = Choice{Name: problem.FAS}
	)
	if e.corners {
		boxes.Local = problem.SOR
	}
	if !r.lockstep() {
		boxes.Why = fmt.Sprintf("scheme %s: each peer solves on its own box, from values of any age", r.Scheme.Name())
		replicated.Why = fmt.Sprintf("scheme %s: each peer has the coarse grids of the whole domain, and uses values of any age",
			r.Scheme.Name())
		if e.corners || e.jumps() {
			return []Choice{boxes, replicated, richardson}
		}
		return []Choice{replicated, boxes, richardson}
	}
	multigrid := Choice{Name: problem.Multigrid, Why: e.compared(problem.Multigrid)}
	sor := Choice{Name: problem.SOR, Why: e.compared(problem.SOR)}
	out := []Choice{multigrid, sor, richardson}
	switch {
	case e.corners && e.symmetric:
		sor.Why = cornersText
		out = []Choice{sor, multigrid, richardson}
	case e.turns:
		sor.Why = turnsText
		out = []Choice{sor, multigrid, richardson}
	case e.jumps():
	case e.sor <= e.multigrid:
		out = []Choice{sor, multigrid, richardson}
	}
	if r.Clusters > 1 && r.Partition.Peers() != 1 && !e.jumps() {
		boxes.Why = fmt.Sprintf("the peers form %d clusters: it exchanges values once for many sweeps", r.Clusters)
		replicated.Why = fmt.Sprintf("the peers form %d clusters: a cycle over all grids waits for two messages", r.Clusters)
		out = append([]Choice{replicated, boxes}, out...)
	}
	return out
}
