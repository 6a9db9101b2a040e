package schwarz

import (
	"cmp"
	"math"

	"github.com/p2pdc/p2pdc/internal/kernel"
	"github.com/p2pdc/p2pdc/solver/method"
	"github.com/p2pdc/p2pdc/solver/problem"
)

// localName returns the method on a peer's own region.
func localName(m *problem.MethodConfig) string { return cmp.Or(m.Local, problem.Multigrid) }

// newLocal returns the local solve of the region for the block's problem. It renews the solver of the previous
// time step where possible.
func newLocal(w *peer) (*localSolve, error) {
	m := &w.config.Method
	var old method.Solver
	if w.local != nil {
		old = w.local.solver
	}
	solver, err := renewSolver(old, localName(m), w.block.System(),
		method.Options{Executor: w.config.Executor, Omega: w.choice.omega(), Cycle: m.Cycle, Unguarded: true,
			Allocate: w.config.NewArray})
	if err != nil {
		return nil, err
	}
	g := newLocalSolve(solver, w.sweep, w.layout, w.config.Executor, m.Flexible, w.config.NewArray)
	p := w.block.Problem
	g.mayGrow = !p.Upwind && !p.Symmetric()
	return g, nil
}

// renewSolver returns old, of the same name and options, adapted to another system, or a new solver if there is
// none or it has no state worth keeping.
func renewSolver(old method.Solver, name string, s method.System, o method.Options) (method.Solver, error) {
	if m, ok := old.(*method.Multigrid); ok {
		return m, m.Renew(s)
	}
	return method.New(name, s, o)
}

// localSolve is a local solve of the Schwarz method with the guard that guarantees convergence of the whole
// iteration for any local method (ADR 34).
//
// For an M-matrix, a local solve that is exact or consists of Gauss–Seidel sweeps contracts the error in a
// weighted maximum norm, and so does the iteration of all peers, with values of any age. Multigrid and
// over-relaxation need not. Their values are accepted if the region's residual is at most requiredRatio times
// that of the initial values, start. They then differ from an exact solve by at most a multiple of
// requiredRatio·start. Otherwise the region is relaxed from the initial values. requiredRatio is halved
// whenever start does not fall from one window of solves to the next. Either start or requiredRatio therefore
// tends to 0, and with it the difference from a contraction.
type localSolve struct {
	solver          method.Solver
	sweep           *kernel.Sweep
	exec            problem.Executor
	layout          kernel.Layout
	contracts       bool // the method is a contraction: nothing is checked
	checksEachCycle bool // the residual is checked after each cycle, not only at the end
	mayGrow         bool // A may be no M-matrix: point relaxations may diverge, and values overflow in one solve

	chunks int
	axis   int
	norms  []kernel.Norm // one per chunk
	run    func(i int)   // bound once: a closure per call would allocate
	values []float64

	solveProgress
	saved []float64 // initial values
	start float64   // ‖r‖₂ of the region with the initial values
	last  float64   // at the last check

	// Kept between solves.
	requiredRatio float64
	grown         bool    // a solve has increased the residual by maxGrowth
	sweeps        int     // of the last relaxation
	largest       float64 // largest start of all solves
	peak          float64 // largest start in this window
	previousPeak  float64 // in the previous window; 0: none
	solves        int     // in this window
}

// solveProgress is the progress of a local solve.
type solveProgress struct {
	cycles    int // requested
	done      int
	sweepsDue int  // remaining relaxation sweeps
	readable  bool // other peers may read the values
	complete  bool
}

const (
	initialRatio    = 0.5  // initial requiredRatio
	ratioDecrease   = 0.5  // factor by which requiredRatio is reduced
	minRatio        = 1e-9 // its minimum, at which the solve is exact
	localWindow     = 8    // solves with new values per window
	windowReduction = 0.9  // factor by which start must fall from window to window
	maxStartGrowth  = 2    // factor by which start must never grow
	maxGrowth       = 1e20 // of the residual in a solve, from which it diverges
	minSweeps       = 4    // of relaxation
	maxSweeps       = 64
	sweepBatch      = 16      // maximum sweeps per operation
	batchPoints     = 1 << 20 // about the maximum of points per operation
	relaxReduction  = 0.1     // relaxation ends at this reduction of the residual
	// negligible is the fraction of the largest start below which a region counts as solved up to rounding.
	negligible = 1e-10
)

func newLocalSolve(
	s method.Solver, sweep *kernel.Sweep, l kernel.Layout, e problem.Executor, partial bool,
	allocate func(int) []float64,
) *localSolve {
	g := &localSolve{solver: s, sweep: sweep, exec: e, layout: l, requiredRatio: initialRatio}
	_, multigrid := s.(*method.Multigrid)
	g.contracts, g.checksEachCycle = s.Name() == problem.Richardson, partial || multigrid
	if !g.contracts {
		g.saved = allocate(l.Len())
	}
	g.chunks, g.axis = problem.Split(l.Interior(), problem.Jacobi, l.Dim)
	g.norms = make([]kernel.Norm, g.chunks)
	g.run = func(i int) { g.sweep.Residual(&g.norms[i], g.values, problem.Chunk(l.Interior(), g.axis, i, g.chunks)) }
	return g
}

