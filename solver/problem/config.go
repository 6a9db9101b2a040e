package problem

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/p2pdc/p2pdc/internal/kernel"
	"github.com/p2pdc/p2pdc/solver/iterate"
)

// Names of methods.
const (
	Richardson = "richardson" // projected Richardson on the whole grid
	SOR        = "sor"        // red-black projected SOR on the whole grid
	Multigrid  = "multigrid"  // projected multigrid on the whole grid
	// restricted additive Schwarz: every peer solves on its own overlapping box
	Schwarz = "schwarz"
	// multigrid with a replicated coarse level: peers at different iterates do cycles of the whole grid
	FAS = "fas"
	// the iteration of Problem.FixedPoint, which every other method refuses
	FixedPoint = "fixed-point"
)

// MethodConfig selects a method and its parameters. The zero value selects projected Richardson.
type MethodConfig struct {
	Name string // empty: Richardson
	// Next is the method, SOR or Multigrid, with which a run by Multigrid or SOR alternates if it converges slowly: the
	// faster one goes on. Empty: the run keeps its method.
	Next string
	// Local is the method on a peer's own box in Schwarz: Richardson, SOR or Multigrid. Empty selects Multigrid.
	Local string
	// Overlap is the number of layers by which Schwarz extends a box into its neighbours, 0 to MaxOverlap.
	Overlap int
	// InnerCycles is the number of cycles (sweeps of a point method) of the local method between two exchanges. 0
	// chooses it from measurements.
	InnerCycles int
	// Coarse bounds the number of points of Schwarz's coarse grid. 0 chooses at most 1/64 of the points and,
	// outside lockstep, at most 8 per peer. A negative value disables the coarse correction.
	Coarse int
	// Flexible sends values between the cycles of a local solve.
	Flexible bool
	// Omega is the relaxation factor of SOR, above 0 and below 2. 0 estimates it from the observed rate of
	// convergence.
	Omega float64
	// Cycle is the multigrid cycle, "v" or "w". Empty chooses it.
	Cycle string
	// SweepsPerPass is the number of Richardson sweeps that a peer with the whole grid does in one pass over
	// memory. The result does not depend on it. 0 chooses it from the cache sizes.
	SweepsPerPass int
	// Step is Richardson's δ in units of 1/max a_ii, above 0 and at most 1, where the iteration is a contraction.
	// 0 selects 1, the fastest.
	Step float64
}

// StepLength returns Richardson's δ for an operator with the given largest diagonal entry.
func (m *MethodConfig) StepLength(diagonal float64) float64 {
	return cmp.Or(m.Step, 1) / diagonal
}

// Bounds and default of MethodConfig.Overlap.
const (
	MaxOverlap     = 8
	DefaultOverlap = 2 // of a method that the program or solver.Solve chooses
)

// Check returns an error if a setting is out of range, whatever the method.
func (m *MethodConfig) Check() error {
	whole := []string{SOR, Multigrid}
	switch {
	case !slices.Contains([]string{"", Richardson, SOR, Multigrid}, m.Local):
		return fmt.Errorf("problem: unknown local method %q; use %s, %s or %s", m.Local, Richardson, SOR, Multigrid)
	case m.Next != "" && (m.Next == m.Name || !slices.Contains(whole, m.Name) || !slices.Contains(whole, m.Next)):
		return fmt.Errorf("problem: method %s cannot alternate with %q; only %s and %s can", m.Name, m.Next, SOR, Multigrid)
	case m.Overlap < 0 || m.Overlap > MaxOverlap:
		return fmt.Errorf("problem: invalid overlap %d: it must be 0 to %d layers", m.Overlap, MaxOverlap)
	case m.InnerCycles < 0:
		return fmt.Errorf("problem: invalid number of inner cycles %d: it must be positive, or 0 to choose it",
			m.InnerCycles)
	case m.SweepsPerPass < 0:
		return fmt.Errorf("problem: invalid number of sweeps per pass %d: it must be positive, or 0 to choose it",
			m.SweepsPerPass)
	case m.Step != 0 && !(m.Step > 0 && m.Step <= 1):
		return fmt.Errorf("problem: the step is %v of 1/max a_ii; "+
			"it must be above 0 and at most 1, where the iteration is a contraction", m.Step)
	case m.Cycle != "" && m.Cycle != "v" && m.Cycle != "w":
		return fmt.Errorf("problem: unknown cycle %q; use v or w", m.Cycle)
	}
	return checkOmega(m.Omega)
}

