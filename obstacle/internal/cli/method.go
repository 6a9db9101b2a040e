package cli

import (
	"cmp"
	"slices"
	"strconv"

	"github.com/spf13/pflag"

	"github.com/p2pdc/p2pdc/obstacle/catalog"
	"github.com/p2pdc/p2pdc/solver/iterate"
	"github.com/p2pdc/p2pdc/solver/problem"
)

type methodFlags struct {
	problem.MethodConfig        // InnerCycles and Coarse are not set
	innerCycles          string // a number, or auto
	coarse               string // a number, auto or none
}

func (m *methodFlags) add(f *pflag.FlagSet, c *catalog.Set) {
	f.StringVar(&m.Name, "method", problem.Richardson, "method of iteration: "+catalog.Words(c.Methods.Names()))
	f.StringVar(&m.Local, "local", problem.Multigrid,
		"schwarz: method of a peer on its own box: richardson, sor or multigrid")
	f.IntVar(&m.Overlap, "overlap", defaultOverlap, "schwarz: layers by which boxes overlap, 0 to 8")
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

const defaultOverlap = 2

// config checks the flags; every error is bad usage.
func (m *methodFlags) config(s iterate.Scheme, known *catalog.Set) (problem.MethodConfig, error) {
	c, names := m.MethodConfig, known.Methods.Names()
	switch {
	case !slices.Contains(names, c.Name):
		return c, badInput(catalog.Unknown("method", c.Name, names))
	case c.Omega != 0 && !(c.Omega > 0 && c.Omega < 2):
		return c, usage("--omega %v: want a number above 0 and below 2, or 0 to have it chosen", c.Omega)
	case c.SweepsPerPass < 0:
		return c, usage("--sweeps-per-pass %d: want 1 or more, or 0 to have it chosen", c.SweepsPerPass)
	case !(c.Step > 0 && c.Step <= 1):
		return c, usage("--step %v: want a number above 0 and at most 1, in units of 1/max a_ii, to have a contraction",
			c.Step)
	case c.Step != 1 && c.Name != problem.Richardson:
		return c, usage("--step %v needs --method richardson", c.Step)
	}
	if err := cmp.Or(checkWord("local", c.Local), checkWord("cycle", c.Cycle)); err != nil {
		return c, err
	}
	if c.Step == 1 {
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
		return c, usage("--inner-cycles %q: want a whole number of cycles, 1 or more, or auto", m.innerCycles)
	case m.coarse == "none":
		c.Coarse = -1
	case c.Coarse == 0 && m.coarse != "auto":
		return c, usage("--coarse %q: want a number of points, 1 or more, auto or none", m.coarse)
	}
	return c, nil
}

// positive parses a whole number from 1; 0 if s is none.
func positive(s string) int {
	n, err := strconv.Atoi(s)
	if err != nil || n < 1 || strconv.Itoa(n) != s {
		return 0
	}
	return n
}
