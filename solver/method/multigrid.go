package method

import (
	"fmt"
	"math"
	"strings"

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
	failure   error
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

// wCycleRatio and defaultWRatio are values of Smoothing.TwiceRatio. wCycleRatio is for W cycles: on larger coarse
// grids a second visit costs more than it gains. defaultWRatio gives W cycles in three dimensions and V cycles below.
const (
	wCycleRatio   = 0.4
	defaultWRatio = 0.2
)

// DefaultSmoothing returns the smoothing measured to be fastest on the reference problems: one
// sweep before and one after the coarse correction, with a factor optimal for smoothing (Yavneh,
// SIAM J. Sci. Comput. 17, 1996: 1.15 for red-black relaxation in three dimensions).
func DefaultSmoothing(o Options) Smoothing {
	s := Smoothing{Before: 1, After: 1, Omega: 1.15, TwiceRatio: defaultWRatio}
	switch o.Cycle {
	case "v":
		s.TwiceRatio = 0
	case "w":
		s.TwiceRatio = wCycleRatio
	}
	return s
}

// NewMultigrid returns the solver of a system on one block whose ghosts are boundary data.
func NewMultigrid(s System, o Options) (*Multigrid, error) {
	m := &Multigrid{options: o, parallel: newParallelFor(o.Executor, s.Layout.Dim)}
	m.saved = make([]float64, s.Layout.Len())
	m.norms = make([]kernel.Norm, max(maxPieces, kernel.Workers(m.parallel.exec)))
	m.sums = make([]kernel.Sum, maxPieces)
	m.bindFuncs()
	return m, m.init(s, s.hierarchy())
}

// hierarchy returns the grids for a system.
func (s *System) hierarchy() Hierarchy {
	strength := s.Strength
	if strength == [3]float64{} {
		strength = Strength(s.Layout, s.Operator)
	}
	return NewHierarchy(s.Layout.Dim, s.Layout.N, strength, 0)
}

// init makes the levels and the stages of a cycle.
func (m *Multigrid) init(s System, h Hierarchy) error {
	m.system, m.hierarchy = s, h
	m.levels = nil
	if err := m.build(m.options); err != nil {
		return err
	}
	smoothing := DefaultSmoothing(m.options)
	alone := func(s Stage) bool { return m.levels[s.Level].CanFuse(s) }
	m.cycle = Fuse(h.Cycle(smoothing, 0), alone)
	m.start = Fuse(h.Start(smoothing, s.Operator.Form == kernel.Variable), alone)
	if len(m.levels) == 1 { // a handful of points
		m.cycle, m.start = []Stage{h.solve(0), {Kind: Measure}}, nil
	}
	m.safeguard = Safeguard{Symmetric: s.Symmetric}
	m.safeguard.Reset()
	return nil
}

func (m *Multigrid) build(o Options) error {
	s, h := &m.system, &m.hierarchy
	edges := m.edges()
	for i, n := range h.Grids {
		c := LevelConfig{
			Kernel: o.Kernel, Operator: s.Operator, Source: s.Source, Lower: s.Lower, Upper: s.Upper, Truncate: true,
		}
		layout, err := kernel.NewLayout(h.Dim, n)
		if err != nil {
			return err
		}
		c.Part = kernel.Whole(layout)
		if i == 0 {
			c.Part, c.Parity = kernel.Whole(s.Layout), s.Parity
		} else if c.Operator, err = m.levelOperator(i, layout, edges); err != nil {
			return err
		}
		l, err := NewLevel(c, i > 0)
		if err != nil {
			return err
		}
		if m.levels = append(m.levels, l); i > 0 {
			if err = m.levels[i-1].Connect(l, o.Kernel); err != nil {
				return err
			}
			m.levels[i-1].SetEdges(l, edges[i-1], edges[i])
		}
	}
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

// levelOperator returns the operator of level i > 0, whose layout is given, from the level above.
func (m *Multigrid) levelOperator(i int, layout kernel.Layout, edges []*Edges) (op kernel.Operator, err error) {
	fine, n := m.levels[i-1], m.hierarchy.Grids[i]
	if m.system.Coarse != nil {
		op, err = m.system.Coarse(n, edges[i])
	} else {
		op, err = AverageOperator(fine.Part.Layout, layout, fine.operator)
	}
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
	var note []string
	if m.hierarchy.Coarsest() == 0 {
		note = append(note, "the grid cannot be coarsened and is only relaxed")
	}
	for l := range m.hierarchy.Coarsest() {
		if !m.hierarchy.Nested(l) {
			name := gridName(m.hierarchy.Dim, m.hierarchy.Grids[l])
			note = append(note, name+" does not halve: its coarse points lie between fine points")
			break
		}
	}
	return strings.Join(append([]string{"grids " + m.hierarchy.String()}, note...), "; ")
}

// Bytes returns the memory of the arrays that the solver made.
func (m *Multigrid) Bytes() int {
	total := 8 * len(m.saved)
	for _, l := range m.levels[1:] {
		total += 8 * (len(l.Values) + 3*l.Part.Layout.Points())
		for _, a := range l.operator.Arrays {
			total += 8 * len(a)
		}
	}
	return total
}

// Start executes the full multigrid start. The old values of u are lost: if the start is worse than
// 0 projected between the obstacles, the first cycle begins with the latter.
func (m *Multigrid) Start(u []float64) float64 {
	m.levels[0].Values = u
	if len(m.start) == 0 {
		m.safeguard.Reset()
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
	if v == Rejected && m.safeguard.Symmetric && m.safeguard.TryHalfStep(m.residual) {
		m.scale(0.5)
		work += 2
		if part := m.safeguard.StepFraction(m.energy()); part > 0 {
			m.scale(part)
			work += m.run(Stage{Kind: Measure})
			m.safeguard.AcceptDamped(m.residual)
			v = Accepted
		}
	}
	return work, v
}

// Changed discards the values that the safeguard compares with.
func (m *Multigrid) Changed() { m.safeguard.Changed() }

// Residual returns ‖r‖₂ after the last cycle.
func (m *Multigrid) Residual() float64 { return m.residual }

// Rejections returns the number of cycles that the safeguard rejected.
func (m *Multigrid) Rejections() int { return m.safeguard.Rejections() }

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
	case Relax, Solve:
		l.Smooth(s.Sweeps, s.Omega, m.executor(l), nil)
	case Measure:
		if s.Sweeps > 0 {
			l.Smooth(s.Sweeps, s.Omega, m.executor(l), m.funcs.measureRows)
		} else {
			m.parallel.run(box, m.funcs.measure)
		}
		m.residual = mergeNorms(m.norms)
	case ReferenceStart:
		l.SetReference(box)
		m.parallel.run(box, m.funcs.measure)
		m.reference = mergeNorms(m.norms)
	case ChooseStart:
		m.parallel.run(box, m.funcs.measure)
		if r := mergeNorms(m.norms); !(r <= m.reference) {
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
			l.SmoothRestrict(s.Sweeps, s.Omega, m.executor(l))
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
	if s.Fields != nil && !m.hierarchy.Nested(m.stage.Level) {
		if m.failure = s.Fields(n, c.Source.Array, c.Lower.Array, c.Upper.Array); m.failure != nil {
			return
		}
	} else {
		m.parallel.run(c.Part.Layout.Interior(), m.funcs.sample)
	}
	if s.Boundary != nil {
		m.failure = s.Boundary(n, c.Part.Layout, c.Values)
		return
	}
	l.SampleBoundary(c)
}

func (m *Multigrid) executor(l *Level) kernel.Executor {
	if tooSmallToShare(l.Part.Layout) {
		return kernel.Sequential{}
	}
	return m.parallel.exec
}

// saveTarget returns the array for the values before a correction, which are saved on level 0 only.
func (m *Multigrid) saveTarget() []float64 {
	if m.stage.Level > 0 {
		return nil
	}
	return m.saved
}

// mergeNorms merges and resets the norms of the pieces and returns ‖r‖₂.
func mergeNorms(norms []kernel.Norm) float64 {
	sum := &norms[0]
	for i := 1; i < len(norms); i++ {
		sum.Merge(&norms[i])
		norms[i].Reset()
	}
	r := sum.L2()
	sum.Reset()
	return r
}

// energy returns twice the change of the energy since the saved values.
func (m *Multigrid) energy() float64 {
	l := m.levels[0]
	CopyGhosts(l.Part.Layout, m.saved, l.Values)
	for i := range m.sums {
		m.sums[i] = kernel.Sum{}
	}
	m.parallel.run(l.Part.Layout.Interior(), m.funcs.energy)
	for i := 1; i < len(m.sums); i++ {
		m.sums[0].Merge(&m.sums[i])
	}
	change := m.sums[0].Float64()
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

func copyPoints(l kernel.Layout, dst, src []float64, b kernel.Box) {
	n := b.Hi[0] - b.Lo[0]
	eachRow(l, b, func(i, _ int) { copy(dst[i:i+n], src[i:i+n]) })
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
