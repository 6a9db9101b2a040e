package verify

import (
	"math"
	"slices"

	"github.com/p2pdc/p2pdc/internal/kernel"
	"github.com/p2pdc/p2pdc/solver/problem"
)

// comparison is an approximate solution of A·w = 1, w = 0 on the boundary, for operators with varying rows. It
// is given on the problem's grid or interpolated from a coarser one. Its accuracy does not affect the validity
// of the proof, because A·w is checked at every point of the problem's grid. The first one is computed on a
// grid of at most maxInitialAxis points per axis. If A·w is then not positive, or w is much larger than
// necessary (jumps of coefficients, recirculating flows), one is computed on the problem's grid.
type comparison struct {
	p      *problem.Problem // problem on the comparison function's grid
	layout kernel.Layout
	w      []float64 // padded
}

const (
	// maxLoss is the factor by which the bound may exceed that of A·w = 1 before the comparison function is
	// refined.
	maxLoss = 2
	// unevenRows is the ratio of the largest to the least diagonal entry above which rows count as uneven.
	unevenRows = 1000
	// keptPoints is the number of points up to which a first evaluation keeps the operator, in case it is needed.
	keptPoints = 1 << 20
	// sharpFloor is the least A·w of the sharper bound, relative to the largest residual.
	sharpFloor = 1e-6
	// sharpShare is the share of the sharper bound, about, that A·w = 1 may have.
	sharpShare = 0.25
	// sharpGain is the expected gain by the sharper bound from which it is computed.
	sharpGain    = 4
	maxSharpWork = 150
	// sharpFall is the factor by which four steps of the sharper search must reduce the norm, or it ends.
	sharpFall = 0.9
)

// maxInitialAxis returns the longest axis of the first grid. It suffices for smooth coefficients.
func maxInitialAxis(dimension int) int { return []int{0, 1 << 16, 63, 31}[dimension] }

// interpolate fills own points from a coarser comparison function.
func (f *comparison) interpolate(from *comparison, e problem.Executor) {
	t, l := newCubicTransfer(from, f.p.N), f.layout
	e.For(l.N[2], func(z int) {
		line := make([]float64, t.line())
		for y := range l.N[1] {
			t.rowAt(f.w[l.Index(0, y, z):][:l.N[0]], line, [3]int{1, y + 1, z + 1})
		}
	})
}

// unitProblem returns the problem A·w = 1, w = 0 on the boundary, on a grid of n points.
func unitProblem(p *problem.Problem, n [3]int) *problem.Problem {
	q := *p
	q.N = n
	q.Source = problem.Coefficient{Value: 1}
	q.Boundary = func(problem.Point) float64 { return 0 }
	q.Obstacle, q.Upper, q.Initial, q.Exact, q.Rows = nil, nil, nil, nil, problem.Rows{}
	return &q
}

// firstComparison computes the first comparison function, unless other barriers suffice.
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
	if j.before == nil && jumps(p) {
		j.keep()
		return nil // interpolation across jumps proves nothing
	}
	n := p.N
	for a := range p.Dimension {
		n[a] = min(n[a], maxInitialAxis(p.Dimension))
	}
	q := unitProblem(p, n)
	q.Upwind = p.Upwind || n != p.N
	m, err := newMinimiser(q, nil, e)
	if err != nil {
		return err
	}
	f := &comparison{p: q, layout: m.layout, w: m.solve(nil, nil, m.near(firstTolerance), maxComparisonWork)}
	j.comparison, j.work = newCubicTransfer(f, p.N), m.work*float64(q.Points())/float64(p.Points())
	if n == p.N {
		f.w, j.minimiser = slices.Clone(f.w), m
	}
	if p.Points() <= keptPoints {
		j.keep()
	}
	return nil
}

// keep has the next evaluation of the chunks keep |r| and the operator.
func (j *evaluator) keep() {
	n := j.p.Points()
	j.residuals, j.operator = make([]float64, n), &kernel.Operator{Form: kernel.Variable}
	for d := range 1 + 2*j.p.Dimension {
		j.operator.Arrays[d] = make([]float64, n)
	}
}

