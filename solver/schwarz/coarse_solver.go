package schwarz

import (
	"fmt"
	"math"
	"slices"

	"github.com/p2pdc/p2pdc/internal/kernel"
	"github.com/p2pdc/p2pdc/solver/iterate"
	"github.com/p2pdc/p2pdc/solver/method"
	"github.com/p2pdc/p2pdc/solver/problem"
)

// coarseSolver solves the coarse problem at the root: find the correction e with A·e = −R where it is not
// constrained, between the gaps to the obstacles, where R is the restricted residual of the assembled vector.
// It runs a few multigrid cycles.
type coarseSolver struct {
	layout   kernel.Layout
	operator kernel.Operator
	sweep    *kernel.Sweep
	solver   method.Solver
	e        []float64 // padded
	source   []float64 // −R; dense like the following arrays
	lower    []float64
	upper    []float64
	guard    coarseGuard
	forecast *coarseForecast // nil in lockstep
}

// coarseCycles multigrid cycles reduce the residual of the coarse problem to about a thousandth.
const coarseCycles = 3

// coarseSweeps is the number of relaxation sweeps if multigrid fails.
const coarseSweeps = 32

func newCoarseSolver(w *peer, c *correction) *coarseSolver {
	l := c.grid.layout
	r := &coarseSolver{layout: l}
	r.e = make([]float64, l.Len())
	for _, a := range []*[]float64{&r.source, &r.lower, &r.upper} {
		*a = make([]float64, l.Points())
	}
	if !w.config.Scheme.Lockstep() {
		r.forecast = newCoarseForecast(&w.config, c.grid)
	}
	r.guard.seen = make([]bool, len(c.shares))
	return r
}

// begin sets the operator of a run or a time step, evaluated on the coarse grid.
func (r *coarseSolver) begin(w *peer) error {
	q := *w.block.Problem
	q.N, q.Upwind = w.coarse.grid.n, true
	whole := problem.Box{Hi: q.N}
	b := &problem.Discretization{Problem: &q, Box: whole, Layout: r.layout}
	var err error
	if r.operator, _, err = problem.NewStencil(&q).Operator(whole, r.layout, r.operator.Arrays); err != nil {
		return fmt.Errorf("schwarz: the coarse correction on %v points: %w (disable it with --coarse -1)", q.N, err)
	}
	b.Operator = r.operator
	b.Source = kernel.Field{Array: r.source}
	b.Lower = kernel.Field{Array: r.lower}
	b.Upper = kernel.Field{Array: r.upper}
	if r.sweep, err = b.Sweep(1); err != nil {
		return err
	}
	r.guard.begin()
	if r.forecast != nil {
		r.forecast.begin(&r.operator)
	}
	r.solver, err = renewSolver(r.solver, problem.Multigrid, b.System(), method.Options{Executor: w.config.Executor})
	return err
}

// workPoints returns the cost of a correction in point relaxations.
func (r *coarseSolver) workPoints() int {
	n := coarseCycles * 4 * r.layout.Points()
	if r.forecast != nil {
		n += r.forecast.workPoints()
	}
	return n
}

// solve adds up the shares and solves the coarse problem. dst, dense, receives the correction. It returns false
// while corrections do not help.
func (r *coarseSolver) solve(w *peer, c *correction, dst []float64) bool {
	if !r.guard.admits(w.Iterate, c.shares) {
		return false
	}
	clear(r.source)
	clear(r.lower)
	clear(r.upper)
	for i := range c.shares {
		r.addShare(w, c, &c.shares[i])
	}
	for i, v := range r.source {
		r.source[i] = -v
		r.lower[i], r.upper[i] = math.Min(r.lower[i], 0), math.Max(r.upper[i], 0)
	}
	clear(r.e)
	before := r.residualNorm()
	r.solver.Changed()
	for range coarseCycles {
		r.solver.Cycle(r.e)
	}
	if !(r.residualNorm() <= method.RequiredReduction*before) {
		clear(r.e)
		r.sweep.RedBlack(r.e, 1, coarseSweeps, kernel.Sequential{})
	}
	if slices.ContainsFunc(r.e, func(v float64) bool { return !kernel.Finite(v) }) {
		return false
	}
	if r.forecast != nil {
		r.forecast.correct(r.e, r.lower, r.upper)
	}
	l := r.layout
	method.CopyBox(dst, method.DenseLayout(l.N), l.Interior(), r.e, l, [3]int{})
	return true
}

// residualNorm returns ‖r‖₂ of the coarse problem.
func (r *coarseSolver) residualNorm() float64 {
	var n kernel.Norm
	r.sweep.Residual(&n, r.e, r.layout.Interior())
	return n.L2()
}

// addShare adds a share to the coarse problem.
func (r *coarseSolver) addShare(w *peer, c *correction, s *share) {
	own := w.config.Partition.Box(s.rank)
	residual, below, above := s.field(0), s.field(1), s.field(2)
	i := 0
	eachPoint(s.box, func(x, y, z int) {
		at := r.layout.Dense(x, y, z)
		r.source[at] += residual[i]
		if own.Contains(c.grid.nearestFine(x, y, z)) {
			r.lower[at], r.upper[at] = below[i], above[i]
		}
		i++
	})
}

// coarseGuard guarantees convergence whatever the corrections do. While the residual in the shares does not
// fall, corrections pause, each time for longer; the Schwarz relaxation converges by itself. The residual is
// compared with the smallest one of the run. Corrections resume after a pause only when relaxation alone has
// reduced the residual below it, so that the harm is limited to one poor correction. A round ends when all
// shares have been renewed.
type coarseGuard struct {
	best      float64 // smallest residual
	rounds    int     // rounds since it fell
	seen      []bool
	until     iterate.Iteration // no correction before this iterate of the root
	pause     iterate.Iteration
	corrected bool // a correction was computed since the last pause
	grown     bool // the last correction has increased the residual
}

const (
	guardReduction   = 0.9 // the residual must fall by this factor
	guardRounds      = 8   // within this number of rounds
	guardGrowth      = 4   // and must never grow by this factor
	guardPause       = 32  // iterates of the first pause; the length doubles each time
	guardGrowthPause = 16  // and is multiplied by this factor where the residual has grown
)

func (g *coarseGuard) begin() {
	*g = coarseGuard{best: math.Inf(1), pause: guardPause, seen: g.seen}
	clear(g.seen)
}

// admits reports whether the newest shares admit another correction. It sets grown if the last one must be
// taken back.
func (g *coarseGuard) admits(k iterate.Iteration, members []share) bool {
	g.grown = false
	if k < g.until {
		return false
	}
	total, all := 0.0, true
	for i := range members {
		total += members[i].square
		g.seen[i] = g.seen[i] || members[i].fresh
		all = all && g.seen[i]
	}
	n := math.Sqrt(total)
	better := n < guardReduction*g.best
	if better {
		g.best, g.rounds = n, 0
	}
	if all {
		clear(g.seen)
		if !better {
			g.rounds++
		}
	}
	if better || g.corrected && g.rounds < guardRounds && n <= guardGrowth*g.best {
		g.corrected = true
		return true
	}
	g.grown = g.corrected && !(n <= guardGrowth*g.best)
	g.rounds, g.corrected = 0, false
	g.until = k + g.pause
	longer := iterate.Iteration(2)
	if g.grown {
		longer = guardGrowthPause
		g.until = k + longer*g.pause
	}
	g.pause = min(longer*g.pause, 1<<40)
	return false
}

// paused reports whether corrections pause at iterate k of the root.
func (g *coarseGuard) paused(k iterate.Iteration) bool { return k < g.until }