// checkOmega checks a relaxation factor, 0 for none.
func checkOmega(omega float64) error {
	if omega == 0 || omega > 0 && omega < 2 {
		return nil
	}
	return fmt.Errorf("problem: the relaxation factor is %v; it must lie between 0 and 2", omega)
}

// Box is a half-open box of grid points, 0-based: Lo[a] ≤ i < Hi[a] along axis a. Its methods are Size, Points,
// Empty, Contains, From and Each.
type Box = kernel.Box

// Tiling configures several sweeps in one pass over memory, for a peer with the whole grid. Results do not
// depend on it.
type Tiling = kernel.Tiling

// Executor runs f(0) … f(n−1), possibly on several threads. Results do not depend on it.
type Executor = kernel.Executor

// Sequential is the Executor that runs on the caller's goroutine.
type Sequential = kernel.Sequential

// Order is the order in which the planes of a peer's box are relaxed.
type Order int

const (
	// Jacobi relaxes every plane from iterate k.
	Jacobi Order = iota
	// InTurn relaxes each plane from the new values of the plane before it.
	InTurn
)

// String returns the value of the program's --order flag.
func (o Order) String() string {
	if o != Jacobi && o != InTurn {
		return "order?"
	}
	return [...]string{"jacobi", "in-turn"}[o]
}

// StepError adds the time step to err. It returns err unchanged for at = 0, a stationary run.
func (c *Config) StepError(at int, err error) error {
	if err != nil && at > 0 {
		return fmt.Errorf("time step %d, t = %v: %w", at, c.Problem.Evolution.Time(at), err)
	}
	return err
}

// Config configures one peer of a run. All peers of a run have equal values except for Rank, Executor, Tiling
// and Initial.
type Config struct {
	Problem   *Problem
	Partition Partition
	Rank      iterate.Rank
	Scheme    iterate.Scheme
	Order     Order
	Method    MethodConfig
	Executor  Executor // nil: Sequential
	// Tiling applies to a peer with the whole grid. The zero value chooses it from the cache sizes.
	Tiling Tiling
	// Tolerance is the relative VI residual at which the run ends. 0 runs until stopped.
	Tolerance float64
	MaxSweeps iterate.Iteration // 0: no bound
	// CheckEvery is the interval of residual checks in sweeps, in synchronous schemes. 0 allows a stop every 32
	// sweeps and measures the residual when it is likely to be below the tolerance.
	CheckEvery iterate.Iteration
	// Lag is the number of sweeps after which a check takes effect, at most CheckEvery. 0 chooses it.
	Lag iterate.Iteration
	// Repeat bounds the time between two transmissions of a face while an asynchronous peer waits. 0: 5 ms.
	Repeat time.Duration
	// Initial holds the starting values of the peer's box, [z][y][x]; for a nonstationary problem u at the end of
	// step After. nil uses the problem's, which needs After = 0.
	Initial []float64
	// Omega is the relaxation factor with which SOR begins its estimate if Method.Omega is 0, as an earlier run with the
	// same problem has found it. 0: the estimate begins on a coarse grid.
	Omega float64
	// Earlier is Outcome.State of an earlier run of the same problem, on any number of peers, whose last values are Initial:
	// the method goes on as in one run. nil, or the state of another method: it begins.
	Earlier []byte
	// After is the number of time steps that an earlier run has completed. The run begins with step After+1, and
	// Outcome.Steps counts the earlier steps as completed.
	After int
	// Late makes a sweep relax the points that neighbours read together with the others, not before them. That is faster
	// if other peers of the process relax while the messages travel. Values do not depend on it.
	Late bool
	// KeepEvery is the least time between two iterates that all peers keep, so that a run in lockstep goes on exactly
	// after a loss; see iterate.OpKeep. 0: none is kept. Time steps are not kept.
	KeepEvery time.Duration
	// State is that of a kept iterate, whose values are Initial. nil: the run begins.
	State []byte
	// Balance moves planes between neighbours during a run so that the sweeps of all peers take equal time. See
	// richardson.Balanceable for its conditions and MostPlanes for the memory.
	Balance bool
	// BalanceWindow is the shortest interval over which speeds are measured. 0: 50 ms.
	BalanceWindow time.Duration
	// Allocate returns an array of n zeros, which the peer uses as long as it exists. It is used for arrays as large as
	// the box or a coarser grid, for example to use large pages. nil: make.
	Allocate func(n int) []float64
	// Reconfigure makes asynchronous halo sessions synchronous at every boundary of time steps, so that they carry
	// the first faces of the step, and asynchronous again afterwards. If it is false, the agreement sessions carry
	// those faces.
	Reconfigure bool

	Units Units // units of the values of Problem and Initial, set by Prepare
	// StopCheckPoints is the number of points that multilevel methods relax between two checks for an early end. 0
	// uses the default.
	StopCheckPoints int
	// GatherPoints is the size up to which multigrid gathers a grid at the root. 0 uses the default.
	GatherPoints int
}

