package solver

import (
	"fmt"
	"math"

	"github.com/p2pdc/p2pdc/internal/kernel"
	"github.com/p2pdc/p2pdc/solver/method"
)

// coarseRoot is where the shares of the coarse problem meet: find the correction e with
// A·e = −R where it may go freely, R the restricted residual of the assembled vector, and
// between the gaps that the obstacles leave. It is solved by a few cycles of multigrid.
type coarseRoot struct {
	layout   kernel.Layout
	operator kernel.Operator
	sweep    *kernel.Sweep
	solver   method.Solver
	e        []float64 // padded
	since    []float64 // padded: corrections that a share has not in it
	image    []float64 // padded: A·since
	sinceOf  uint64    // number that since begins with
	source   []float64 // −R, dense as all that follow
	lower    []float64
	upper    []float64
	guard    coarseGuard
}

// coarseCycles of multigrid solve the coarse problem to about a thousandth.
const coarseCycles = 3

func newCoarseRoot(w *schwarz, c *correction) *coarseRoot {
	l := c.grid.layout
	r := &coarseRoot{layout: l}
	for _, a := range []*[]float64{&r.e, &r.since, &r.image} {
		*a = make([]float64, l.Len())
	}
	for _, a := range []*[]float64{&r.source, &r.lower, &r.upper} {
		*a = make([]float64, l.Points())
	}
	r.guard.seen = make([]bool, len(c.members))
	return r
}

// begin prepares the operator of a run, or of a time step: that of the problem's
// functions on the coarse grid.
func (r *coarseRoot) begin(w *schwarz) error {
	q := *w.block.problem
	q.N, q.Upwind = w.coarse.grid.n, true
	whole := Box{Hi: q.N}
	b := &block{problem: &q, box: whole, layout: r.layout}
	var err error
	if r.operator, _, err = newStencil(&q).operator(whole, r.layout, r.operator.Arrays); err != nil {
		return fmt.Errorf("solver: the coarse correction on %v points: %w (--coarse -1 leaves it out)", q.N, err)
	}
	b.operator = r.operator
	b.source, b.lower, b.upper = kernel.Field{Array: r.source}, kernel.Field{Array: r.lower}, kernel.Field{Array: r.upper}
	if r.sweep, err = b.sweep(1); err != nil {
		return err
	}
	r.guard.begin()
	r.solver, err = renewed(r.solver, Multigrid, b.system(), method.Options{Executor: w.exec})
	return err
}

func (r *coarseRoot) points() int { return coarseCycles * 4 * r.layout.Points() }

// solve adds up the shares and solves; dst, dense, gets the correction. It tells whether
// there is one: false while corrections do not help.
func (r *coarseRoot) solve(w *schwarz, c *correction, dst []float64) bool {
	if !r.guard.admits(w.iterate, c.members) {
		return false
	}
	clear(r.source)
	clear(r.lower)
	clear(r.upper)
	r.sinceOf = math.MaxUint64
	for i := range c.members {
		r.take(w, c, &c.members[i])
	}
	for i, v := range r.source {
		r.source[i] = -v
		r.lower[i], r.upper[i] = math.Min(r.lower[i], 0), math.Max(r.upper[i], 0)
	}
	clear(r.e)
	r.solver.Changed()
	for range coarseCycles {
		r.solver.Cycle(r.e)
	}
	// By the time the correction comes, relaxation will have done a part of it: about what
	// it has done in the last round.
	damping := 1.0
	if !inLockstep(w.config.Scheme) {
		damping = r.guard.left
	}
	i := 0
	for z := range r.layout.N[2] {
		for y := range r.layout.N[1] {
			at := r.layout.Index(0, y, z)
			for _, v := range r.e[at : at+r.layout.N[0]] {
				if !finite(v) {
					return false
				}
				dst[i] = damping * v
				i++
			}
		}
	}
	return true
}

