package cli

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"github.com/p2pdc/p2pdc/internal/spelling"
	"github.com/p2pdc/p2pdc/obstacle/catalog"
	"github.com/p2pdc/p2pdc/obstacle/internal/report"
	"github.com/p2pdc/p2pdc/solver"
	"github.com/p2pdc/p2pdc/solver/iterate"
	"github.com/p2pdc/p2pdc/solver/problem"
)

type methodFlags struct {
	problem.MethodConfig                // InnerCycles and Coarse are not set; Name may be solver.Auto
	why                  string         // why the method is Name; empty: --method
	several              bool           // the method is one of several that share the flags, and ignores those of the others
	flags                *pflag.FlagSet // nil: none is given
	innerCycles          string         // a number, or auto
	coarse               string         // a number, auto or none
}

func (m *methodFlags) add(f *pflag.FlagSet, c *catalog.Set) {
	m.flags = f
	f.StringVar(&m.Name, "method", solver.Auto, "method of iteration: "+catalog.Words(methodNames(c))+
		" (auto: chosen by problem, scheme and peers; see explain)")
	f.StringVar(&m.Local, "local", problem.Multigrid,
		"schwarz: method of a peer on its own box: richardson, sor or multigrid")
	f.IntVar(&m.Overlap, "overlap", problem.DefaultOverlap, "schwarz: layers by which boxes overlap, 0 to 8")
	f.StringVar(&m.innerCycles, "inner-cycles", "auto",
		"schwarz: cycles of the local method between two exchanges, or auto (measured)")
	f.StringVar(&m.coarse, "coarse", "auto",
		"schwarz: maximum number of points of the coarse grid, none or auto (1/64, and unless sync 8 per peer)")
	f.BoolVar(&m.Flexible, "flexible", false, "schwarz: send values before the local solve has finished")
	f.Float64Var(&m.Omega, "omega", 0, "sor: relaxation factor, above 0 and below 2 (0: from the observed rate)")
	f.Float64Var(&m.Step, "step", 1, "richardson: step in units of 1/max a_ii, above 0 and at most 1")
	f.StringVar(&m.Cycle, "cycle", "auto", "multigrid: v, w or auto")
	f.IntVar(&m.SweepsPerPass, "sweeps-per-pass", 0,
		"richardson on one peer: sweeps in one pass over memory (0: from the size of the caches, 1: one)")
}

// studies makes Richardson the default, for commands that study schemes.
func (m *methodFlags) studies(f *pflag.FlagSet) {
	m.Name = problem.Richardson
	f.Lookup("method").DefValue = m.Name
}

// methodNames returns the values of --method. Iterations have a method of their own, which is not chosen.
func methodNames(c *catalog.Set) []string {
	own := func(name string) bool { return name == problem.FixedPoint }
	return append([]string{solver.Auto}, slices.DeleteFunc(c.Methods.Names(), own)...)
}

// givenMethodFlags returns the flags that the user gave and that belong to a method.
func (q *request) givenMethodFlags() (names []string) {
	for _, name := range methodFlagNames() {
		if name != "order" && q.method.flags != nil && q.method.flags.Changed(name) {
			names = append(names, name)
		}
	}
	if q.order != problem.Jacobi.String() {
		names = append(names, "order")
	}
	if q.balance == "on" && q.Parts <= 1 {
		names = append(names, "balance")
	}
	return names
}

// chooseMethod sets the method of w, for the partition if it is known. clusters are the labels of the peers that are
// declared.
func (q *request) chooseMethod(w *work, clusters []string) error {
	m := q.method
	if w.methodWhy = cmp.Or(m.why, "--method"); m.Name == solver.Auto {
		run := solver.Run{Config: q.config(w), Clusters: distinct(clusters), Given: q.givenMethodFlags()}
		var err error
		if run.Method, err = m.config(w.scheme, q.catalog); err != nil {
			return err
		}
		run.Method.Local, run.Method.Flexible = m.Local, m.Flexible
		choice, err := q.catalog.Methods.Choose(run)
		if err != nil {
			return badInput(err)
		}
		if m.Name = choice.Name; choice.Local != "" {
			m.Local = choice.Local
		}
		w.methodWhy, w.choice = choice.Why, choice
	}
	var err error
	if w.method, err = m.config(w.scheme, q.catalog); err != nil {
		return err
	}
	if w.choice.Name == w.method.Name {
		w.choice.Set(&w.method)
	}
	if !m.several {
		w.alternatives = q.alternatives(w, clusters)
	}
	if w.method.Name != m.Name && m.why != "" {
		w.methodWhy = fmt.Sprintf("%s, %s: with scheme %s, it is the method of each peer on its box", m.why, m.Name,
			w.scheme.Name())
	}
	if !m.several {
		if err := solver.Unused(q.givenMethodFlags(), w.method); err != nil {
			return badInput(err)
		}
	}
	if w.order != problem.Jacobi && w.method.Name != problem.Richardson {
		return usage("--order %v with --method %s: only %s has an order of planes", w.order, w.method.Name,
			problem.Richardson)
	}
	return nil
}

