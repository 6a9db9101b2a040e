package fas

import (
	"math"

	"github.com/p2pdc/p2pdc/internal/kernel"
	"github.com/p2pdc/p2pdc/solver/method"
	"github.com/p2pdc/p2pdc/solver/problem"
)

// replicated is the level that covers the whole domain at every peer, and all coarser ones: an obstacle problem whose
// right-hand side the peers send each other, solved by multigrid.
type replicated struct {
	problem *problem.Problem // of the finest grid
	layout  kernel.Layout
	values  []float64 // padded
	source  []float64
	solver  *method.Multigrid
	sweep   *kernel.Sweep // measures; nil if A is symmetric
}

// init makes the level of a plan.
func (r *replicated) init(g *plan, block *problem.Discretization, o method.Options) error {
	p, k, h := block.Problem, g.depth, &g.hierarchy
	n := h.Grids[k]
	var err error
	if r.layout, err = kernel.NewLayout(h.Dim, n); err != nil {
		return err
	}
	r.problem = p
	points := r.layout.Points()
	r.values, r.source = o.Allocate(r.layout.Len()), o.Allocate(points)
	lower, upper := o.Allocate(points), []float64(nil)
	if p.Upper != nil {
		upper = o.Allocate(points)
	}
	if err := g.sample(p, k, problem.Box{Hi: n}, r.source, lower, upper); err != nil {
		return err
	}
	s := block.System()
	s.Layout, s.Source, s.Lower, s.Parity = r.layout, kernel.Field{Array: r.source}, kernel.Field{Array: lower}, 0
	if s.Upper = kernel.NoUpper(); upper != nil {
		s.Upper = kernel.Field{Array: upper}
	}
	for a := range h.Dim {
		f := float64(g.intervals(0, a)) / float64(g.intervals(k, a))
		s.Strength[a] /= f * f
	}
	whole := problem.Box{Hi: p.N}
	s.Coarse = func(n [3]int, e *method.Edges) (kernel.Operator, error) {
		return p.CoarseOperatorIn(whole, n, problem.Box{Hi: n}, e, [kernel.Directions][]float64{})
	}
	var edges *method.Edges
	if s.Edges = nil; !p.Diffusion.Constant() {
		lo, hi := method.WholeGrid(h.Dim, n)
		edges = p.CoarseEdges(h, k, lo, hi)
		s.Edges = func() *method.Edges { return edges }
	}
	if s.Operator, err = s.Coarse(n, edges); err != nil {
		return err
	}
	s.Boundary = p.CoarseBoundary
	s.Fields = func(n [3]int, source, lower, upper []float64) error {
		return p.CoarseFieldsIn(n, problem.Box{Hi: n}, source, lower, upper)
	}
	if r.solver, err = method.NewMultigrid(s, o); err == nil && !s.Symmetric {
		r.sweep, err = kernel.New(kernel.Config{
			Layout: s.Layout, Operator: s.Operator, Source: s.Source, Lower: s.Lower, Upper: s.Upper, Step: 1,
		})
	}
	return err
}

// start solves the problem of this level itself, without a message.
func (r *replicated) start() error {
	if err := r.setBoundary(); err != nil {
		return err
	}
	r.solver.Start(r.values)
	for range startCycles {
		r.cycle()
	}
	return nil
}

// startCycles is the number of cycles of the start on the replicated level.
const startCycles = 2

// cycle executes a cycle. The right-hand side may have changed since the last one. Where A is symmetric, the energy decides
// whether the cycle is accepted, else the residual.
func (r *replicated) cycle() {
	if r.sweep == nil {
		r.solver.Changed()
	} else {
		var n kernel.Norm
		r.sweep.Residual(&n, r.values, r.layout.Interior())
		r.solver.Begin(math.Sqrt(n.Squares.Float64()))
	}
	r.solver.Cycle(r.values)
}

// eachRow calls f for the rows of the right-hand side in a box.
func (r *replicated) eachRow(b problem.Box, f func(row []float64)) {
	for z := b.Lo[2]; z < b.Hi[2]; z++ {
		for y := b.Lo[1]; y < b.Hi[1]; y++ {
			f(r.source[r.layout.Dense(b.Lo[0], y, z):][:b.Hi[0]-b.Lo[0]])
		}
	}
}

// cycleWork returns the nominal cost of a cycle in point relaxations.
func (r *replicated) cycleWork() int { return int(r.solver.NominalWork() * float64(r.layout.Points())) }