// refine computes better comparison functions on the problem's own grid where the first one proves little or
// nothing: A·w = 1, which bounds ‖A⁻¹‖∞, and, where rows and therefore residuals differ much in size, A·w =
// |r|, which may bound the error more sharply.
func (j *evaluator) refine(total chunkResult, e problem.Executor) (chunkResult, error) {
	poor, uneven := total.poor(j), total.uneven(j)
	if !poor && !uneven {
		return total, nil
	}
	var err error
	if j.residuals == nil {
		j.keep()
		if total, err = j.evaluateChunks(e); err != nil {
			return total, err
		}
	}
	q, m := unitProblem(j.p, j.p.N), j.minimiser
	if m == nil {
		if m, err = newMinimiser(q, j.operator, e); err != nil {
			return total, err
		}
	}
	unit := &comparison{p: q, layout: m.layout, w: make([]float64, m.layout.Len())}
	if j.comparison != nil {
		unit.interpolate(j.comparison.from, e)
	}
	if poor && j.minimiser == nil {
		unit.w = slices.Clone(m.solve(nil, unit.w, m.near(comparisonTolerance), maxComparisonWork))
		j.work += m.work
		j.comparison = newCubicTransfer(unit, j.p.N)
		total.unit = m.measure(unit.w, j.residuals)
	}
	if uneven && total.unit.least > 0 {
		j.sharpen(&total, m, unit)
	}
	j.residuals, j.operator = nil, nil
	return total, nil
}

// sharpen searches for a solution of A·w = |r|, unless it promises little.
func (j *evaluator) sharpen(total *chunkResult, m *minimiser, unit *comparison) {
	// If A is symmetric, the mean of A⁻¹·|r| is that of |r|·A⁻¹·1.
	sum, product := 0.0, 0.0
	m.eachRow(func(at, d, n int) {
		for i, w := range unit.w[at:][:n] {
			sum += w
			product += float64(w * j.residuals[d+i])
		}
	})
	mean := product / sum
	if bound := total.unit.bound(); !(mean > 0) || !kernel.Finite(bound) || bound < sharpGain*total.unit.top*mean {
		return
	}
	// A·x = |r| − s. Then A·(x + a·unit) ≥ |r| with the a that makes a·A·unit ≥ s everywhere. It serves whatever s is, so
	// the search may end where steps gain little.
	lift, floor := 0.0, sharpFloor*kernel.MaxAbs(j.residuals)
	inf := math.Inf(1)
	norms := [4]float64{inf, inf, inf, inf} // of s, before the last steps
	w := m.solve(j.residuals, nil, func() bool {
		_, largest := m.remainder()
		lift = max(1.01*largest, floor) / total.unit.least
		norm := math.Sqrt(m.dot(m.r, m.r))
		slow := norm > sharpFall*norms[0]
		norms = [4]float64{norms[1], norms[2], norms[3], norm}
		return slow || lift*total.unit.top <= sharpShare*kernel.MaxAbs(m.x)
	}, maxSharpWork)
	m.add(w, unit.w, lift)
	j.work += m.work
	j.sharp = newCubicTransfer(&comparison{p: unit.p, layout: m.layout, w: w}, j.p.N)
	total.sharp = m.measure(w, j.residuals)
}

// jumps reports whether a few points show that the diffusion varies so much that rows are uneven.
func jumps(p *problem.Problem) bool {
	least, largest := math.Inf(1), 0.0
	for idx := range p.Samples {
		kappa := p.Diffusion.At(p.At(idx[0], idx[1], idx[2]))
		least, largest = min(least, kappa), max(largest, kappa)
	}
	return largest > unevenRows*least
}

// rowsDominate estimates from a few points whether the rows of A have such large sums (a reaction, a time step)
// that w = 1 is nearly optimal: the boundary has little influence within the time 1/c of the reaction.
func rowsDominate(p *problem.Problem) bool {
	least, fastest := math.Inf(1), 0.0
	for idx := range p.Samples {
		x := p.At(idx[0], idx[1], idx[2])
		least = min(least, p.Reaction.At(x))
		kappa := p.Diffusion.At(x)
		for a := range p.Dimension {
			l := p.Hi[a] - p.Lo[a]
			fastest = max(fastest, 8*kappa/(l*l)+math.Abs(p.Velocity[a].At(x))/l)
		}
	}
	return least > 10*fastest
}

