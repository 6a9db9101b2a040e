package solver

import (
	"fmt"
	"math"

	"github.com/p2pdc/p2pdc/internal/kernel"
	"github.com/p2pdc/p2pdc/solver/method"
)

// NewSystem is the System of a box of a stationary problem (or a time step, see AtStep)
// for the methods of package method, and the padded array of the reference vector there:
// max(φ, 0), ghosts as the neighbours and the boundary have them. Both are the caller's.
// Coarser grids cover the same region, ghost to ghost; only for the whole grid can they
// tell source, obstacles and boundary data too.
func NewSystem(p *Problem, box Box) (method.System, []float64, error) {
	if err := p.validateHead(); err != nil {
		return method.System{}, nil, err
	}
	b, err := newBlock(p, box)
	if err != nil {
		return method.System{}, nil, err
	}
	u := make([]float64, b.layout.Len())
	if err := b.fillReference(u); err != nil {
		return method.System{}, nil, err
	}
	return b.system(), u, nil
}

// system is the block as the methods see it: the arrays are the block's, so what is
// written there later (a time step's source, say) holds for them.
func (b *block) system() method.System {
	p := b.problem
	s := method.System{
		Layout: b.layout, Operator: b.operator, Source: b.source, Lower: b.lower, Upper: b.upper,
		Parity: b.parity(), Symmetric: p.Symmetric(), Strength: p.strength(),
	}
	s.Coarse = func(n [3]int, e *method.Edges) (kernel.Operator, error) {
		return p.coarseOperatorIn(b.box, n, Box{Hi: n}, e, noRoom)
	}
	if !p.Diffusion.Constant() {
		s.Edges = func() *method.Edges { return p.edges(b.box) }
	}
	if b.box == (Box{Hi: p.N}) {
		s.Boundary = p.coarseBoundary
		if p.Evolution == nil {
			s.Fields = p.coarseFields
		}
	}
	return s
}

// parity is the colour of the box's first point in the whole grid.
func (b *block) parity() int { return (b.box.Lo[0] + b.box.Lo[1] + b.box.Lo[2]) & 1 }

// Symmetric tells whether A is symmetric: nothing flows.
func (p *Problem) Symmetric() bool {
	for a := range p.Dimension {
		if v := p.Velocity[a]; !v.Constant() || v.Value != 0 {
			return false
		}
	}
	return true
}

// strengthPoints per axis are looked at for strength.
const strengthPoints = 5

// strength is how strongly A couples neighbours along each axis, the mean over a few
// points of the whole grid, so that all blocks find the same.
func (p *Problem) strength() [3]float64 {
	st := newStencil(p)
	st.half = true
	count := [3]int{1, 1, 1}
	for a := range p.Dimension {
		count[a] = min(strengthPoints, p.N[a])
	}
	var out [3]float64
	Box{Hi: count}.each(func(_ int, idx [3]int) bool {
		for a := range idx {
			idx[a] = (p.N[a] + 1) * idx[a] / (count[a] + 1)
			idx[a] = max(1, min(p.N[a], idx[a]))
		}
		v := st.at(idx)
		for a := range p.Dimension {
			out[a] += math.Abs(v[kernel.West+2*a]) + math.Abs(v[kernel.East+2*a])
		}
		return true
	})
	return out
}

// region is the problem on n points between the ghosts of a box.
func (p *Problem) region(box Box, n [3]int) *Problem {
	q := *p
	q.N, q.Evolution, q.Initial = n, nil, nil
	q.Lo = p.At(box.Lo[0], box.Lo[1], box.Lo[2])
	q.Hi = p.At(box.Hi[0]+1, box.Hi[1]+1, box.Hi[2]+1)
	return &q
}

// noRoom: the arrays of an operator, where it needs any, are made.
var noRoom [kernel.Directions][]float64

