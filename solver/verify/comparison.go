package verify

import (
	"math"
	"slices"

	"github.com/p2pdc/p2pdc/internal/kernel"
	"github.com/p2pdc/p2pdc/solver/problem"
)

// profile is an approximate solution of A·w = 1, w = 0 on the boundary, for operators
// whose rows differ, on the grid of the problem or, interpolated from there, a coarser
// one. How good it is does not matter for what it proves: that is checked at every point
// of the grid in question. The first one is made on a grid of at most profileAxis points an
// axis. Where A·w is then not positive, or w much larger than it need be (coefficients jump,
// or flows turn back), one is made on the grid itself.
type comparison struct {
	p      *problem.Problem // on the profile's grid
	layout kernel.Layout
	w      []float64 // padded
}

const (
	// profileLoss by which a bound may be larger than A·w = 1 would give it, before the
	// profile is refined.
	maxLoss = 2
	// unevenRows is how many times as large as the least diagonal entry the largest is where
	// rows differ much.
	unevenRows = 1000
	// sharpFloor is the part of the largest residual that counts at every point for the
	// sharper bound.
	sharpFloor     = 1e-6
	sharpTolerance = 0.3
	maxSharpWork   = 200
)

// profileAxis is the longest axis of the first grid that is tried: enough where
// coefficients are smooth.
func maxInitialAxis(dimension int) int { return []int{0, 1 << 16, 511, 127}[dimension] }

// interpolate fills own points from a coarser profile.
func (f *comparison) interpolate(from *comparison, e problem.Executor) {
	t, l := newCubicTransfer(from, f.p.N), f.layout
	e.For(l.N[2], func(z int) {
		line := make([]float64, t.line())
		for y := range l.N[1] {
			t.rowAt(f.w[l.Index(0, y, z):][:l.N[0]], line, [3]int{1, y + 1, z + 1})
		}
	})
}

// ones is A·w = 1, w = 0 on the boundary, on a grid of n points.
func unitProblem(p *problem.Problem, n [3]int) *problem.Problem {
	q := *p
	q.N, q.Source, q.Boundary = n, problem.Coefficient{Value: 1}, func(problem.Point) float64 { return 0 }
	q.Obstacle, q.Upper, q.Initial, q.Exact, q.Rows = nil, nil, nil, nil, problem.Rows{}
	return &q
}

func emptyComparison(p *problem.Problem) (*comparison, error) {
	l, err := kernel.NewLayout(p.Dimension, p.N)
	return &comparison{p: p, layout: l, w: make([]float64, l.Len())}, err
}

// firstProfile makes a profile for judging solutions; none where other barriers do.
func (j *evaluator) firstComparison(e problem.Executor) error {
	p := j.p
	if problem.NewStencil(p).Constant() || rowsDominate(p) {
		return nil
	}
	for a := range p.Dimension {
		if peclet, _ := p.LargestPeclet(a); peclet > 2 && !p.Upwind {
			return nil // most likely no M-matrix
		}
	}
	n := p.N
	for a := range p.Dimension {
		n[a] = min(n[a], maxInitialAxis(p.Dimension))
	}
	q := unitProblem(p, n)
	q.Upwind = p.Upwind || n != p.N
	m, err := newMinimiser(q, e)
	if err != nil {
		return err
	}
	f := &comparison{p: q, layout: m.grids[0].layout, w: m.solve(nil, nil, comparisonTolerance, maxComparisonWork)}
	j.comparison, j.work = newCubicTransfer(f, p.N), m.work*float64(q.Points())/float64(p.Points())
	if n == p.N {
		f.w, j.minimiser = slices.Clone(f.w), m
	}
	return nil
}

// refine makes better profiles on the judged problem's own grid, where the first one proves
// little or nothing: A·w = 1, which bounds ‖A⁻¹‖∞; and where rows differ much in size, as
// residuals do then, A·w = |r|, which bounds the error more sharply.
func (j *evaluator) refine(total chunkResult, e problem.Executor) (chunkResult, error) {
	poor, uneven := total.poor(j), total.uneven(j)
	if !poor && !uneven {
		return total, nil
	}
	q, m := unitProblem(j.p, j.p.N), j.minimiser
	if m == nil {
		var err error
		if m, err = newMinimiser(q, e); err != nil {
			return total, err
		}
	}
	if poor && j.minimiser == nil {
		f, err := emptyComparison(q)
		if err != nil {
			return total, err
		}
		if j.comparison != nil {
			f.interpolate(j.comparison.from, e)
		}
		f.w = slices.Clone(m.solve(nil, f.w, comparisonTolerance, maxComparisonWork))
		j.work += m.work
		j.comparison = newCubicTransfer(f, j.p.N)
	}
	var err error
	if uneven {
		j.residuals = make([]float64, j.p.Points())
	}
	if total, err = j.evaluateChunks(e); err != nil || !uneven || !(total.unit.least > 0) {
		return total, err
	}
	floor := sharpFloor * problem.LargestMagnitude(j.residuals)
	if !(floor > 0) || !kernel.Finite(floor) {
		return total, nil
	}
	for i, v := range j.residuals {
		j.residuals[i] = max(v, floor)
	}
	sharp := &comparison{p: q, layout: m.grids[0].layout, w: m.solve(j.residuals, nil, sharpTolerance, maxSharpWork)}
	j.work += m.work
	j.sharp, j.residuals = newCubicTransfer(sharp, j.p.N), nil
	return j.evaluateChunks(e)
}

