package schwarz

import (
	"fmt"
	"math"

	"github.com/p2pdc/p2pdc/internal/kernel"
	"github.com/p2pdc/p2pdc/solver/iterate"
	"github.com/p2pdc/p2pdc/solver/method"
	"github.com/p2pdc/p2pdc/solver/problem"
)

// coarseRoot is where the shares of the coarse problem meet: find the correction e with
// A·e = −R where it may go freely, R the restricted residual of the assembled vector, and
// between the gaps that the obstacles leave. It is solved by a few cycles of multigrid.
type coarseSolver struct {
	layout   kernel.Layout
	operator kernel.Operator
	sweep    *kernel.Sweep
	solver   method.Solver
	e        []float64 // padded
	source   []float64 // −R, dense as all that follow
	lower    []float64
	upper    []float64
	guard    coarseGuard
	forecast *coarseForecast // nil in lockstep
}

// coarseCycles of multigrid solve the coarse problem to about a thousandth.
const coarseCycles = 3

// coarseSweeps of relaxation do where multigrid does not solve it.
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

// begin prepares the operator of a run, or of a time step: that of the problem's
// functions on the coarse grid.
func (r *coarseSolver) begin(w *peer) error {
	q := *w.block.Problem
	q.N, q.Upwind = w.coarse.grid.n, true
	whole := problem.Box{Hi: q.N}
	b := &problem.Discretization{Problem: &q, Box: whole, Layout: r.layout}
	var err error
	if r.operator, _, err = problem.NewStencil(&q).Operator(whole, r.layout, r.operator.Arrays); err != nil {
		return fmt.Errorf("solver: the coarse correction on %v points: %w (--coarse -1 leaves it out)", q.N, err)
	}
	b.Operator = r.operator
	b.Source, b.Lower, b.Upper = kernel.Field{Array: r.source}, kernel.Field{Array: r.lower}, kernel.Field{Array: r.upper}
	if r.sweep, err = b.Sweep(1); err != nil {
		return err
	}
	r.guard.begin()
	if r.forecast != nil {
		r.forecast.begin(&r.operator)
	}
	r.solver, err = renewSolver(r.solver, problem.Multigrid, b.System(), method.Options{Executor: w.exec})
	return err
}

// points is what a correction costs, in points relaxed.
func (r *coarseSolver) workPoints() int {
	n := coarseCycles * 4 * r.layout.Points()
	if r.forecast != nil {
		n += r.forecast.workPoints()
	}
	return n
}

// solve adds up the shares and solves; dst, dense, gets the correction. It tells whether
// there is one: false while corrections do not help.
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
	for _, v := range r.e {
		if !kernel.Finite(v) {
			return false
		}
	}
	if r.forecast != nil {
		r.forecast.correct(r.e, r.lower, r.upper)
	}
	i := 0
	for z := range r.layout.N[2] {
		for y := range r.layout.N[1] {
			at := r.layout.Index(0, y, z)
			i += copy(dst[i:], r.e[at:at+r.layout.N[0]])
		}
	}
	return true
}

// measure is ‖r‖₂ of the coarse problem.
func (r *coarseSolver) residualNorm() float64 {
	var n kernel.Norm
	r.sweep.Residual(&n, r.e, r.layout.Interior())
	return n.L2()
}

// take adds a share to the problem.
func (r *coarseSolver) addShare(w *peer, c *correction, s *share) {
	own := w.config.Partition.Box(s.rank)
	residual, below, above := s.field(0), s.field(1), s.field(2)
	i := 0
	eachPoint(s.box, func(x, y, z int) {
		at := r.layout.Dense(x, y, z)
		r.source[at] += residual[i]
		nearest := [3]int{c.grid.axes[0].nearest[x], c.grid.axes[1].nearest[y], c.grid.axes[2].nearest[z]}
		if own.Holds(nearest) {
			r.lower[at], r.upper[at] = below[i], above[i]
		}
		i++
	})
}

// nextAt is the iterate of the next correction, in lockstep.
func (r *coarseSolver) nextAt(k iterate.Iteration) iterate.Iteration { return max(k+1, r.guard.until) }

// coarseGuard makes convergence certain whatever the corrections do: while the residual
// that the shares tell does not fall with them, there are none, for ever longer; the
// Schwarz relaxation converges by itself. What it compares with is the smallest residual of the
// run: corrections go on after a pause only when relaxation alone has brought the residual
// below that, so that one bad correction is the worst that can happen. A round is over when
// everybody's share has been renewed.
type coarseGuard struct {
	best      float64 // smallest residual
	rounds    int     // since it fell
	seen      []bool
	until     iterate.Iteration // no correction before this iterate of the root's
	pause     iterate.Iteration
	corrected bool // a correction has been made since the last pause
	grown     bool // the last correction has made the residual grow
}

const (
	guardReduction   = 0.9 // by which the residual has to fall
	guardRounds      = 8   // within so many rounds
	guardGrowth      = 4   // and must never grow by this,
	guardPause       = 32  // or there is none for so many iterates, twice as many the next time,
	guardGrowthPause = 16  // and so many times as many where it has grown
)

func (g *coarseGuard) begin() {
	*g = coarseGuard{best: math.Inf(1), pause: guardPause, seen: g.seen}
	clear(g.seen)
}

// admits judges by the newest shares whether there is to be another correction. grown then
// tells whether the last one has to be taken back.
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

// paused tells whether there are no corrections at iterate k of the root's.
func (g *coarseGuard) paused(k iterate.Iteration) bool { return k < g.until }
