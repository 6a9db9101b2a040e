package problem

import (
	"errors"
	"fmt"
	"time"

	"github.com/p2pdc/p2pdc/solver/iterate"
)

// Names of methods.
const (
	Richardson = "richardson" // projected Richardson, on the whole grid
	SOR        = "sor"        // red-black projected SOR, on the whole grid
	Multigrid  = "multigrid"  // projected multigrid, on the whole grid
	Schwarz    = "schwarz"    // every peer solves on its own box, overlapping its neighbours'
)

// MethodConfig says how the peers of a run improve an iterate. Its zero value is
// projected Richardson.
type MethodConfig struct {
	Name string // "": Richardson
	// Local is the method of a peer on its own box in Schwarz: Richardson, SOR or
	// Multigrid; "": Multigrid.
	Local string
	// Overlap is how many layers a box grows into its neighbours' in Schwarz, 0 to
	// MaxOverlap.
	Overlap int
	// Work is how many cycles (sweeps, of point methods) of the local method a peer does
	// between two exchanges; 0: chosen by measurement.
	Work int
	// Coarse is the most points of the grid of Schwarz's coarse correction; 0: chosen, at
	// most 1/64 of the points and, out of lockstep, 8 a peer; negative: there is none.
	Coarse int
	// Flexible sends values while a local solve of several cycles is still going on.
	Flexible bool
	// Omega is the relaxation factor of SOR, above 0 and below 2; 0: found from the
	// observed rate.
	Omega float64
	// Cycle is that of Multigrid: "v" or "w"; "": chosen.
	Cycle string
	// Together is how many sweeps of Richardson a peer that has the whole grid does in one
	// pass over memory, with the same result; 0: chosen by the processor's caches.
	Together int
	// Step is Richardson's δ in units of 1/max a_ii, above 0 and at most 1, where it is a
	// contraction; 0: 1, the fastest.
	Step float64
}

// StepLength returns Richardson's δ for an operator with that largest diagonal entry.
func (m *MethodConfig) StepLength(diagonal float64) float64 {
	if m.Step == 0 {
		return 1 / diagonal
	}
	return m.Step / diagonal
}

// MaxOverlap bounds MethodConfig.Overlap.
const MaxOverlap = 8

// Check refuses settings that are out of range, whatever the method.
func (m *MethodConfig) Check() error {
	switch m.Local {
	case "", Richardson, SOR, Multigrid:
	default:
		return fmt.Errorf("solver: no local method %q; there are %s, %s and %s", m.Local, Richardson, SOR, Multigrid)
	}
	switch {
	case m.Overlap < 0 || m.Overlap > MaxOverlap:
		return fmt.Errorf("solver: an overlap of %d layers; there may be 0 to %d", m.Overlap, MaxOverlap)
	case m.Work < 0:
		return fmt.Errorf("solver: %d cycles between two exchanges; there must be 1 or more, or 0 for a good choice", m.Work)
	case m.Together < 0:
		return fmt.Errorf("solver: %d sweeps in one pass over memory; there must be 1 or more, or 0 for a good choice", m.Together)
	case m.Step != 0 && !(m.Step > 0 && m.Step <= 1):
		return fmt.Errorf("solver: the step is %v of 1/max a_ii; it must be above 0 and at most 1, where the iteration is a contraction", m.Step)
	case m.Omega != 0 && !(m.Omega > 0 && m.Omega < 2):
		return fmt.Errorf("solver: the relaxation factor is %v; it must lie between 0 and 2", m.Omega)
	case m.Cycle != "" && m.Cycle != "v" && m.Cycle != "w":
		return fmt.Errorf("solver: no cycle %q; there are v and w", m.Cycle)
	}
	return nil
}

// Order of the sub-blocks (planes) within a peer's box.
type Order int

const (
	// Jacobi lets every plane read iterate k.
	Jacobi Order = iota
	// InTurn lets a plane read the plane before it as just relaxed.
	InTurn
)

// String is the word of the program's flag.
func (o Order) String() string {
	switch o {
	case Jacobi:
		return "jacobi"
	case InTurn:
		return "in-turn"
	}
	return "order?"
}

// InStep adds the time step to an error; at 0 the run is stationary.
func (c *Config) InStep(at int, err error) error {
	if err != nil && at > 0 {
		return fmt.Errorf("time step %d, t = %v: %w", at, c.Problem.Evolution.Time(at), err)
	}
	return err
}