// coarseOperatorIn is the part that lies in a box of A on a coarser grid of a region, an
// M-matrix there too, in the arrays of room where there are some; e is κ between the box's
// points and those around it, nil: it is constant.
func (p *Problem) coarseOperatorIn(region Box, n [3]int, part Box, e *method.Edges, room [kernel.Directions][]float64) (kernel.Operator, error) {
	l, err := kernel.NewLayout(p.Dimension, part.Size())
	if err != nil {
		return kernel.Operator{}, err
	}
	q := p.region(region, n)
	q.Upwind = true
	st := newStencil(q)
	if e != nil {
		st.d = &diffusion{Edges: e}
	}
	op, _, err := st.operator(part, l, room)
	return op, err
}

// coarseFields evaluates source and obstacles on a coarser grid of the domain.
func (p *Problem) coarseFields(n [3]int, source, lower, upper []float64) error {
	return p.coarseFieldsIn(n, Box{Hi: n}, source, lower, upper)
}

// coarseFieldsIn evaluates them in a box of that grid.
func (p *Problem) coarseFieldsIn(n [3]int, part Box, source, lower, upper []float64) error {
	q := p.region(Box{Hi: p.N}, n)
	var err error
	q.eachPlace(part, func(d, i, j, k int, x, y, z float64) bool {
		f, lo, hi := p.Source.At(Point{x, y, z}), math.Inf(-1), math.Inf(1)
		if p.Obstacle != nil {
			lo = p.Obstacle(Point{x, y, z})
		}
		if p.Upper != nil {
			hi = p.Upper(Point{x, y, z})
		}
		if math.IsNaN(f) || math.IsNaN(lo) || math.IsNaN(hi) {
			err = p.refuse("source %v, obstacles %v and %v at %v", f, lo, hi, q.place([3]int{i, j, k}))
		}
		source[d], lower[d] = f, lo
		if upper != nil { // else the grid has no upper obstacle
			upper[d] = hi
		}
		return err == nil
	})
	return err
}

// coarseBoundary evaluates the boundary data on a coarser grid of the domain, on faces,
// edges and corners.
func (p *Problem) coarseBoundary(n [3]int, l kernel.Layout, values []float64) error {
	return p.coarseBoundaryIn(n, Box{Hi: n}, l, values)
}

// coarseBoundaryIn evaluates them at those ghosts of a box of that grid that lie on the
// boundary.
func (p *Problem) coarseBoundaryIn(n [3]int, part Box, l kernel.Layout, values []float64) error {
	q := p.region(Box{Hi: p.N}, n)
	var err error
	for a := range p.Dimension {
		for _, end := range []int{-1, n[a]} {
			if end < 0 && part.Lo[a] > 0 || end > part.Hi[a] {
				continue
			}
			side := part
			for c := range p.Dimension {
				side.Lo[c], side.Hi[c] = part.Lo[c]-1, part.Hi[c]+1
			}
			side.Lo[a], side.Hi[a] = end, end+1
			q.eachPlace(side, func(_, i, j, k int, x, y, z float64) bool {
				v := q.Boundary(Point{x, y, z})
				values[l.Index(i-1-part.Lo[0], j-1-part.Lo[1], k-1-part.Lo[2])] = v
				if !finite(v) {
					err = p.refuse("the boundary data are %v at %v", v, q.place([3]int{i, j, k}))
				}
				return err == nil
			})
		}
	}
	return err
}

// Solved is the result of SolveBy.
type Solved struct {
	U        []float64 // [z][y][x]; of a nonstationary problem the end of the last complete step
	Cycles   int       // of all steps; sweeps of point methods
	Work     float64   // in sweeps over the grid, the start included
	Residual float64   // relative, of the last step
	Reason   Reason
	Steps    int    // complete ones
	Bytes    int    // that the method held
	About    string // what it says of itself
}

// checkCycles is how many sweeps of a point method are done between two residuals.
const checkCycles = 8