// rowsDominate guesses, from a few points, whether the rows of A add up to so much (a
// reaction, a time step) that w = 1 is nearly as good as any w: after the time 1/c that a
// reaction takes, little has come in from the boundary.
func rowsDominate(p *problem.Problem) bool {
	count := [3]int{1, 1, 1}
	for a := range p.Dimension {
		count[a] = min(problem.StrengthPoints, p.N[a])
	}
	least, fastest := math.Inf(1), 0.0
	problem.Box{Hi: count}.Each(func(_ int, idx [3]int) bool {
		for a := range p.Dimension {
			idx[a] = max(1, (p.N[a]+1)*idx[a]/(count[a]+1))
		}
		x := p.At(idx[0], idx[1], idx[2])
		least = min(least, p.Reaction.At(x))
		for a := range p.Dimension {
			l := p.Hi[a] - p.Lo[a]
			fastest = max(fastest, 8*p.Diffusion.At(x)/(l*l)+math.Abs(p.Velocity[a].At(x))/l)
		}
		return true
	})
	return least > 10*fastest
}

// measured is what is found of a profile w in a slab or the whole grid: the least A·w, the
// largest w, and the largest |r|/(A·w), rounded against the bound.
type comparisonBound struct{ least, top, ratio float64 }

func (m *comparisonBound) merge(o comparisonBound) {
	m.least, m.top = min(m.least, o.least), max(m.top, o.top)
	if !(o.ratio <= m.ratio) {
		m.ratio = o.ratio
	}
}

// bound is that of the error which the profile proves; NaN: none.
func (m *comparisonBound) bound() float64 {
	if !(m.least > 0) {
		return math.NaN()
	}
	return m.top * m.ratio
}

// measure compares the judgement's profiles with the residual of padded values u in a slab.
func (s *chunkResult) measureComparisons(j *evaluator, b *problem.Discretization, stepper *kernel.Sweep, u []float64) {
	s.unit, s.sharp = comparisonBound{least: math.Inf(1)}, comparisonBound{least: math.Inf(1)}
	if j.comparison == nil {
		return
	}
	l := b.Layout
	w, aw, r := make([]float64, l.Len()), make([]float64, l.Len()), make([]float64, l.Len())
	stepper.Defect(r, u, l.Interior())
	top := problem.LargestMagnitude(u)
	b.EachRow(func(row []float64, first [3]int) {
		at, d := b.Index(first), b.Dense(first)
		for i := range row { // |r| from here on
			rounding := 7*kernel.UnitRoundoff*(rowSum(b, d+i)*top+math.Abs(b.Source.At(d+i))) + 16*math.SmallestNonzeroFloat64
			row[i] = math.Abs(row[i]) + min(s.rounding, rounding)
		}
		if j.residuals != nil {
			copy(j.residuals[j.dense(problem.Box{Lo: [3]int{first[0] - 1, first[1] - 1, first[2] - 1}}):], r[at:][:len(row)])
		}
	}, r, false)
	s.unit.measure(j.comparison, b, stepper, w, aw, r)
	if j.sharp != nil {
		s.sharp.measure(j.sharp, b, stepper, w, aw, r)
	}
}

// take measures a profile against residuals r in a slab; w and aw are room.
func (m *comparisonBound) measure(t *cubicTransfer, b *problem.Discretization, stepper *kernel.Sweep, w, aw, r []float64) {
	line := make([]float64, t.line())
	b.EachRow(func(row []float64, first [3]int) { t.rowAt(row, line, first) }, w, true)
	stepper.Apply(aw, w, b.Layout.Interior())
	b.EachRow(func(row []float64, first [3]int) {
		at, d := b.Index(first), b.Dense(first)
		for i := range row {
			// Where no entry beside the diagonal is positive and w ≥ 0, |A|·w = 2·diag(A)·w − A·w.
			center := b.Operator.Arrays[kernel.Center][d+i]
			least := row[i] - 8*kernel.UnitRoundoff*(2*center*w[at+i]+math.Abs(row[i]))
			if !(least >= m.least) {
				m.least = least
			}
			if !(w[at+i] >= 0) {
				m.least = math.Inf(-1)
			}
			m.top = max(m.top, w[at+i])
			if ratio := r[at+i] / least; !(ratio <= m.ratio) {
				m.ratio = ratio
			}
		}
	}, aw, false)
}

// poor reports whether A may be an M-matrix, but what is known of it proves nothing, or
// much less than a profile with A·w = 1 would.
func (s *chunkResult) poor(j *evaluator) bool {
	switch {
	case s.signs != "" || problem.NewStencil(j.p).Constant():
		return false
	case j.comparison == nil:
		return !(s.excess > 0)
	}
	return !(s.unit.least >= 1/float64(maxLoss)) || s.unit.ratio > maxLoss*s.inf
}

// uneven reports whether A is an M-matrix as far as its signs say, with rows that differ
// much in size.
func (s *chunkResult) uneven(j *evaluator) bool {
	return s.signs == "" && j.comparison != nil && j.before == nil && s.diagonal[1] > unevenRows*s.diagonal[0]
}