// take adds a share to the problem, as it will be once the corrections that are on their
// way have been added.
func (r *coarseRoot) take(w *schwarz, c *correction, s *share) {
	later := s.number < c.newest
	if later && s.number != r.sinceOf {
		if !r.difference(c, s.number) {
			return // too old: its points are left alone
		}
	}
	own := w.config.Partition.Box(s.rank)
	residual, below, above := s.field(0), s.field(1), s.field(2)
	i := 0
	eachPoint(s.box, func(x, y, z int) {
		at := r.layout.Dense(x, y, z)
		r.source[at] += residual[i]
		nearest := [3]int{c.grid.axes[0].nearest[x], c.grid.axes[1].nearest[y], c.grid.axes[2].nearest[z]}
		mine := own.holds(nearest)
		if mine {
			r.lower[at], r.upper[at] = below[i], above[i]
		}
		if later {
			part := s.weights[0][x-s.box.Lo[0]] * s.weights[1][y-s.box.Lo[1]] * s.weights[2][z-s.box.Lo[2]]
			j := r.layout.Index(x, y, z)
			r.source[at] += part * r.image[j]
			if mine && below[i] < 0 && above[i] > 0 {
				r.lower[at] -= r.since[j]
				r.upper[at] -= r.since[j]
			}
		}
		i++
	})
}

// difference sets since and image to the corrections after number.
func (r *coarseRoot) difference(c *correction, number uint64) bool {
	old, sum := c.sum(number), c.sum(c.newest)
	if old == nil {
		return false
	}
	i := 0
	eachPoint(r.layout.Interior(), func(x, y, z int) {
		r.since[r.layout.Index(x, y, z)] = sum[i] - old[i]
		i++
	})
	r.sweep.Apply(r.image, r.since, r.layout.Interior())
	r.sinceOf = number
	return true
}

// nextAt is the iterate of the next correction, in lockstep.
func (r *coarseRoot) nextAt(k Iteration) Iteration { return max(k+1, r.guard.until) }

// coarseGuard makes convergence certain whatever the corrections do: while the residual
// that the shares tell does not fall with them, there are none, for ever longer; the
// Schwarz relaxation converges by itself. A round is over when everybody's share has been
// renewed.
type coarseGuard struct {
	best   float64 // smallest residual since the last pause
	rounds int     // since it fell
	last   float64 // at the end of the last round
	left   float64 // of it at the end of this one
	seen   []bool
	until  Iteration // no correction before this iterate of the root's
	pause  Iteration
}

const (
	guardFalls  = 0.9 // by which the residual has to fall
	guardRounds = 8   // within so many rounds
	guardGrows  = 4   // and must never grow by this,
	guardPause  = 32  // or there is none for so many iterates, twice as many the next time
)

func (g *coarseGuard) begin() {
	*g = coarseGuard{best: math.Inf(1), left: 1, pause: guardPause, seen: g.seen}
	clear(g.seen)
}

// admits judges by the newest shares whether there is to be another correction.
func (g *coarseGuard) admits(k Iteration, members []share) bool {
	if k < g.until {
		return false
	}
	total, all, better := 0.0, true, false
	for i := range members {
		total += members[i].square
		g.seen[i] = g.seen[i] || members[i].fresh
		all = all && g.seen[i]
	}
	n := math.Sqrt(total)
	if better = n < guardFalls*g.best; better {
		g.best, g.rounds = n, 0
	}
	if all {
		clear(g.seen)
		if g.left = 1; g.last > 0 {
			g.left = math.Min(1, n/g.last)
		}
		if g.last = n; !better {
			g.rounds++
		}
	}
	if g.rounds < guardRounds && !(n > guardGrows*g.best) {
		return true
	}
	g.best, g.rounds, g.last, g.left = math.Inf(1), 0, 0, 1
	g.until = k + g.pause
	g.pause = min(2*g.pause, 1<<40)
	return false
}

// paused tells whether there are no corrections at iterate k of the root's.
func (g *coarseGuard) paused(k Iteration) bool { return k < g.until }
