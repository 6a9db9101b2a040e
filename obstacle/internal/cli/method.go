package cli

import (
	"fmt"
	"slices"

	"github.com/spf13/pflag"

	"github.com/p2pdc/p2pdc/internal/spelling"
	"github.com/p2pdc/p2pdc/solver"
)

// methodFlags say how the peers improve an iterate.
type methodFlags struct {
	name     string
	local    string
	overlap  int
	work     string
	coarse   string
	flexible bool
	omega    float64
	step     float64
	cycle    string
	together int
}

func (m *methodFlags) add(f *pflag.FlagSet) {
	f.StringVar(&m.name, "method", solver.Richardson, "richardson, sor, multigrid or schwarz")
	f.StringVar(&m.local, "local", solver.Multigrid, "schwarz: a peer's method on its own box: richardson, sor or multigrid")
	f.IntVar(&m.overlap, "overlap", defaultOverlap, "schwarz: layers by which boxes overlap, 0 to 8")
	f.StringVar(&m.work, "work", "auto", "schwarz: cycles of the local method between two exchanges, or auto (measured)")
	f.StringVar(&m.coarse, "coarse", "auto", "schwarz: most points of the coarse correction's grid, auto (1/64 of the points, and 8 a peer where peers are at iterates of their own) or none")
	f.BoolVar(&m.flexible, "flexible", false, "schwarz: send values while a local solve is still going on")
	f.Float64Var(&m.omega, "omega", 0, "sor: relaxation factor, above 0 and below 2 (0: found from the observed rate)")
	f.Float64Var(&m.step, "step", 1, "richardson: step in units of 1/max a_ii, above 0 and at most 1")
	f.StringVar(&m.cycle, "cycle", "auto", "multigrid: v, w or auto")
	f.IntVar(&m.together, "together", 0, "richardson, one peer: sweeps done in one pass over memory (0: chosen by the caches, 1: each by itself)")
}

// defaultOverlap of Schwarz.
const defaultOverlap = 2

func methods() []string {
	return []string{solver.Richardson, solver.SOR, solver.Multigrid, solver.Schwarz}
}

// config reads the flags; every error is bad usage.
func (m *methodFlags) config(s solver.Scheme) (solver.MethodConfig, error) {
	c := solver.MethodConfig{Name: m.name}
	if !slices.Contains(methods(), m.name) {
		return c, usage("--method %q%s: want richardson, sor, multigrid or schwarz", m.name, spelling.Suggest(m.name, methods()))
	}
	if locals := methods()[:3]; !slices.Contains(locals, m.local) {
		return c, usage("--local %q%s: want richardson, sor or multigrid", m.local, spelling.Suggest(m.local, locals))
	}
	if m.omega != 0 && !(m.omega > 0 && m.omega < 2) {
		return c, usage("--omega %v: want a number above 0 and below 2, or 0 to have it found", m.omega)
	}
	if m.together < 0 {
		return c, usage("--together %d: want 1 or more sweeps, or 0 for a good choice", m.together)
	}
	c.Omega, c.Together = m.omega, m.together
	if !(m.step > 0 && m.step <= 1) {
		return c, usage("--step %v: want a number above 0 and at most 1 (in units of 1/max a_ii, where the iteration is a contraction)", m.step)
	}
	if m.step != 1 {
		if m.name != solver.Richardson {
			return c, usage("--step %v is of --method richardson", m.step)
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
	if (m.name == solver.SOR || m.name == solver.Multigrid) && !solver.Lockstep(s) {
		// A method of the whole grid needs everyone at the same iterate; without that, it
		// is the local method of overlapping boxes.
		c.Name, m.local = solver.Schwarz, m.name
	}
	if c.Name != solver.Schwarz {
		return c, nil
	}
	return m.schwarz(c)
}

func (m *methodFlags) schwarz(c solver.MethodConfig) (solver.MethodConfig, error) {
	c.Local, c.Overlap, c.Flexible = m.local, m.overlap, m.flexible
	if m.overlap < 0 || m.overlap > solver.MaxOverlap {
		return c, usage("--overlap %d: want 0 to %d", m.overlap, solver.MaxOverlap)
	}
	if m.work != "auto" {
		if _, err := fmt.Sscanf(m.work, "%d", &c.Work); err != nil || c.Work < 1 || fmt.Sprint(c.Work) != m.work {
			return c, usage("--work %q: want a whole number of cycles, 1 or more, or auto", m.work)
		}
	}
	switch m.coarse {
	case "auto":
	case "none":
		c.Coarse = -1
	default:
		if _, err := fmt.Sscanf(m.coarse, "%d", &c.Coarse); err != nil || c.Coarse < 1 || fmt.Sprint(c.Coarse) != m.coarse {
			return c, usage("--coarse %q: want a number of points, 1 or more, auto or none", m.coarse)
		}
	}
	return c, nil
}
