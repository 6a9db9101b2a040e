package method

import (
	"fmt"
	"math"
	"strings"

	"github.com/p2pdc/p2pdc/internal/kernel"
)

// Multigrid is projected multigrid: red-black projected Gauss–Seidel relaxation on every
// grid, and the problem of the correction, obstacles and all, on the next coarser one (the
// full approximation scheme of Brandt and Cryer, SIAM J. Sci. Stat. Comput. 4, 1983, which
// for a linear A can be written in corrections). What keeps it from their oscillation:
// the residual of points in contact that presses on the obstacle is not restricted, a
// coarse point on a fine one in contact is held, and no correction is added at points in
// contact; and a Safeguard.
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
	fraction  float64 // of a step, for scale
	reference float64 // of a level's reference, for Choose
	failure   error
	stage     Stage
	funcs     stageFuncs

	// Spent tells whether after so many relaxations by the safeguard, since the solver was
	// made, there are to be no more; nil: there may be any number.
	BudgetSpent func(relaxations int) bool
	relaxations int
	pending     int // of a cycle in progress, see Step
}

// bound are the parts of stages, bound once.
type stageFuncs struct {
	restrict, prolong, data, interpolate, restore, measure, energy, defect, measureLevel, scale func(piece int, b kernel.Box)

	measureRows func(worker, lo, hi, z int) // measures them
}

// Parts of the points of the finer grid, at most, that a grid has to which a cycle goes
// twice: of W cycles, which on larger ones would cost more than they gain; and where
// nobody asked for one or the other, W in three dimensions, V below.
const (
	wCycleRatio   = 0.4
	defaultWRatio = 0.2
)

// DefaultSmoothing is what was measured to be fastest on the reference problems: a sweep
// on the way down and one on the way up, with a factor that is best for smoothing (Yavneh,
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

// NewMultigrid makes the solver of a system on one block, whose ghosts are the boundary
// data.
func NewMultigrid(s System, o Options) (*Multigrid, error) {
	m := &Multigrid{options: o, parallel: newParallelFor(o.Executor, s.Layout.Dim)}
	m.saved = make([]float64, s.Layout.Len())
	m.norms, m.sums = make([]kernel.Norm, max(maxPieces, kernel.Workers(m.parallel.exec))), make([]kernel.Sum, maxPieces)
	m.bindFuncs()
	return m, m.init(s, s.hierarchy())
}

// hierarchy is the grids for a system.
func (s *System) hierarchy() Hierarchy {
	strength := s.Strength
	if strength == [3]float64{} {
		strength = Strength(s.Layout, s.Operator)
	}
	return NewHierarchy(s.Layout.Dim, s.Layout.N, strength, 0)
}

