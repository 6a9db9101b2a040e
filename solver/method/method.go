// Package method holds the methods that solve a discrete obstacle problem on one
// block: projected Richardson, red-black projected SOR and projected multigrid. Each
// serves as the whole solver of one peer, or as a peer's local solver on its own box.
// It knows no peers, no schemes and no problems: only arrays.
package method

import (
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
	// Coarse is the operator of the same region on a coarser grid of n points an axis,
	// spacing (N+1)/(n+1) times as large; nil: it is averaged from the fine one.
	Coarse func(n [3]int) (kernel.Operator, error)
}

// Solver improves an approximate solution of one System, in place: arrays of values
// are padded (Layout) and their ghosts are read, never written. It is one goroutine's;
// the executor that it was made with does its loops. A Solver allocates when it is
// made and never afterwards.
type Solver interface {
	// Name is the method's, as in the program's flags.
	Name() string
	// Start replaces u by a better start where the method has one (full multigrid), and
	// tells what that cost; 0: u is as it was.
	Start(u []float64) (work float64)
	// Cycle does one cycle, or sweep, and tells what it cost, in sweeps over the block.
	// The residual need not be measured by it.
	Cycle(u []float64) (work float64)
	// Changed says that u or the system was changed from outside since the last cycle: what
	// was observed of the rate still holds, an iterate kept to fall back on does not.
	Changed()
}