// alternatives returns the methods that the program would choose instead of that of w.
func (q *request) alternatives(w *work, clusters []string) (out report.Alternatives) {
	run := solver.Run{Config: q.config(w), Clusters: distinct(clusters)}
	run.Method = problem.MethodConfig{}
	if w.choice.Name == "" || strings.HasPrefix(w.choice.Why, "--") {
		if c, err := q.catalog.Methods.Choose(run); err == nil {
			out.Otherwise, out.Faster = c.Name, c.Faster(w.method.Name)
			if c.Name == w.method.Name {
				out.Next = c.Next
			}
			var m problem.MethodConfig
			if c.Set(&m); c.FlowDominates() && m.Next != "" {
				out = report.Alternatives{Alternates: m.Name + " and " + m.Next}
			}
		}
	} else if w.method.Next == "" {
		out.Next = w.choice.Next
	}
	out.Omega = w.method.Omega
	if w.scheme.Lockstep() {
		return out
	}
	run.Scheme = iterate.Synchronous()
	if c, err := q.catalog.Methods.Choose(run); err == nil {
		out.Lockstep = c.Name
	}
	return out
}

// checkShared returns an error for a flag that none of the methods uses under any of the schemes.
func (q *request) checkShared(methods, schemes []string) error {
	q.method.several = true
	unused := map[string]error{}
	var used []string
	for _, name := range methods {
		for _, scheme := range schemes {
			m := q.method
			m.Name = name
			s, err := q.catalog.Scheme(scheme, nil)
			if err != nil {
				return nil // its rows say so
			}
			c, err := m.config(s, q.catalog)
			if err != nil {
				return err
			}
			for _, flag := range q.givenMethodFlags() {
				if err := solver.Unused([]string{flag}, c); err == nil {
					used = append(used, flag)
				} else {
					unused[flag] = cmp.Or(unused[flag], err)
				}
			}
		}
	}
	for _, flag := range q.givenMethodFlags() {
		if !slices.Contains(used, flag) && unused[flag] != nil {
			return badInput(unused[flag])
		}
	}
	return nil
}

// distinct returns the number of different labels; a peer without a label counts for none.
func distinct(labels []string) int {
	seen := map[string]bool{}
	for _, l := range labels {
		seen[l] = true
	}
	delete(seen, "")
	return len(seen)
}

// methodSynonyms are other names of methods.
var methodSynonyms = map[string]string{
	"jacobi": problem.Richardson, "gauss-seidel": problem.SOR, "gaussseidel": problem.SOR, "gs": problem.SOR,
	"mg": problem.Multigrid, "ras": problem.Schwarz,
}

// config checks the flags; every error is bad usage.
func (m *methodFlags) config(s iterate.Scheme, known *catalog.Set) (problem.MethodConfig, error) {
	c, names := m.MethodConfig, methodNames(known)
	switch {
	case c.Name != problem.FixedPoint && !slices.Contains(names, c.Name):
		if same := methodSynonyms[strings.ToLower(c.Name)]; same != "" {
			return c, usage("--method %q%s: want %s", c.Name, spelling.Suggest(same, []string{same}), catalog.Words(names))
		}
		return c, badInput(catalog.Unknown("method", c.Name, names))
	case c.Omega != 0 && !(c.Omega > 0 && c.Omega < 2):
		return c, usage("--omega %v: want a number above 0 and below 2, or 0 to have it chosen", c.Omega)
	case c.SweepsPerPass < 0:
		return c, usage("--sweeps-per-pass %d: want 1 or more, or 0 to have it chosen", c.SweepsPerPass)
	case !(c.Step > 0 && c.Step <= 1):
		return c, usage("--step %v: want a number above 0 and at most 1, in units of 1/max a_ii, to have a contraction",
			c.Step)
	}
	if err := cmp.Or(checkWord("local", c.Local), checkWord("cycle", c.Cycle)); err != nil {
		return c, err
	}
	if c.Step == 1 || c.Name != problem.Richardson && c.Name != solver.Auto {
		c.Step = 0
	}
	if c.Cycle == "auto" {
		c.Cycle = ""
	}
	if (c.Name == problem.SOR || c.Name == problem.Multigrid) && !s.Lockstep() {
		// A method of the whole grid needs all peers at the same iterate. Under other schemes it becomes the local
		// method of overlapping boxes.
		c.Name, c.Local = problem.Schwarz, c.Name
	}
	if c.Name != problem.Schwarz {
		c.Local, c.Overlap, c.Flexible = "", 0, false
		return c, nil
	}
	c.InnerCycles, c.Coarse = positive(m.innerCycles), positive(m.coarse)
	switch {
	case c.Overlap < 0 || c.Overlap > problem.MaxOverlap:
		return c, usage("--overlap %d: want 0 to %d", c.Overlap, problem.MaxOverlap)
	case c.InnerCycles == 0 && m.innerCycles != "auto":
		return c, usage("--inner-cycles %q: want a whole number of cycles, 1 to 2147483647, or auto", m.innerCycles)
	case m.coarse == "none":
		c.Coarse = -1
	case c.Coarse == 0 && m.coarse != "auto":
		return c, usage("--coarse %q: want a number of points, 1 to 2147483647, auto or none", m.coarse)
	}
	return c, nil
}

// positive parses a whole number from 1 to 2³¹−1; 0 if s is none.
func positive(s string) int {
	n, err := strconv.Atoi(s)
	if err != nil || n < 1 || n > math.MaxInt32 || strconv.Itoa(n) != s {
		return 0
	}
	return n
}