// SolveBy solves a problem on one block by a method of package method: no peers, no
// exchange. Of a stationary problem without a starting iterate, multigrid begins with its
// full multigrid start; time steps begin where the one before has ended. most bounds the
// cycles of a step, and their work as Config.MaxSweeps does.
func SolveBy(p *Problem, m MethodConfig, tol float64, most int, e Executor) (Solved, error) {
	if err := m.check(); err != nil {
		return Solved{}, err
	}
	if !(tol > 0) {
		return Solved{}, fmt.Errorf("solver: the tolerance is %v; it must be positive", tol)
	}
	p, in, err := p.inRange()
	if err != nil {
		return Solved{}, err
	}
	out, err := solveStepsBy(p, in, m, tol, most, e)
	(-in.scale).apply(out.U)
	return out, err
}

func solveStepsBy(p *Problem, in units, m MethodConfig, tol float64, most int, e Executor) (Solved, error) {
	if p.Evolution == nil {
		return solveBy(p, in, m, tol, most, e, nil, 0)
	}
	before, err := p.before(Box{Hi: p.N}, nil)
	if err != nil {
		return Solved{}, err
	}
	var all Solved
	for step := 1; step <= p.Evolution.Steps; step++ {
		one, err := solveBy(p.AtStep(step), in, m, tol, most, e, before, p.Evolution.Step())
		if err != nil {
			return Solved{}, err
		}
		one.Cycles, one.Work, one.Steps = one.Cycles+all.Cycles, one.Work+all.Work, all.Steps
		if all = one; one.Reason != Converged {
			break
		}
		before = one.U
		all.Steps++
	}
	all.U = before
	return all, nil
}

// solveBy solves a stationary problem, or a time step of length dt from before.
func solveBy(p *Problem, in units, c MethodConfig, tol float64, most int, e Executor, before []float64, dt float64) (Solved, error) {
	b, err := newBlock(p, Box{Hi: p.N})
	if err != nil {
		return Solved{}, err
	}
	if before != nil {
		b.remember(before, dt)
	}
	u := make([]float64, b.layout.Len())
	if err = b.fillReference(u); err != nil {
		return Solved{}, err
	}
	sweep, err := b.sweep(1)
	if err != nil {
		return Solved{}, err
	}
	measure := func() float64 {
		var n kernel.Norm
		sweep.Residual(&n, u, b.layout.Interior())
		return n.L2()
	}
	reference := in.reference(measure())
	if !finite(reference) {
		return Solved{}, p.refuseMagnitude()
	}
	warm, err := b.start(u, before)
	if err != nil {
		return Solved{}, err
	}
	name := c.Name
	if name == "" {
		name = Richardson
	}
	system, o := b.system(), method.Options{Executor: e, Omega: c.Omega, Cycle: c.Cycle}
	if name == SOR && o.Omega == 0 {
		o.InitialOmega = p.firstOmega(before != nil)
	}
	m, err := method.New(name, system, o)
	if err != nil {
		return Solved{}, err
	}
	out := Solved{Bytes: m.Bytes(), U: make([]float64, p.Points())}
	judge := func() bool {
		out.Residual = relative(measure(), reference)
		switch {
		case !finite(out.Residual):
			out.Reason = Diverged
		case out.Residual <= tol:
			out.Reason = Converged
		}
		return out.Reason != Running
	}
	over := func() bool { return out.Cycles >= most }
	if mg, ok := m.(*method.Multigrid); ok {
		nominal := mg.NominalWork()
		mg.BudgetSpent = func(relaxations int) bool { return spent(most, out.Cycles, relaxations, nominal) }
		over = func() bool { return out.Cycles >= most || mg.BudgetSpent(mg.Relaxations()) }
	}
	if !judge() && !warm {
		out.Work += m.Start(u)
	}
	for out.Reason == Running {
		if over() {
			out.Reason = ReachedSweeps
			if judge(); !warm && !(out.Residual <= 1) { // not worse than what it began with
				if err = b.fillReference(u); err != nil {
					return Solved{}, err
				}
				judge()
			}
			break
		}
		out.Work += m.Cycle(u)
		if out.Cycles++; m.Name() == Multigrid || out.Cycles%checkCycles == 0 {
			judge()
		}
	}
	out.About = m.Describe()
	b.copyOut(out.U, u)
	return out, nil
}
