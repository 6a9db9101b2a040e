package method

import (
	"errors"
	"fmt"
	"math"

	"github.com/p2pdc/p2pdc/internal/kernel"
)

// Multigrid is projected multigrid: red-black projected Gauss–Seidel relaxation on every grid, and the correction
// problem with its obstacles on the next coarser grid (the full approximation scheme of Brandt and Cryer, SIAM J.
// Sci. Stat. Comput. 4, 1983, written in corrections, as a linear A allows). Four measures prevent the oscillations
// of that scheme: the residual of points in contact that stay there is not restricted, a coarse point on a fine point
// in contact is held, points in contact are not corrected, and a Safeguard evaluates every cycle.
type Multigrid struct {
	system    System
	options   Options
	hierarchy Hierarchy
	levels    []*Level
	cycle     []Stage
	start     []Stage
	parallel  *parallelFor
	saved     []float64
	safeguard Safeguard
	norms     []kernel.Norm
	sums      []kernel.Sum
	residual  float64
	fraction  float64 // part of the step that scale keeps
	reference float64 // residual of ReferenceStart
	stage     Stage
	funcs     stageFuncs

	// BudgetSpent, if not nil, reports whether the safeguard must stop after that many relaxations, counted
	// since the solver was made.
	BudgetSpent func(relaxations int) bool
	relaxations int
}

// stageFuncs are the functions of the stages on a piece of a box. They are bound once, because a closure
// per call would allocate memory.
type stageFuncs struct {
	restrict, prolong, sample, interpolate, restore, energy, defect, measure, scale func(piece int, b kernel.Box)

	measureRows func(worker, lo, hi, z int)
}

// NewMultigrid returns the solver of a system on one block whose ghosts are boundary data.
func NewMultigrid(s System, o Options) (*Multigrid, error) {
	m := &Multigrid{options: o, parallel: newParallelFor(o.Executor, s.Layout.Dim)}
	m.saved = o.array(s.Layout.Len())
	m.norms = make([]kernel.Norm, max(maxPieces, kernel.Workers(m.parallel.exec)))
	m.sums = make([]kernel.Sum, maxPieces)
	m.bindFuncs()
	return m, m.init(s, s.hierarchy())
}

// hierarchy returns the grids for a system.
func (s *System) hierarchy() Hierarchy { return NewHierarchy(s.Layout.Dim, s.Layout.N, s.Strength) }

// init makes the levels and the stages of a cycle.
func (m *Multigrid) init(s System, h Hierarchy) error {
	m.system, m.hierarchy = s, h
	m.levels = nil
	edges := m.edges()
	for i, n := range h.Grids {
		c := LevelConfig{
			Part: kernel.Whole(s.Layout), Parity: s.Parity,
			Operator: s.Operator, Source: s.Source, Lower: s.Lower, Upper: s.Upper, Allocate: m.options.array,
		}
		if i > 0 {
			layout, err := kernel.NewLayout(h.Dim, n)
			if err != nil {
				return err
			}
			c.Part, c.Parity = kernel.Whole(layout), 0
			if c.Operator, err = m.levelOperator(i, edges); err != nil {
				return err
			}
		}
		l, err := NewLevel(c, i > 0)
		if err != nil {
			return err
		}
		if m.levels = append(m.levels, l); i > 0 {
			if err = m.levels[i-1].Connect(l); err != nil {
				return err
			}
		}
	}
	for i, l := range m.levels {
		l.SetEdges(edges[i])
	}
	alone := func(s Stage) bool { return m.levels[s.Level].CanFuse(s) }
	m.cycle = Fuse(h.Cycle(m.options.Cycle), alone)
	m.start = Fuse(h.Start(m.options.Cycle, s.Operator.Form == kernel.Variable), alone)
	if len(m.levels) == 1 { // a handful of points
		m.cycle, m.start = []Stage{h.solve(0), {Kind: Measure}}, nil
	}
	m.safeguard = NewSafeguard(s.Symmetric, s.WeakFlow)
	return nil
}

// edges returns the diffusion on all levels; entries are nil if it is constant or unknown.
func (m *Multigrid) edges() []*Edges {
	out := make([]*Edges, len(m.hierarchy.Grids))
	if m.system.Edges == nil || len(out) == 1 {
		return out
	}
	out[0] = m.system.Edges()
	for i := 1; i < len(out) && out[0] != nil; i++ {
		out[i] = out[i-1].CoarsenWhole(m.hierarchy.Grids[i])
	}
	return out
}