// NewArray returns n zeros from Allocate, or from make if Allocate is nil.
func (c *Config) NewArray(n int) []float64 {
	if c.Allocate == nil {
		return make([]float64, n)
	}
	return c.Allocate(n)
}

// Coordination returns the configuration of exchange and termination.
func Coordination(c *Config) iterate.Config {
	r := iterate.Config{
		Rank: c.Rank, Peers: c.Partition.Peers(), Scheme: c.Scheme, Tolerance: c.Tolerance,
		Repeat: c.Repeat, Reference: c.Units.Reference, KeepEvery: c.KeepEvery, State: c.State,
		MayDiverge: c.Problem.AtStep(min(1, c.Problem.Steps())).MayDiverge(), Largest: c.Largest(),
	}
	if r.Repeat <= 0 {
		r.Repeat = iterate.DefaultRepeat
	}
	return r
}

// MayDiverge reports whether the convergence of a stationary run in lockstep is not guaranteed: A may be no M-matrix, or
// the user has set a relaxation factor. Peers then keep their best iterate.
func (c *Config) MayDiverge() bool {
	p := c.Problem
	return p.Evolution == nil && c.Scheme.Lockstep() && !c.Balance &&
		(p.MayDiverge() || !p.Symmetric() && c.Method.Name == SOR && c.Method.Omega > 0)
}

// Largest returns a bound of the magnitude of every iterate, in the units of the run. It is 0 where iterates may grow without
// bound.
func (c *Config) Largest() float64 {
	p := c.Problem.AtStep(min(1, c.Problem.Steps()))
	if p.MayDiverge() || !p.Symmetric() && (c.Method.Name == SOR || c.Method.Next == SOR) {
		return 0
	}
	return c.Units.largest
}

// LargestValue returns Config.Largest for a problem and a method, in the units of the problem.
func LargestValue(p *Problem, m MethodConfig) float64 {
	q, units, err := p.InRange()
	if err != nil {
		return 0
	}
	c := Config{Problem: q, Units: units, Method: m}
	return (-units.Scale).Times(c.Largest())
}

// Prepare validates the configuration, fills in the executor, and scales the problem so that its residuals can be
// squared in float64.
func (c *Config) Prepare() error {
	if c.Problem == nil || c.Scheme == nil {
		return errors.New("problem: the configuration needs a problem and a scheme")
	}
	c.Executor = cmp.Or[Executor](c.Executor, Sequential{})
	var err error
	if c.Problem, c.Units, err = c.Problem.InRange(); err != nil {
		return err
	}
	c.Initial = c.Units.Scaled(c.Initial)
	if top, most := kernel.MaxAbs(c.Initial), c.Largest(); most > 0 && top > most {
		return fmt.Errorf("problem: a starting value of %.3g, where the data allow at most %.3g: it is no iterate of this problem",
			(-c.Units.Scale).Times(top), (-c.Units.Scale).Times(most))
	}
	if err := c.Partition.Validate(c.Problem.N); err != nil {
		return err
	}
	if c.Rank < 0 || int(c.Rank) >= c.Partition.Peers() {
		return fmt.Errorf("problem: rank %d; the partition has ranks 0 to %d", c.Rank, c.Partition.Peers()-1)
	}
	if err := iterate.CheckScheme(c.Scheme, c.Partition.Peers()); err != nil {
		return err
	}
	if c.Order != Jacobi && c.Order != InTurn {
		return fmt.Errorf("problem: unknown order %d", c.Order)
	}
	if err := checkOmega(c.Omega); err != nil {
		return err
	}
	if !(c.Tolerance >= 0) {
		return fmt.Errorf("problem: the tolerance is %v; it must not be negative", c.Tolerance)
	}
	if c.After != 0 && (c.After < 0 || c.After >= c.Problem.Steps()) {
		return fmt.Errorf("problem: a run after time step %d of %d; a time step must be left", c.After, c.Problem.Steps())
	}
	if err := c.checkKept(); err != nil {
		return err
	}
	if c.CheckEvery > 0 && c.Lag > c.CheckEvery || c.CheckEvery == 0 && c.Lag > iterate.DefaultCheckEvery {
		return fmt.Errorf("problem: a lag of %d sweeps exceeds the check interval; raise CheckEvery", c.Lag)
	}
	return nil
}

