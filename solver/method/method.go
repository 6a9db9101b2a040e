// Package method holds the methods that solve a discrete obstacle problem on one
// block: projected Richardson, red-black projected SOR and projected multigrid. Each
// serves as the whole solver of one peer, or as a peer's local solver on its own box.
// It knows no peers, no schemes and no problems: only arrays.
package method

import (
	"fmt"
	"math"

	"github.com/p2pdc/p2pdc/internal/kernel"
)

// System is a discrete obstacle problem on a block with Dirichlet data, which lie on
// the ghosts of the arrays of values: find Lower ≤ u ≤ Upper with A·u − f = 0 where u
// lies strictly between, ≥ 0 at Lower, ≤ 0 at Upper. The arrays are the caller's; a
// solver reads them, so new sources and obstacles may be written between two cycles.
type System struct {
	Layout   kernel.Layout
	Operator kernel.Operator
	Source   kernel.Field
	Lower    kernel.Field
	Upper    kernel.Field
	// Parity is the colour of own point (0, 0, 0), 0 or 1: the sum of its indices in the
	// whole grid, modulo 2, so that colours do not depend on how a grid is cut.
	Parity int
	// Symmetric says that A is: the energy then decides whether a cycle is accepted.
	Symmetric bool
	// Strength is how strongly the operator couples neighbours along each axis; all 0: it
	// is measured (Strength). Blocks of one grid have to be given the same.
	Strength [3]float64
	// Coarse is the operator of the same region on a coarser grid of n points an axis,
	// spacing (N+1)/(n+1) times as large, with the diffusion of e where there is some; nil: it
	// is averaged from the fine one.
	Coarse func(n [3]int, e *Edges) (kernel.Operator, error)
	// Edges evaluates the diffusion between all points of the block and its boundary, for
	// Coarse and for interpolation that follows it; nil: it is constant, or not known.
	Edges func() *Edges
	// Fields evaluates source and obstacles of the same region on a coarser grid, dense,
	// for the full multigrid start; nil: they are interpolated, as they are anyway where
	// the coarse points lie on fine ones.
	Fields func(n [3]int, source, lower, upper []float64) error
	// Boundary evaluates the boundary data of the same region on a coarser grid, at the
	// ghosts of a padded array, edges and corners too; nil: they are interpolated.
	Boundary func(n [3]int, l kernel.Layout, values []float64) error
}

// Solver improves an approximate solution of one System, in place: arrays of values
// are padded (Layout) and their ghosts are read, never written. It is one goroutine's;
// the executor that it was made with does its loops. A Solver allocates when it is
// made and never afterwards.
type Solver interface {
	// Name is the method's, as in the program's flags.
	Name() string
	// Start replaces u by a better start where the method has one (full multigrid), and
	// tells what that cost; 0: u is as it was. The obstacles hold after the next cycle.
	Start(u []float64) (work float64)
	// Cycle does one cycle, or sweep, and returns its cost in sweeps over the block. Afterwards
	// u lies between the obstacles: the residual of values beyond them may be 0 although they
	// are wrong. Cycle need not measure the residual.
	Cycle(u []float64) (work float64)
	// Changed says that u or the system was changed from outside since the last cycle: what
	// was observed of the rate still holds, an iterate kept to fall back on does not.
	Changed()
	// Describe tells a person what the solver works with; "": there is nothing to tell.
	Describe() string
	// Bytes is the memory that the solver holds beside the system's arrays.
	Bytes() int
}

// Options are what a Solver is made with. The zero value is a good choice.
type Options struct {
	Executor kernel.Executor // nil: Sequential
	Kernel   *kernel.Kernel  // nil: the best
	Omega    float64         // of sor, above 0 and below 2; 0: found from the observed rate
	// FirstOmega is what sor begins with where Omega is 0; 0: the best one without contact.
	InitialOmega float64
	Cycle        string // of multigrid, "v" or "w"; "": chosen
	Unguarded    bool   // of multigrid: the caller judges every cycle, the safeguard none
}

// Names of methods.
const (
	NameRichardson = "richardson"
	NameSOR        = "sor"
	NameMultigrid  = "multigrid"
)

// New makes the solver of that name.
func New(name string, s System, o Options) (Solver, error) {
	if err := s.check(); err != nil {
		return nil, err
	}
	switch {
	case o.Omega != 0 && !(o.Omega > 0 && o.Omega < 2):
		return nil, fmt.Errorf("method: the relaxation factor is %v; it must lie between 0 and 2", o.Omega)
	case o.Cycle != "" && o.Cycle != "v" && o.Cycle != "w":
		return nil, fmt.Errorf("method: no cycle %q; there are v and w", o.Cycle)
	}
	if o.Executor == nil {
		o.Executor = kernel.Sequential{}
	}
	switch name {
	case NameRichardson:
		return NewRichardson(s, o)
	case NameSOR:
		return NewSOR(s, o)
	case NameMultigrid:
		return NewMultigrid(s, o)
	}
	return nil, fmt.Errorf("method: no method %q; there are %s, %s and %s", name, NameRichardson, NameSOR, NameMultigrid)
}

// check refuses a system that no method can solve. It looks at every point once.
func (s *System) check() error {
	if s.Layout.Dim == 0 {
		return fmt.Errorf("method: a system needs a layout, made by kernel.NewLayout")
	}
	if d := smallestDiagonal(s.Operator); !(d > 0) || math.IsInf(d, 1) {
		return fmt.Errorf("method: the operator's smallest diagonal entry is %v; all must be positive and finite", d)
	}
	n := s.Layout.Points()
	for _, f := range []struct {
		name  string
		field kernel.Field
	}{{"source", s.Source}, {"lower obstacle", s.Lower}, {"upper obstacle", s.Upper}} {
		if f.field.Array != nil && len(f.field.Array) != n {
			return fmt.Errorf("method: the %s has %d values, the block %d points", f.name, len(f.field.Array), n)
		}
		if f.field.Array == nil && math.IsNaN(f.field.Value) {
			return fmt.Errorf("method: the %s is %v", f.name, f.field.Value)
		}
		for d, v := range f.field.Array {
			if math.IsNaN(v) {
				return fmt.Errorf("method: the %s is %v at own point %d", f.name, v, d)
			}
		}
	}
	if s.Upper.Array == nil && math.IsInf(s.Upper.Value, 1) {
		return nil
	}
	for d := range n {
		if lo, hi := s.Lower.At(d), s.Upper.At(d); lo > hi {
			return fmt.Errorf("method: the obstacles cross at own point %d: the lower is %v, the upper %v", d, lo, hi)
		}
	}
	return nil
}

func smallestDiagonal(op kernel.Operator) float64 {
	if op.Form != kernel.Variable {
		return largestDiagonal(op)
	}
	least := math.Inf(1)
	for _, v := range op.Arrays[kernel.Center] {
		if !(v >= least) {
			least = v
		}
	}
	return least
}