// levelOperator returns the operator of level i > 0.
func (m *Multigrid) levelOperator(i int, edges []*Edges) (kernel.Operator, error) {
	n := m.hierarchy.Grids[i]
	if m.system.Coarse == nil {
		return kernel.Operator{}, errors.New("method: the system has no function Coarse; multigrid needs it")
	}
	op, err := m.system.Coarse(n, edges[i])
	if err != nil {
		err = fmt.Errorf("method: the operator on the grid %s: %w", gridName(m.hierarchy.Dim, n), err)
	}
	return op, err
}

// bindFuncs sets the functions of the stages.
func (m *Multigrid) bindFuncs() {
	at := func() (*Level, *Level) { return m.levels[m.stage.Level], m.levels[m.stage.Level+1] }
	m.funcs = stageFuncs{
		restrict:    func(_ int, b kernel.Box) { f, c := at(); f.Restrict(c, b) },
		prolong:     func(_ int, b kernel.Box) { f, c := at(); f.Prolong(c, m.saveTarget(), b) },
		sample:      func(_ int, b kernel.Box) { f, c := at(); f.SampleProblem(c, b) },
		interpolate: func(_ int, b kernel.Box) { f, c := at(); f.Interpolate(c, b) },
		restore:     func(_ int, b kernel.Box) { copyPoints(m.system.Layout, m.levels[0].Values, m.saved, b) },
		measureRows: func(worker, lo, hi, z int) {
			l := m.levels[0]
			l.Sweep.Residual(&m.norms[worker], l.Values, l.rowsOf(lo, hi, z))
		},
		scale: func(_ int, b kernel.Box) {
			n := b.Hi[0] - b.Lo[0]
			eachRow(m.system.Layout, b, func(i, _ int) {
				ScalePoints(m.levels[0].Values[i:i+n], m.saved[i:i+n], m.fraction)
			})
		},
		measure: func(i int, b kernel.Box) {
			l := m.levels[m.stage.Level]
			l.Sweep.Residual(&m.norms[i], l.Values, b)
		},
		defect: func(_ int, b kernel.Box) { m.levels[m.stage.Level].Defect(b) },
		energy: func(i int, b kernel.Box) { m.levels[0].Sweep.Energy(&m.sums[i], m.saved, m.levels[0].Values, b) },
	}
}

// Name returns "multigrid".
func (m *Multigrid) Name() string { return NameMultigrid }

// Describe returns the grids, and notes on those that cannot be coarsened well.
func (m *Multigrid) Describe() string {
	h := &m.hierarchy
	out := "grids " + h.String()
	if h.Coarsest() == 0 {
		return out + "; the grid cannot be coarsened and is only relaxed"
	}
	for l := range h.Coarsest() {
		if !h.Nested(l) {
			name := gridName(h.Dim, h.Grids[l])
			return out + "; " + name + " does not halve: its coarse points lie between fine points"
		}
	}
	return out
}

// Start executes the full multigrid start. The old values of u are lost: if the start is worse than
// 0 projected between the obstacles, the first cycle begins with the latter.
func (m *Multigrid) Start(u []float64) float64 {
	m.levels[0].Values = u
	if len(m.start) == 0 {
		return 0
	}
	m.run(Stage{Kind: ReferenceStart}) // a measurement, which is not counted as work
	m.safeguard.Begin(m.reference, true)
	return m.runAll(m.start)
}

// Cycle executes one cycle and, if the safeguard rejects it, relaxations instead.
func (m *Multigrid) Cycle(u []float64) float64 {
	work, v := m.tryCycle(u)
	if v == Rejected {
		work = m.relaxInstead(work)
	}
	return work
}

// tryCycle executes one cycle and returns the decision of the safeguard.
func (m *Multigrid) tryCycle(u []float64) (work float64, v Decision) {
	m.levels[0].Values = u
	work = m.runAll(m.cycle)
	if len(m.levels) == 1 || m.options.Unguarded {
		return work, Accepted
	}
	v = m.safeguard.Evaluate(m.residual)
	if v == StartRejected {
		m.levels[0].SetReference(m.levels[0].Part.Layout.Interior())
		work += m.runAll(m.cycle)
		v = m.safeguard.Evaluate(m.residual)
	}
	if v == Undecided {
		work += 2
		v = m.safeguard.EvaluateEnergy(m.energy(), m.residual)
	}
	if v == Rejected && m.safeguard.TryHalfStep(m.residual) {
		m.scale(0.5)
		work += 2
		if part := m.safeguard.StepFraction(m.energy()); part > 0 {
			m.scale(part)
			work += m.run(Stage{Kind: Measure})
			v = m.safeguard.Accept(m.residual)
		}
	}
	return work, v
}

// Begin gives the safeguard the residual ‖r‖₂ of the values before the first cycle, if Start is not called.
func (m *Multigrid) Begin(residual float64) { m.safeguard.Begin(residual, false) }