// checkKept returns an error if the run cannot recover exactly, from iterates that its peers keep.
func (c *Config) checkKept() error {
	switch {
	case c.KeepEvery == 0 && c.State == nil:
		return nil
	case c.KeepEvery < 0:
		return fmt.Errorf("problem: KeepEvery is %v; it must not be negative", c.KeepEvery)
	case c.Problem.Steps() > 0:
		return errors.New("problem: exact recovery does not support time steps; after a loss the time step is repeated")
	case c.Method.Name == Schwarz || !c.Scheme.Lockstep():
		return fmt.Errorf("problem: exact recovery does not support method %s with scheme %s, whose iterates depend on the "+
			"order of messages: use scheme sync and another method, or --recover local", cmp.Or(c.Method.Name, Richardson),
			c.Scheme.Name())
	case c.Balance:
		return errors.New("problem: exact recovery does not support --balance on: use --balance off, or --recover local")
	case c.State != nil && c.Initial == nil:
		return errors.New("problem: State is set without Initial, the values of the same iterate")
	}
	return nil
}

// TimeSteps returns the time steps of a run before its first one, with the values of a box that Prepare has scaled. It
// returns the zero value for a stationary problem.
func (c *Config) TimeSteps(box Box) (iterate.TimeSteps, error) {
	total := c.Problem.Steps()
	if total == 0 {
		return iterate.TimeSteps{}, nil
	}
	u, err := c.Problem.InitialValues(c.After, box, c.Initial)
	return iterate.TimeSteps{Total: total, Current: c.After, Completed: c.After, Previous: u}, err
}

// CheckOrder returns an error for an order other than Jacobi. Methods with an order of their own call it.
func (c *Config) CheckOrder() error {
	if c.Order != Jacobi {
		return fmt.Errorf("problem: order %v applies to %s only; use --order jacobi with method %s", c.Order,
			Richardson, c.Method.Name)
	}
	return nil
}

// Peer is a peer of a run on a grid. It owns one box of the grid.
type Peer interface {
	iterate.Peer
	// Box returns the peer's own box.
	Box() Box
	// Values writes the newest complete iterate on a part of the box to dst, [z][y][x]. The part is in coordinates of
	// the grid. Between OpKeep and the next call of Next, another goroutine may call it.
	Values(dst []float64, part Box)
	// Describe returns the parameters that the method chose, such as grids and factors, for reports. It is empty
	// if there are none.
	Describe() string
}

// Method creates the peers of a run with one method.
type Method interface {
	// Name returns the value of the program's --method flag.
	Name() string
	// Check returns the error that New would return for every rank because of the configuration alone, such as a
	// scheme, an order or a partition that the method does not support. It does not evaluate the problem's
	// functions. c has passed Config.Check.
	Check(c *Config) error
	// Links returns the peers that rank r exchanges messages with. Only Problem, Partition, Scheme and Method of c
	// are used. They have passed Check.
	Links(c *Config, r iterate.Rank) []iterate.Link
	// New creates the peer c.Rank. It evaluates the problem's functions at the peer's points and checks their
	// values.
	New(c Config) (Peer, error)
}
