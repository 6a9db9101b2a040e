package schwarz

import (
	"math"

	"github.com/p2pdc/p2pdc/internal/kernel"
	"github.com/p2pdc/p2pdc/solver/method"
	"github.com/p2pdc/p2pdc/solver/problem"
)

// localName is the method of a peer on its own region.
func localName(m *problem.MethodConfig) string {
	if m.Local == "" {
		return problem.Multigrid
	}
	return m.Local
}

// newLocal makes the local solve of the region, for the problem that the block holds; in later
// time steps the solver of the step before is renewed where it can be.
func newLocal(w *peer) (*localSolve, error) {
	m := &w.config.Method
	var old method.Solver
	if w.local != nil {
		old = w.local.solver
	}
	solver, err := renewSolver(old, localName(m), w.block.System(),
		method.Options{Executor: w.exec, Omega: w.choice.omega(), Cycle: m.Cycle, Unguarded: true})
	if err != nil {
		return nil, err
	}
	return newLocalSolve(solver, w.sweep, w.layout, w.exec, m.Flexible), nil
}

// renewed is old, of the same name and made with the same options, for another system, or
// a new solver where there is no old one or it has nothing that is worth keeping.
func renewSolver(old method.Solver, name string, s method.System, o method.Options) (method.Solver, error) {
	if m, ok := old.(*method.Multigrid); ok {
		return m, m.Renew(s)
	}
	return method.New(name, s, o)
}

// bestOmega is the factor of SOR that is best for a free membrane of n points an axis.
func bestOmega(n int) float64 { return 2 / (1 + math.Sin(math.Pi/float64(n+1))) }

// localSolve is a local solve of the Schwarz method and the guard that makes the convergence
// of the whole iteration certain, whatever the local method does (ADR 34).
//
// For an M-matrix, a local solve that is exact, or that consists of Gauss–Seidel sweeps,
// contracts the error in a weighted maximum norm, and so do all peers together, with values
// of any age. Multigrid and over-relaxation do not. Their values are kept where the residual of
// the region has fallen below falls times that of the values that the solve began with, so that
// they differ from an exact solve by at most a multiple of falls·start; otherwise the
// region is relaxed from the values it began with. falls is halved whenever start does
// not fall from one window of solves to the next. So either start tends to 0, or falls does,
// and with either of them the difference from a contraction.
type localSolve struct {
	solver          method.Solver
	sweep           *kernel.Sweep
	exec            problem.Executor
	layout          kernel.Layout
	contracts       bool // the method contracts by itself: nothing is judged
	checksEachCycle bool // the residual is judged after each cycle, not only at the end

	chunks int
	axis   int
	norms  []kernel.Norm // one a chunk
	run    func(i int)   // bound once: a closure a call would allocate
	values []float64

	// Of the solve in progress.
	saved     []float64 // values that it began with
	start     float64   // ‖r‖₂ of the region with them
	last      float64   // at the last judgement
	cycles    int       // wanted
	done      int
	sweepsDue int  // sweeps of relaxation still to be done
	readable  bool // the values may be read by others
	complete  bool

	// Kept between solves.
	requiredRatio float64
	sweeps        int     // of the last relaxation
	largest       float64 // start of all solves
	peak          float64 // largest start in this window
	previousPeak  float64 // and in the one before; 0: there is none
	solves        int     // in this window
}

const (
	initialRatio    = 0.5  // of localSolve.falls
	ratioDecrease   = 0.5  // by which falls is multiplied,
	minRatio        = 1e-9 // at least this: the solve is exact then
	localWindow     = 8    // solves with news in a window
	windowReduction = 0.9  // by which start has to fall from window to window
	maxStartGrowth  = 2    // start must never grow by this
	minSweeps       = 4    // of relaxation
	maxSweeps       = 64
	sweepBatch      = 16      // sweeps of one operation, at most
	batchPoints     = 1 << 20 // that it goes over, about
	relaxReduction  = 0.1     // the residual need not fall any further by relaxation
	// negligible is the part of the largest start below which a region is solved up to
	// rounding.
	negligible = 1e-10
)

func newLocalSolve(s method.Solver, sweep *kernel.Sweep, l kernel.Layout, e problem.Executor, partial bool) *localSolve {
	g := &localSolve{solver: s, sweep: sweep, exec: e, layout: l, requiredRatio: initialRatio}
	_, multigrid := s.(*method.Multigrid)
	g.contracts, g.checksEachCycle = s.Name() == problem.Richardson, partial || multigrid
	if g.contracts {
		return g
	}
	g.saved = make([]float64, l.Len())
	g.chunks, g.axis = problem.Split(l.Interior(), problem.Jacobi, l.Dim)
	g.norms = make([]kernel.Norm, g.chunks)
	g.run = func(i int) { g.sweep.Residual(&g.norms[i], g.values, problem.Chunk(l.Interior(), g.axis, i, g.chunks)) }
	return g
}

// begin begins a solve of as many cycles from u. news: values of other peers are newer than in
// the solve before.
func (g *localSolve) begin(u []float64, cycles int, newValues bool) {
	g.solver.Changed()
	g.cycles, g.done, g.sweepsDue, g.readable, g.complete = cycles, 0, 0, false, false
	if g.contracts {
		return
	}
	copy(g.saved, u)
	g.start = g.residualNorm(u)
	g.last = g.start
	if newValues {
		g.recordStart()
	}
}

// remember takes the residual that a solve begins with, and trusts the method less where it
// does not fall.
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
	g.previousPeak, g.peak, g.solves = g.peak, 0, 0
}

// measure is ‖r‖₂ of the region.
func (g *localSolve) residualNorm(u []float64) float64 {
	g.values = u
	g.exec.For(g.chunks, g.run)
	for i := 1; i < g.chunks; i++ {
		g.norms[0].Merge(&g.norms[i])
		g.norms[i].Reset()
	}
	r := g.norms[0].L2()
	g.norms[0].Reset()
	return r
}

// step does a cycle, or a batch of relaxation, and returns its cost in sweeps over the
// region. Then sound tells whether the values may be read, and over whether the solve is complete.
func (g *localSolve) step(u []float64) (work float64) {
	if g.sweepsDue > 0 {
		return g.relax(u)
	}
	work = g.solver.Cycle(u)
	g.done++
	if g.contracts {
		g.readable, g.complete = true, g.done >= g.cycles
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

// reject goes back to the values that the solve began with, from which relaxation goes on, the
// longer the more often that happens.
func (g *localSolve) reject(u []float64) {
	copy(u, g.saved)
	g.readable = false
	g.sweeps = min(maxSweeps, max(minSweeps, 2*g.sweeps))
	if g.sweepsDue = g.sweeps; g.start <= negligible*g.largest {
		g.sweepsDue = minSweeps
	}
	g.solver.Changed()
}

// relax does a batch of Gauss–Seidel sweeps. On a large region it is a short one, so that a
// run that is to end early does not wait for it.
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
		if g.residualNorm(u) <= min(relaxReduction, g.requiredRatio)*g.start {
			g.sweepsDue = 0
		}
	}
	g.complete = g.sweepsDue == 0
	return work
}

// end ends the solve in progress: with the values that it began with where those it has come
// to may not be read.
func (g *localSolve) end(u []float64) {
	if !g.complete && !g.readable {
		copy(u, g.saved)
	}
	g.complete = true
}