// begin begins a solve of the given number of cycles from u. newValues: values of other peers have changed
// since the previous solve.
func (g *localSolve) begin(u []float64, cycles int, newValues bool) {
	g.solver.Changed()
	g.solveProgress = solveProgress{cycles: cycles}
	if g.contracts {
		if g.mayGrow && !g.grown && cycles > sweepBatch {
			g.start = g.residualNorm(u)
		}
		return
	}
	copy(g.saved, u)
	g.start = g.residualNorm(u)
	g.last = g.start
	if newValues {
		g.recordStart()
	}
}

// recordStart records the initial residual and tightens requiredRatio if the residual does not fall.
func (g *localSolve) recordStart() {
	if g.largest > 0 && !(g.start <= maxStartGrowth*g.largest) {
		g.requiredRatio = max(minRatio, ratioDecrease*g.requiredRatio)
	}
	if kernel.Finite(g.start) {
		g.largest = max(g.largest, g.start)
	}
	g.peak = max(g.peak, g.start)
	if g.solves++; g.solves < localWindow {
		return
	}
	if g.previousPeak > 0 && !(g.peak <= windowReduction*g.previousPeak) && !(g.peak <= negligible*g.largest) {
		g.requiredRatio = max(minRatio, ratioDecrease*g.requiredRatio)
	}
	g.previousPeak = g.peak
	g.peak = 0
	g.solves = 0
}

// residualNorm returns ‖r‖₂ of the region.
func (g *localSolve) residualNorm(u []float64) float64 {
	g.values = u
	g.exec.For(g.chunks, g.run)
	squares := method.TakeSquares(g.norms)
	return math.Sqrt(squares.Float64())
}

// step runs a cycle or a batch of relaxation sweeps and returns its cost in sweeps over the region. It sets
// readable and complete.
func (g *localSolve) step(u []float64) (work float64) {
	if g.sweepsDue > 0 {
		return g.relax(u)
	}
	work = g.solver.Cycle(u)
	g.done++
	if g.contracts {
		g.readable, g.complete = true, g.done >= g.cycles || g.tooLong(u, g.done)
		return work
	}
	if !g.checksEachCycle && g.done%g.cycles != 0 {
		return work
	}
	var size float64
	if m, ok := g.solver.(*method.Multigrid); ok {
		size = m.Residual()
	} else {
		size = g.residualNorm(u)
		work++
	}
	switch {
	case size <= g.requiredRatio*g.start:
		if g.readable = true; g.done >= g.cycles {
			g.complete, g.sweeps = true, g.sweeps/2
		}
	case g.done < g.cycles && size <= g.start, size <= method.RequiredReduction*g.last:
		g.readable = false
	default:
		g.reject(u)
	}
	g.last = size
	return work
}

// reject restores the initial values and schedules relaxation sweeps, twice as many as after the previous
// rejection.
func (g *localSolve) reject(u []float64) {
	copy(u, g.saved)
	g.readable = false
	g.sweeps = min(maxSweeps, max(minSweeps, 2*g.sweeps))
	if g.sweepsDue = g.sweeps; g.start <= negligible*g.largest {
		g.sweepsDue = minSweeps
	}
	g.solver.Changed()
}

// relax runs a batch of Gauss–Seidel sweeps. On a large region batches are short, so that an early end is not
// delayed.
func (g *localSolve) relax(u []float64) (work float64) {
	n := 1
	for n < min(g.sweepsDue, sweepBatch) && 2*n*g.layout.Points() <= batchPoints {
		n *= 2
	}
	g.sweep.RedBlack(u, 1, n, g.exec)
	work = float64(n)
	g.sweepsDue -= n
	g.readable = true
	if g.sweepsDue > 0 && g.sweepsDue%sweepBatch == 0 {
		work++
		if size := g.residualNorm(u); size <= min(relaxReduction, g.requiredRatio)*g.start || g.hasGrown(size) {
			g.sweepsDue = 0
		}
	}
	g.complete = g.sweepsDue == 0
	return work
}

// tooLong reports whether the solve has to end after so many sweeps of a method that is not checked, since its residual
// grows: no solve may let values overflow, or peers could not tell divergence from a fault. Each later solve makes one sweep.
func (g *localSolve) tooLong(u []float64, sweeps int) bool {
	if g.mayGrow && !g.grown && sweeps%sweepBatch == 0 {
		g.hasGrown(g.residualNorm(u))
	}
	return g.grown
}

// hasGrown reports whether a solve of this region has increased the residual far, as this one has if it is now size.
func (g *localSolve) hasGrown(size float64) bool {
	g.grown = g.grown || g.mayGrow && !(size <= maxGrowth*g.start)
	return g.grown
}

// end ends the solve in progress. If its values are not readable, it restores the initial values.
func (g *localSolve) end(u []float64) {
	if !g.complete && !g.readable {
		copy(u, g.saved)
	}
	g.complete = true
}