// init makes the grids and what is done on them.
func (m *Multigrid) init(s System, h Hierarchy) error {
	m.system, m.hierarchy, m.levels = s, h, nil
	if err := m.build(m.options); err != nil {
		return err
	}
	smoothing := DefaultSmoothing(m.options)
	alone := func(s Stage) bool { return m.levels[s.Level].CanFuse(s) }
	m.cycle, m.start = Fuse(h.Cycle(smoothing, 0), alone), Fuse(h.Start(smoothing, s.Operator.Form == kernel.Variable), alone)
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
		c := LevelConfig{Kernel: o.Kernel, Operator: s.Operator, Source: s.Source, Lower: s.Lower, Upper: s.Upper, Truncate: true}
		layout, err := kernel.NewLayout(h.Dim, n)
		if err != nil {
			return err
		}
		c.Part = kernel.Whole(layout)
		if i == 0 {
			c.Part = kernel.Whole(s.Layout)
		} else if c.Operator, err = m.levelOperator(i, layout, edges); err != nil {
			return err
		}
		c.Parity = 0
		if i == 0 {
			c.Parity = s.Parity
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

// edges are the diffusion on all levels; nil each where it is constant or not known.
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

// operatorOf is the operator of level i, of that layout, below level 0; those before it have theirs.
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

func (m *Multigrid) bindFuncs() {
	at := func() (*Level, *Level) { return m.levels[m.stage.Level], m.levels[m.stage.Level+1] }
	m.funcs = stageFuncs{
		restrict:    func(_ int, b kernel.Box) { f, c := at(); f.Restrict(c, b) },
		prolong:     func(_ int, b kernel.Box) { f, c := at(); f.Prolong(c, m.saveTarget(), b) },
		data:        func(_ int, b kernel.Box) { f, c := at(); f.SampleProblem(c, b) },
		interpolate: func(_ int, b kernel.Box) { f, c := at(); f.Interpolate(c, b) },
		restore:     func(_ int, b kernel.Box) { copyPoints(m.system.Layout, m.levels[0].Values, m.saved, b) },
		measure:     func(i int, b kernel.Box) { m.levels[0].Sweep.Residual(&m.norms[i], m.levels[0].Values, b) },
		measureRows: func(worker, lo, hi, z int) {
			l := m.levels[0]
			l.Sweep.Residual(&m.norms[worker], l.Values, kernel.Box{Lo: [3]int{0, lo, z}, Hi: [3]int{l.Part.Layout.N[0], hi, z + 1}})
		},
		scale: func(_ int, b kernel.Box) {
			layout := m.system.Layout
			for z := b.Lo[2]; z < b.Hi[2]; z++ {
				for y := b.Lo[1]; y < b.Hi[1]; y++ {
					i, n := layout.Index(b.Lo[0], y, z), b.Hi[0]-b.Lo[0]
					ScalePoints(m.levels[0].Values[i:i+n], m.saved[i:i+n], m.fraction)
				}
			}
		},
		measureLevel: func(i int, b kernel.Box) {
			l := m.levels[m.stage.Level]
			l.Sweep.Residual(&m.norms[i], l.Values, b)
		},
		defect: func(_ int, b kernel.Box) { m.levels[m.stage.Level].Defect(b) },
		energy: func(i int, b kernel.Box) { m.levels[0].Sweep.Energy(&m.sums[i], m.saved, m.levels[0].Values, b) },
	}
}

// Name is "multigrid".
func (m *Multigrid) Name() string { return NameMultigrid }

// Describe says what the method works with, for reports.
func (m *Multigrid) Describe() string {
	var note []string
	if m.hierarchy.Coarsest() == 0 {
		note = append(note, "a grid that cannot be coarsened, relaxed only")
	}
	for l := range m.hierarchy.Coarsest() {
		if !m.hierarchy.Nested(l) {
			note = append(note, gridName(m.hierarchy.Dim, m.hierarchy.Grids[l])+" does not halve: its coarse points lie between fine ones")
			break
		}
	}
	return strings.Join(append([]string{"grids " + m.hierarchy.String()}, note...), "; ")
}

// Bytes is the memory of the arrays that the solver has made.
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

// Start is the full multigrid start. What u was is lost: where the start turns out to be worse
// than 0 between the obstacles, the first cycle begins with that.
func (m *Multigrid) Start(u []float64) float64 {
	m.levels[0].Values = u
	if len(m.start) == 0 {
		m.safeguard.Reset()
		return 0
	}
	m.run(Stage{Kind: ReferenceStart}) // no work: a measurement, as callers make between cycles
	m.safeguard.Begin(m.reference, true)
	return m.runAll(m.start)
}

// Cycle does one cycle and, where the safeguard does not accept it, relaxation instead.
func (m *Multigrid) Cycle(u []float64) float64 {
	work, v := m.tryCycle(u)
	if v == Rejected {
		m.restoreSaved()
		work += m.relaxPending(m.pending)
		m.pending = 0
		work += m.measureRelaxed()
	}
	return work
}

// try does one cycle, and returns what the safeguard decides.
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

// Changed forgets what the safeguard compares with.
func (m *Multigrid) Changed() {
	m.pending = 0
	m.safeguard.Changed()
}

// Residual is ‖r‖₂ after the last cycle.
func (m *Multigrid) Residual() float64 { return m.residual }

// Rejections is the number of cycles that the safeguard has not accepted.
func (m *Multigrid) Rejections() int { return m.safeguard.Rejections() }

func (m *Multigrid) runAll(stages []Stage) float64 {
	work := 0.0
	for _, s := range stages {
		work += m.run(s)
	}
	return work
}

// run does a stage and tells its work, in sweeps over level 0.
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
		m.parallel.run(box, m.funcs.measureLevel)
		m.reference = mergeNorms(m.norms)
	case ChooseStart:
		m.parallel.run(box, m.funcs.measureLevel)
		if r := mergeNorms(m.norms); !(r <= m.reference) {
			l.SetReference(box)
		}
	default:
		m.transfer(l, m.levels[s.Level+1], box)
	}
	return s.Work() * float64(box.Points()) / float64(m.system.Layout.Points())
}

// transfer does a stage between two levels.
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

// sample makes the problem on the next coarser grid for the full multigrid start.
func (m *Multigrid) sample(l, c *Level) {
	s, n := &m.system, c.Part.Layout.N
	c.ClearTruncation()
	if s.Fields != nil && !m.hierarchy.Nested(m.stage.Level) {
		if m.failure = s.Fields(n, c.Source.Array, c.Lower.Array, c.Upper.Array); m.failure != nil {
			return
		}
	} else {
		m.parallel.run(c.Part.Layout.Interior(), m.funcs.data)
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

// kept is where a correction keeps what it corrects: on level 0 alone.
func (m *Multigrid) saveTarget() []float64 {
	if m.stage.Level > 0 {
		return nil
	}
	return m.saved
}

// gather merges and empties what the pieces measured: ‖r‖₂.
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

// energy is the change of the energy since the values that were kept, times 2.
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

// scale takes a part of the way from the values that were kept.
func (m *Multigrid) scale(part float64) {
	m.fraction = part
	m.parallel.run(m.system.Layout.Interior(), m.funcs.scale)
}

// ScalePoints moves values to a part of the way from where they were; arrays of any points.
func ScalePoints(values, from []float64, part float64) {
	for i, v := range from {
		values[i] = v + float64(part*(values[i]-v))
	}
}

func copyPoints(l kernel.Layout, dst, src []float64, b kernel.Box) {
	for z := b.Lo[2]; z < b.Hi[2]; z++ {
		for y := b.Lo[1]; y < b.Hi[1]; y++ {
			i := l.Index(b.Lo[0], y, z)
			n := b.Hi[0] - b.Lo[0]
			copy(dst[i:i+n], src[i:i+n])
		}
	}
}

// CopyGhosts copies the ghosts of a padded array: their rows and the ends of all others.
func CopyGhosts(l kernel.Layout, dst, src []float64) {
	g := withGhosts(l)
	for z := g.Lo[2]; z < g.Hi[2]; z++ {
		for y := g.Lo[1]; y < g.Hi[1]; y++ {
			i := l.Index(-1, y, z)
			n := l.N[0] + 2
			if y < 0 || y >= l.N[1] || z < 0 || z >= l.N[2] {
				copy(dst[i:i+n], src[i:i+n])
				continue
			}
			dst[i], dst[i+n-1] = src[i], src[i+n-1]
		}
	}
}
