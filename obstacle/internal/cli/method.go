package cli

import (
	"slices"
	"strconv"

	"github.com/spf13/pflag"

	"github.com/p2pdc/p2pdc/obstacle/catalog"
	"github.com/p2pdc/p2pdc/solver/iterate"
	"github.com/p2pdc/p2pdc/solver/problem"
)

// methodFlags are the flags of the method of iteration.
type methodFlags struct {
	name          string
	local         string
	overlap       int
	innerCycles   string
	coarse        string
	flexible      bool
	omega         float64
	step          float64
	cycle         string
	sweepsPerPass int
}

func (m *methodFlags) add(f *pflag.FlagSet, c *catalog.Set) {
	f.StringVar(&m.name, "method", problem.Richardson, "method of iteration: "+catalog.Words(c.Methods.Names()))
	f.StringVar(&m.local, "local", problem.Multigrid,
		"schwarz: method of a peer on its own box: richardson, sor or multigrid")
	f.IntVar(&m.overlap, "overlap", defaultOverlap, "schwarz: layers by which boxes overlap, 0 to 8")
	f.StringVar(&m.innerCycles, "inner-cycles", "auto",
		"schwarz: cycles of the local method between two exchanges, or auto (measured)")
	f.StringVar(&m.coarse, "coarse", "auto",
		"schwarz: maximum number of points of the coarse grid, none or auto (1/64, and unless sync 8 per peer)")
	f.BoolVar(&m.flexible, "flexible", false, "schwarz: send values before the local solve has finished")
	f.Float64Var(&m.omega, "omega", 0, "sor: relaxation factor, above 0 and below 2 (0: from the observed rate)")
	f.Float64Var(&m.step, "step", 1, "richardson: step in units of 1/max a_ii, above 0 and at most 1")
	f.StringVar(&m.cycle, "cycle", "auto", "multigrid: v, w or auto")
	f.IntVar(&m.sweepsPerPass, "sweeps-per-pass", 0,
		"richardson on one peer: sweeps in one pass over memory (0: from the size of the caches, 1: one)")
}

// defaultOverlap of Schwarz.
const defaultOverlap = 2

// locals returns the values of --local.
func locals() []string { return []string{problem.Richardson, problem.SOR, problem.Multigrid} }

// config reads the flags; every error is bad usage.
func (m *methodFlags) config(s iterate.Scheme, known *catalog.Set) (problem.MethodConfig, error) {
	c := problem.MethodConfig{Name: m.name}
	if names := known.Methods.Names(); !slices.Contains(names, m.name) {
		return c, badInput(catalog.Unknown("method", m.name, names))
	}
	if !slices.Contains(locals(), m.local) {
		return c, badInput(catalog.Unknown("local", m.local, locals()))
	}
	if m.omega != 0 && !(m.omega > 0 && m.omega < 2) {
		return c, usage("--omega %v: want a number above 0 and below 2, or 0 to have it chosen", m.omega)
	}
	if m.sweepsPerPass < 0 {
		return c, usage("--sweeps-per-pass %d: want 1 or more, or 0 to have it chosen", m.sweepsPerPass)
	}
	c.Omega, c.Together = m.omega, m.sweepsPerPass
	if !(m.step > 0 && m.step <= 1) {
		return c, usage("--step %v: want a number above 0 and at most 1, in units of 1/max a_ii, to have a contraction",
			m.step)
	}
	if m.step != 1 {
		if m.name != problem.Richardson {
			return c, usage("--step %v needs --method richardson", m.step)
		}
		c.Step = m.step
	}
	switch m.cycle {
	case "v", "w":
		c.Cycle = m.cycle
	case "auto":
	default:
		return c, usage("--cycle %q: want v, w or auto", m.cycle)
	}
	if (m.name == problem.SOR || m.name == problem.Multigrid) && !s.Lockstep() {
		// A method of the whole grid needs all peers at the same iterate. Under other schemes it becomes the local
		// method of overlapping boxes.
		c.Name, m.local = problem.Schwarz, m.name
	}
	if c.Name != problem.Schwarz {
		return c, nil
	}
	return m.schwarz(c)
}

// positive parses a whole number from 1; 0 if s is none.
func positive(s string) int {
	n, err := strconv.Atoi(s)
	if err != nil || n < 1 || strconv.Itoa(n) != s {
		return 0
	}
	return n
}

func (m *methodFlags) schwarz(c problem.MethodConfig) (problem.MethodConfig, error) {
	c.Local, c.Overlap, c.Flexible = m.local, m.overlap, m.flexible
	if m.overlap < 0 || m.overlap > problem.MaxOverlap {
		return c, usage("--overlap %d: want 0 to %d", m.overlap, problem.MaxOverlap)
	}
	if c.Work = positive(m.innerCycles); c.Work == 0 && m.innerCycles != "auto" {
		return c, usage("--inner-cycles %q: want a whole number of cycles, 1 or more, or auto", m.innerCycles)
	}
	switch c.Coarse = positive(m.coarse); {
	case m.coarse == "none":
		c.Coarse = -1
	case c.Coarse == 0 && m.coarse != "auto":
		return c, usage("--coarse %q: want a number of points, 1 or more, auto or none", m.coarse)
	}
	return c, nil
}