// Changed discards the values that the safeguard compares with.
func (m *Multigrid) Changed() { m.safeguard.Changed() }

// Residual returns ‖r‖₂ after the last cycle.
func (m *Multigrid) Residual() float64 { return m.residual }

func (m *Multigrid) runAll(stages []Stage) float64 {
	work := 0.0
	for _, s := range stages {
		work += m.run(s)
	}
	return work
}

// run executes a stage and returns its work in sweeps over level 0.
func (m *Multigrid) run(s Stage) float64 {
	m.stage = s
	l := m.levels[s.Level]
	box := l.Part.Layout.Interior()
	if s.Prolongs {
		l.DeferProlong(m.levels[s.Level+1], m.saveTarget())
	}
	switch s.Kind {
	case Relax:
		l.Smooth(s.Sweeps, s.Omega, m.parallel.executor(l.Part.Layout), nil)
	case Solve:
		l.Solve(s, m.parallel.executor(l.Part.Layout))
	case Measure:
		if s.Sweeps > 0 {
			l.Smooth(s.Sweeps, s.Omega, m.parallel.executor(l.Part.Layout), m.funcs.measureRows)
		} else {
			m.parallel.run(box, m.funcs.measure)
		}
		m.residual = takeNorm(m.norms)
	case ReferenceStart:
		l.SetReference(box)
		m.parallel.run(box, m.funcs.measure)
		m.reference = takeNorm(m.norms)
	case ChooseStart:
		m.parallel.run(box, m.funcs.measure)
		if r := takeNorm(m.norms); !(r <= m.reference) {
			l.SetReference(box)
		}
	default:
		m.transfer(l, m.levels[s.Level+1], box)
	}
	return s.Work() * float64(box.Points()) / float64(m.system.Layout.Points())
}

// transfer executes a stage between level l and the next coarser level c.
func (m *Multigrid) transfer(l, c *Level, box kernel.Box) {
	switch s := m.stage; s.Kind {
	case Restrict:
		if l.weights != nil {
			m.parallel.run(box, m.funcs.defect)
			l.ScanContact(withGhosts(l.Part.Layout))
		} else {
			l.SmoothRestrict(s.Sweeps, s.Omega, m.parallel.executor(l.Part.Layout))
		}
		m.parallel.run(c.Part.Layout.Interior(), m.funcs.restrict)
		c.UpdateTruncated(m.hierarchy.Dim == 1)
	case Prolong:
		m.parallel.run(box, m.funcs.prolong)
	case Interpolate:
		m.parallel.run(box, m.funcs.interpolate)
		c.ClearGhosts()
	case SampleProblem:
		m.sample(l, c)
	}
}

// sample computes the problem on the next coarser grid for the full multigrid start.
func (m *Multigrid) sample(l, c *Level) {
	s, n := &m.system, c.Part.Layout.N
	c.ClearTruncation()
	// After an error the data are not finite, and the safeguard rejects the start.
	if s.Fields != nil && !m.hierarchy.Nested(m.stage.Level) {
		_ = s.Fields(n, c.Source.Array, c.Lower.Array, c.Upper.Array)
	} else {
		m.parallel.run(c.Part.Layout.Interior(), m.funcs.sample)
	}
	if s.Boundary != nil {
		_ = s.Boundary(n, c.Part.Layout, c.Values)
	} else {
		l.sampleBoundary(c)
	}
}

// saveTarget returns the array for the values before a correction, which are saved on level 0 only.
func (m *Multigrid) saveTarget() []float64 {
	if m.stage.Level > 0 {
		return nil
	}
	return m.saved
}

// takeNorm merges and empties the norms of the pieces and returns ‖r‖₂.
func takeNorm(norms []kernel.Norm) float64 {
	sum := TakeSquares(norms)
	return math.Sqrt(sum.Float64())
}

// TakeSquares merges the sums of squares of norms and empties the norms.
func TakeSquares(norms []kernel.Norm) (sum kernel.Sum) {
	for i := range norms {
		sum.Merge(&norms[i].Squares)
		norms[i].Reset()
	}
	return sum
}

// TakeSums merges and empties sums.
func TakeSums(sums []kernel.Sum) (sum kernel.Sum) {
	for i := range sums {
		sum.Merge(&sums[i])
	}
	clear(sums)
	return sum
}

// energy returns twice the change of the energy since the saved values.
func (m *Multigrid) energy() float64 {
	l := m.levels[0]
	CopyGhosts(l.Part.Layout, m.saved, l.Values)
	m.parallel.run(l.Part.Layout.Interior(), m.funcs.energy)
	sum := TakeSums(m.sums)
	change := sum.Float64()
	if math.IsNaN(change) {
		return math.Inf(1)
	}
	return change
}