// Config says what one peer of a run does. All peers of a run have the same
// values but for Rank, Executor, Tiling and Initial.
type Config struct {
	Problem    *Problem
	Partition  Partition
	Rank       iterate.Rank
	Scheme     iterate.Scheme
	Order      Order
	Method     MethodConfig
	Executor   Executor          // nil: Sequential
	Tiling     Tiling            // of a peer alone; zero: chosen by the processor's caches
	Tolerance  float64           // relative VI residual; 0: the run goes on until it is stopped
	MaxSweeps  iterate.Iteration // 0: no bound
	CheckEvery iterate.Iteration // sync: residual of every such iterate; 0: a chance to stop every 32, the residual when it is likely to matter
	Lag        iterate.Iteration // c of SPEC §2, at most CheckEvery; 0: chosen
	Repeat     time.Duration     // asynchronous: faces are repeated at least this often while the peer waits; 0: 5 ms
	Initial    []float64         // own box's starting values [z][y][x], of a nonstationary problem u(0); nil: the problem's
	// Balance moves planes between neighbours while they run, so that sweeps take all of
	// them as long: see Balanceable for when, MostPlanes for the memory.
	Balance bool
	// BalanceWindow is the shortest time over which speeds are measured; 0: 50 ms.
	BalanceWindow time.Duration
	// Allocate makes the arrays that are as large as the box or a coarser grid of it: n
	// zeros, for good. nil: make. The shell knows of larger pages.
	Allocate func(n int) []float64
	// Reconfigure asks, at every boundary of time steps, for asynchronous halo sessions
	// to be made synchronous, so that the first faces of the step travel there, and
	// asynchronous again. Otherwise those faces travel on the agreement sessions.
	Reconfigure bool

	Units        Units // of the values of Problem and Initial, see inRange
	LookPoints   int   // methods of the whole grid: 0: lookPoints
	GatherPoints int   // multigrid: grids of at most that many points are the root's; 0: gatherPoints
}

// NewArray returns n zeros made by Allocate, or by make where that is nil.
func (c *Config) NewArray(n int) []float64 {
	if c.Allocate == nil {
		return make([]float64, n)
	}
	return c.Allocate(n)
}

// Coordination returns what the rules of exchange and termination have to know.
func Coordination(c *Config) iterate.Config {
	r := iterate.Config{
		Rank: c.Rank, Peers: c.Partition.Peers(), Scheme: c.Scheme, Tolerance: c.Tolerance,
		Repeat: c.Repeat, Reference: c.Units.Reference,
	}
	if r.Repeat <= 0 {
		r.Repeat = iterate.DefaultRepeat
	}
	return r
}

// Prepare refuses what no run can have, and brings the problem into range.
func (c *Config) Prepare() error {
	if c.Problem == nil || c.Scheme == nil {
		return errors.New("solver: a worker needs a problem and a scheme")
	}
	var err error
	if c.Problem, c.Units, err = c.Problem.InRange(); err != nil {
		return err
	}
	c.Initial = c.Units.Copied(c.Initial)
	if err := c.Partition.Validate(c.Problem.N); err != nil {
		return err
	}
	if c.Rank < 0 || int(c.Rank) >= c.Partition.Peers() {
		return fmt.Errorf("solver: rank %d; the partition has ranks 0 to %d", c.Rank, c.Partition.Peers()-1)
	}
	if err := iterate.CheckScheme(c.Scheme, c.Partition.Peers()); err != nil {
		return err
	}
	if c.Order != Jacobi && c.Order != InTurn {
		return fmt.Errorf("solver: unknown order %d", c.Order)
	}
	if !(c.Tolerance >= 0) {
		return fmt.Errorf("solver: the tolerance is %v; it must not be negative", c.Tolerance)
	}
	return c.checkRhythm()
}

func (c *Config) checkRhythm() error {
	if c.CheckEvery > 0 && c.Lag > c.CheckEvery || c.CheckEvery == 0 && c.Lag > iterate.DefaultCheckEvery {
		return fmt.Errorf("solver: a lag of %d sweeps is longer than the interval of checks; raise CheckEvery", c.Lag)
	}
	return nil
}

// CheckOrder refuses an order other than Jacobi, for methods that have an order of their own.
func (c *Config) CheckOrder() error {
	if c.Order != Jacobi {
		return fmt.Errorf("solver: order %v is one of %s; method %s has an order of its own (--order jacobi)", c.Order, Richardson, c.Method.Name)
	}
	return nil
}

// Peer is a Peer of a run on a grid, which has a box of it.
type Peer interface {
	iterate.Peer
	// Box returns the peer's own box.
	Box() Box
	// Describe says what the method works with, for reports: grids, factors, what it chose. It
	// is empty where there is nothing to say.
	Describe() string
}

// Method makes the peers of a run that solve by one method.
type Method interface {
	// Name returns the word of the program's flag.
	Name() string
	// Check refuses, before anything is started, what New would refuse for every rank by the
	// configuration alone: a scheme, an order or a partition that the method does not have. The
	// problem's functions are not evaluated. c has passed Config.Check.
	Check(c *Config) error
	// Links returns the peers that rank r exchanges anything with. Only Problem, Partition, Scheme
	// and Method of c matter, and they have passed Check.
	Links(c *Config, r iterate.Rank) []iterate.Link
	// New makes the peer c.Rank. It evaluates the problem's functions at the points of the peer
	// and checks their values.
	New(c Config) (Peer, error)
}
