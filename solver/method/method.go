// Package method implements the methods that solve a discrete obstacle problem on one block: projected Richardson,
// red-black projected SOR and projected multigrid. Each serves as the solver of a whole grid or as a peer's local
// solver on its block. The package works on arrays only; it depends on no peer, scheme or problem.
package method

import (
	"fmt"
	"math"
	"slices"

	"github.com/p2pdc/p2pdc/internal/kernel"
)

// System is a discrete obstacle problem on a block with Dirichlet data on the ghosts of the arrays
// of values: find Lower ≤ u ≤ Upper with A·u − f = 0 where u is strictly between the obstacles, ≥ 0
// where u = Lower and ≤ 0 where u = Upper. The arrays belong to the caller and are only read, so
// sources and obstacles may be changed between two cycles.
type System struct {
	Layout   kernel.Layout
	Operator kernel.Operator
	Source   kernel.Field
	Lower    kernel.Field
	Upper    kernel.Field
	// Parity is the colour, 0 or 1, of own point (0, 0, 0): the sum of its indices in the whole
	// grid modulo 2. Colours then do not depend on the partition of the grid.
	Parity int
	// Symmetric reports that A is symmetric: the energy then decides whether a cycle is accepted.
	Symmetric bool
	// WeakFlow reports that A is symmetric but for a flow that is weak beside the diffusion: the energy decides, too.
	WeakFlow bool
	// Strength is the coupling strength of the operator along each axis, in any unit. Multigrid first coarsens the
	// axes of strong coupling. Blocks of one grid need equal values.
	Strength [3]float64
	// Coarse returns the operator of the same region on a coarser grid of n points per axis, whose
	// spacing is (N+1)/(n+1) times as large, with the diffusion of e if it is not nil. Multigrid needs it.
	Coarse func(n [3]int, e *Edges) (kernel.Operator, error)
	// Edges returns the diffusion between all points of the block and its boundary, for Coarse and for
	// diffusion-weighted interpolation. Edges, or its result, is nil if the diffusion is constant or unknown.
	Edges func() *Edges
	// Fields evaluates source and obstacles of the same region on a coarser grid, in dense arrays, for the full
	// multigrid start. On nested grids, or if it is nil, they are sampled at the nearest fine points.
	Fields func(n [3]int, source, lower, upper []float64) error
	// Boundary evaluates the boundary data of the same region on a coarser grid at the ghosts of a
	// padded array, edges and corners included. If it is nil, they are sampled at the nearest fine ghosts.
	Boundary func(n [3]int, l kernel.Layout, values []float64) error
}

// Solver improves an approximate solution of one System in place. Arrays of values are padded (Layout); their ghosts
// are read and never written. A Solver must not be used by several goroutines at once; its executor provides the
// parallelism. It allocates memory only when it is made.
type Solver interface {
	// Name returns the name of the method as in the program's flags.
	Name() string
	// Start replaces u by a better initial iterate if the method has one (full multigrid) and returns its
	// cost in sweeps over the block. If the cost is 0, u is unchanged. The values are between the obstacles
	// after the next cycle.
	Start(u []float64) (work float64)
	// Cycle executes one cycle or sweep and returns its cost in sweeps over the block. Afterwards u is between the
	// obstacles: values beyond them could have a residual of 0 and yet be wrong. Cycle need not measure the residual.
	Cycle(u []float64) (work float64)
	// Changed must be called after u or the system was changed from outside. The observed convergence rate
	// remains valid; a saved iterate does not.
	Changed()
	// Describe returns a description of the solver's settings for reports, or "".
	Describe() string
}

// Options are the settings of a Solver. The zero value is a good choice.
type Options struct {
	Executor kernel.Executor // kernel.Sequential if nil
	Omega    float64         // sor: factor, 0 < Omega < 2; 0 selects it by the observed rate
	// InitialOmega is the first factor of sor if Omega is 0. If it is 0 too, sor begins with the factor
	// that is optimal without contact.
	InitialOmega float64
	Cycle        string // multigrid: "v" or "w"; "" selects by dimension
	Unguarded    bool   // multigrid: the caller evaluates every cycle instead of the safeguard
	// Allocate allocates arrays as large as the block or a coarser grid; nil: make.
	Allocate func(n int) []float64
}

// array returns n zeros from Allocate.
func (o *Options) array(n int) []float64 {
	if o.Allocate == nil {
		return make([]float64, n)
	}
	return o.Allocate(n)
}

// The names of the methods.
const (
	NameRichardson = "richardson"
	NameSOR        = "sor"
	NameMultigrid  = "multigrid"
)

// New returns the solver of that name.
func New(name string, s System, o Options) (Solver, error) {
	if err := s.check(); err != nil {
		return nil, err
	}
	switch {
	case o.Omega != 0 && !(o.Omega > 0 && o.Omega < 2):
		return nil, fmt.Errorf("method: the relaxation factor is %v; it must be between 0 and 2", o.Omega)
	case o.Cycle != "" && o.Cycle != "v" && o.Cycle != "w":
		return nil, fmt.Errorf("method: unknown cycle %q; the cycles are v and w", o.Cycle)
	}
	switch name {
	case NameRichardson:
		return newRichardson(s, o)
	case NameSOR:
		return newSOR(s, o)
	case NameMultigrid:
		return NewMultigrid(s, o)
	}
	return nil, fmt.Errorf("method: unknown method %q; the methods are %s, %s and %s",
		name, NameRichardson, NameSOR, NameMultigrid)
}

// check returns an error for a system that no method can solve. It reads every point once.
func (s *System) check() error {
	if s.Layout.Dim == 0 {
		return fmt.Errorf("method: the system has no layout; make one with kernel.NewLayout")
	}
	if d, _ := diagonalRange(s.Operator); !(d > 0) || math.IsInf(d, 1) {
		return fmt.Errorf("method: the operator's smallest diagonal entry is %v; all must be positive and finite", d)
	}
	n := s.Layout.Points()
	for _, f := range []struct {
		name  string
		field kernel.Field
	}{{"source", s.Source}, {"lower obstacle", s.Lower}, {"upper obstacle", s.Upper}} {
		if f.field.Array != nil && len(f.field.Array) != n {
			return fmt.Errorf("method: the %s has %d values; the block has %d points", f.name, len(f.field.Array), n)
		}
		if f.field.Array == nil && math.IsNaN(f.field.Value) {
			return fmt.Errorf("method: the %s is %v", f.name, f.field.Value)
		}
		if d := slices.IndexFunc(f.field.Array, math.IsNaN); d >= 0 {
			return fmt.Errorf("method: the %s is NaN at point %d of the block", f.name, d)
		}
	}
	if !hasUpper(s.Upper) {
		return nil
	}
	for d := range n {
		if lo, hi := s.Lower.At(d), s.Upper.At(d); lo > hi {
			return fmt.Errorf("method: the obstacles cross at point %d of the block: the lower is %v, the upper is %v",
				d, lo, hi)
		}
	}
	return nil
}