// scale reduces the step from the saved values to a fraction of its length.
func (m *Multigrid) scale(part float64) {
	m.fraction = part
	m.parallel.run(m.system.Layout.Interior(), m.funcs.scale)
}

// ScalePoints moves values to the fraction part of the way from from to values, for arrays of any points.
func ScalePoints(values, from []float64, part float64) {
	for i, v := range from {
		values[i] = v + float64(part*(values[i]-v))
	}
}

// eachRow calls f for every row of b with the padded and the dense index of its first point.
func eachRow(l kernel.Layout, b kernel.Box, f func(i, d int)) {
	for z := b.Lo[2]; z < b.Hi[2]; z++ {
		for y := b.Lo[1]; y < b.Hi[1]; y++ {
			f(l.Index(b.Lo[0], y, z), l.Dense(b.Lo[0], y, z))
		}
	}
}

func copyPoints(l kernel.Layout, dst, src []float64, b kernel.Box) { CopyBox(dst, l, b, src, l, b.Lo) }

// CopyBox sets the points of b in dst, an array of layout to, to those of src, an array of layout from, in the box of
// the same shape that begins at first.
func CopyBox(dst []float64, to kernel.Layout, b kernel.Box, src []float64, from kernel.Layout, first [3]int) {
	n := b.Hi[0] - b.Lo[0]
	for z := range b.Hi[2] - b.Lo[2] {
		for y := range b.Hi[1] - b.Lo[1] {
			row := dst[to.Index(b.Lo[0], b.Lo[1]+y, b.Lo[2]+z):][:n]
			copy(row, src[from.Index(first[0], first[1]+y, first[2]+z):][:n])
		}
	}
}

// DenseLayout returns the layout of a dense array [z][y][x] of n points. It has no ghosts.
func DenseLayout(n [3]int) kernel.Layout {
	return kernel.Layout{Dim: 3, N: n, Row: n[0], Plane: n[0] * n[1]}
}

// CopyGhosts copies the ghosts of a padded array.
func CopyGhosts(l kernel.Layout, dst, src []float64) {
	eachGhosts(l, func(i, n int) { copy(dst[i:i+n], src[i:i+n]) })
}

// eachGhosts calls f for every run of n consecutive ghosts at index i: whole rows of ghosts, and the two
// ends of every row of own points.
func eachGhosts(l kernel.Layout, f func(i, n int)) {
	g := withGhosts(l)
	for z := g.Lo[2]; z < g.Hi[2]; z++ {
		for y := g.Lo[1]; y < g.Hi[1]; y++ {
			i, n := l.Index(-1, y, z), l.N[0]+2
			if y < 0 || y >= l.N[1] || z < 0 || z >= l.N[2] {
				f(i, n)
				continue
			}
			f(i, 1)
			f(i+n-1, 1)
		}
	}
}

// relaxInstead restores the values before the coarse correction, relaxes as often as the safeguard requires and
// BudgetSpent allows, and measures the residual. It returns work increased by the work of these stages.
func (m *Multigrid) relaxInstead(work float64) float64 {
	m.parallel.run(m.levels[0].Part.Layout.Interior(), m.funcs.restore)
	sweeps := 0
	for sweeps < m.safeguard.Sweeps() && (m.BudgetSpent == nil || !m.BudgetSpent(m.relaxations+sweeps)) {
		sweeps++
	}
	m.relaxations += sweeps
	if sweeps > 0 {
		work += m.run(Stage{Kind: Relax, Sweeps: sweeps, Omega: 1})
	}
	work += m.run(Stage{Kind: Measure})
	m.safeguard.AcceptRelaxed(m.residual)
	return work
}

// Relaxations returns the number of relaxations executed instead of corrections.
func (m *Multigrid) Relaxations() int { return m.relaxations }

// NominalWork returns the cost of an accepted cycle in sweeps over the block.
func (m *Multigrid) NominalWork() float64 {
	if len(m.levels) == 1 {
		return NominalWork(&m.hierarchy, []Stage{m.hierarchy.solve(0), {Kind: Measure}})
	}
	return NominalWork(&m.hierarchy, m.hierarchy.Cycle(m.options.Cycle))
}

// NominalWork returns the cost of stages in sweeps over grid 0, before any are fused.
func NominalWork(h *Hierarchy, stages []Stage) float64 {
	work := 0.0
	for _, s := range stages {
		work += s.Work() * float64(points(h.Grids[s.Level])) / float64(points(h.Grids[0]))
	}
	return work
}