// comparisonBound holds what a comparison function w proves in a chunk or on the whole grid: the least A·w, the
// largest w and the largest |r|/(A·w), each rounded against the bound.
type comparisonBound struct{ least, top, ratio float64 }

func (m *comparisonBound) merge(o comparisonBound) {
	m.least, m.top = min(m.least, o.least), max(m.top, o.top)
	if !(o.ratio <= m.ratio) {
		m.ratio = o.ratio
	}
}

// bound returns the error bound that w proves, or NaN.
func (m *comparisonBound) bound() float64 {
	if !(m.least > 0) {
		return math.NaN()
	}
	return m.top * m.ratio
}

// measureComparisons compares the comparison functions with the residual of a chunk's values.
func (s *chunkResult) measureComparisons(j *evaluator, c *chunk) {
	s.unit, s.sharp = comparisonBound{least: math.Inf(1)}, comparisonBound{least: math.Inf(1)}
	if j.comparison == nil && j.residuals == nil {
		return
	}
	b := &c.Discretization
	r := make([]float64, b.Layout.Len())
	c.sweep.Defect(r, c.v, b.Layout.Interior())
	top := kernel.MaxAbs(c.v)
	b.EachRow(func(row []float64, first [3]int) {
		at, d := b.Index(first), b.Dense(first)
		for i := range row { // |r| from here on
			terms := rowSum(b, d+i)*top + math.Abs(b.Source.At(d+i))
			rounding := 7*kernel.UnitRoundoff*terms + 16*math.SmallestNonzeroFloat64
			row[i] = math.Abs(row[i]) + min(s.rounding, rounding)
		}
		if j.residuals != nil {
			to := j.p.Dense(first)
			copy(j.residuals[to:], r[at:][:len(row)])
			for n := range 1 + 2*j.p.Dimension {
				copy(j.operator.Arrays[n][to:][:len(row)], b.Operator.Arrays[n][d:])
			}
		}
	}, r, false)
	if j.comparison != nil {
		s.unit.measure(j.comparison, c, r)
	}
}

// measure compares a comparison function with the residuals r in a chunk. It overwrites the chunk's image.
func (m *comparisonBound) measure(t *cubicTransfer, c *chunk, r []float64) {
	b, aw := &c.Discretization, c.image
	w, line := make([]float64, len(r)), make([]float64, t.line())
	b.EachRow(func(row []float64, first [3]int) { t.rowAt(row, line, first) }, w, true)
	c.sweep.Apply(aw, w, b.Layout.Interior())
	b.EachRow(func(row []float64, first [3]int) {
		at, d := b.Index(first), b.Dense(first)
		m.addRow(row, w[at:], r[at:], b.Operator.Arrays[kernel.Center][d:])
	}, aw, false)
}

// addRow adds the points of a row: A·w, w, the magnitudes of residuals and the diagonal entries of A.
func (m *comparisonBound) addRow(aw, w, r, diagonal []float64) {
	for i, v := range aw {
		// Where no entry beside the diagonal is positive and w ≥ 0, |A|·w = 2·diag(A)·w − A·w.
		least := v - 8*kernel.UnitRoundoff*(2*diagonal[i]*w[i]+math.Abs(v))
		if !(least >= m.least) {
			m.least = least
		}
		if !(w[i] >= 0) {
			m.least = math.Inf(-1)
		}
		m.top = max(m.top, w[i])
		if ratio := r[i] / least; !(ratio <= m.ratio) {
			m.ratio = ratio
		}
	}
}

// poor reports whether A may be an M-matrix and the present comparison function proves nothing, or much less
// than A·w = 1 would.
func (s *chunkResult) poor(j *evaluator) bool {
	switch {
	case s.signs != "" || problem.NewStencil(j.p).Constant():
		return false
	case j.comparison == nil:
		return j.residuals != nil || !(s.excess > 0)
	}
	return !(s.unit.least >= 1/float64(maxLoss)) || s.unit.ratio > maxLoss*s.inf
}

// uneven reports whether A has the signs of an M-matrix and rows that differ much in size.
func (s *chunkResult) uneven(j *evaluator) bool {
	return s.signs == "" && (j.comparison != nil || j.residuals != nil) && j.before == nil &&
		s.diagonal[1] > unevenRows*s.diagonal[0]
}
