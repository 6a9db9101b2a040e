package verify

import (
	"cmp"
	"fmt"
	"math"

	"github.com/p2pdc/p2pdc/internal/kernel"
	"github.com/p2pdc/p2pdc/solver/iterate"
	"github.com/p2pdc/p2pdc/solver/problem"
)

// Evaluation is the evaluation of a vector. It depends on the problem and the vector alone, not on values that
// peers computed.
type Evaluation struct {
	RelativeResidual float64 // ‖r(u)‖₂/‖r(u⁰)‖₂ with the VI residual r and u⁰ = max(φ, 0)
	ResidualInf      float64 // ‖r(u)‖∞
	// bound of ‖u − u*‖∞ for the discrete solution u*, rounding included; NaN: no bound known
	ErrorBound float64
	// largest error against Exact at the grid points; NaN: no exact solution
	MaxError      float64
	ContactPoints int     // points with u = φ
	UpperPoints   int     // points with u = ψ
	Sum           float64 // Σu/((nx+1)(ny+1)(nz+1)) over the used axes
	// A·u − f summed over the points on φ and on ψ, times the volume of a cell
	Force [2]float64

	Certificate Certificate // what ErrorBound is based on
}

// evaluationPoints is about the number of points per slab of an Enclosure.
const evaluationPoints = 1 << 20

// Evaluate evaluates an assembled vector u of interior values [z][y][x]: the VI residual and what follows from
// it. It evaluates the problem's functions at every point, chunk by chunk, on the executor (nil: Sequential). u
// is only read. All sums are exact, so the result depends neither on chunks nor on threads.
func Evaluate(p *problem.Problem, u []float64, e problem.Executor) (Evaluation, error) {
	return evaluateWhole(p, u, false, e)
}

// Measure is Evaluate without the search for an error bound, which may take longer than an interrupted run.
// ErrorBound is known only if constant coefficients or row sums prove it.
func Measure(p *problem.Problem, u []float64, e problem.Executor) (Evaluation, error) {
	return evaluateWhole(p, u, true, e)
}

func evaluateWhole(p *problem.Problem, u []float64, quick bool, e problem.Executor) (Evaluation, error) {
	if p.FixedPoint != nil {
		return evaluateFixedPoint(p, u)
	}
	p, in, err := p.InRange()
	if err != nil {
		return Evaluation{}, err
	}
	if p.Evolution != nil {
		return Evaluation{}, p.Errorf("it is nonstationary; use EvaluateStep")
	}
	out, _, err := evaluate(p, evaluator{units: in, u: in.Scaled(u), quick: quick}, nil, e)
	return out, err
}

// EvaluateStep evaluates u as the end of time step m, 1 ≤ m ≤ Steps, which began with before, by the stationary
// problem of the step. MaxError compares with the exact solution at that time and therefore includes the errors
// of all steps. ErrorBound bounds what this step adds to the distance from the solution of the scheme. If
// the reaction is not negative, errors of earlier steps do not grow, so the sum of the bounds bounds the error at the
// end.
func EvaluateStep(p *problem.Problem, m int, before, u []float64, e problem.Executor) (Evaluation, error) {
	out, _, err := evaluateStep(p, m, before, u, nil, e)
	return out, err
}

// evaluateStep is EvaluateStep. It tries t, the comparison function of another step, first, and returns the one that it
// used.
func evaluateStep(p *problem.Problem, m int, before, u []float64, t *cubicTransfer, e problem.Executor) (
	Evaluation, *cubicTransfer, error) {
	p, in, err := p.InRange()
	if err != nil {
		return Evaluation{}, nil, err
	}
	if p.Evolution == nil || m < 1 || m > p.Evolution.Steps || len(before) != p.Points() {
		return Evaluation{}, nil, p.Errorf("invalid time step %d with %d starting values", m, len(before))
	}
	j := evaluator{units: in, before: in.Scaled(before), dt: p.Evolution.Step(), u: in.Scaled(u)}
	return evaluate(p.AtStep(m), j, t, e)
}

// unscale multiplies all values in units of u or of residuals by 2^k.
func (e *Evaluation) unscale(k problem.Scale) {
	if k == 0 {
		return
	}
	for _, v := range []*float64{&e.ResidualInf, &e.MaxError, &e.Sum, &e.Force[0], &e.Force[1]} {
		*v = k.Times(*v)
	}
	// Data too small for a float64 in the scaled problem are 0 there: by less than that.
	e.ErrorBound = k.Outward(e.ErrorBound*(1+8*kernel.UnitRoundoff)+problem.UnderflowBound, 1)
	e.Certificate.Rounding = k.Outward(e.Certificate.Rounding+problem.UnderflowBound, 1)
}

// AtStart returns u(0) of a nonstationary problem on the whole grid, from values [z][y][x] if not nil.
func AtStart(p *problem.Problem, values []float64) ([]float64, error) {
	return p.InitialValues(0, problem.Box{Hi: p.N}, values)
}

// MaxError returns the largest distance of u from the exact solution at the grid points, or NaN if none is
// known.
func MaxError(p *problem.Problem, u []float64) float64 {
	if p.Exact == nil || len(u) != p.Points() {
		return math.NaN()
	}
	worst := 0.0
	p.EachPoint(problem.Box{Hi: p.N}, func(d, _, _, _ int, x, y, z float64) bool {
		worst = problem.MaxOrNaN(worst, math.Abs(u[d]-p.Exact(problem.Point{x, y, z})))
		return true
	})
	return worst
}

// evaluate evaluates j's values for a problem in range. It returns the comparison function behind the bound, if
// any. t is a first choice for it; nil computes one.
func evaluate(p *problem.Problem, j evaluator, t *cubicTransfer, e problem.Executor) (
	Evaluation, *cubicTransfer, error) {
	if len(j.u) != p.Points() {
		return Evaluation{}, nil, p.Errorf("a vector of %d values to evaluate; the grid has %d points", len(j.u),
			p.Points())
	}
	e = cmp.Or[problem.Executor](e, problem.Sequential{})
	if c := p.Reaction; c.Constant() && c.Value < 0 { // the barriers for constant coefficients need row sums ≥ 0
		q := *p
		q.Reaction.Of = func(problem.Point) float64 { return c.Value }
		p = &q
	}
	j.p, j.comparison = p, t
	if t == nil && !j.quick {
		if err := j.firstComparison(e); err != nil {
			return Evaluation{}, nil, err
		}
	}
	total, err := j.evaluateChunks(e)
	if err == nil && !j.quick {
		total, err = j.refine(total, e)
	}
	if err != nil {
		return Evaluation{}, nil, err
	}
	out := total.evaluation(&j)
	total.certify(&j, &out, e)
	out.unscale(-j.units.Scale)
	return out, j.comparison, nil
}

// evaluator holds what all chunks share.
type evaluator struct {
	p          *problem.Problem
	units      problem.Units
	before     []float64 // start of a time step of length dt
	dt         float64
	u          []float64
	comparison *cubicTransfer   // nil: constant coefficients, or row sums suffice
	minimiser  *minimiser       // on the problem's own grid, if it computed the comparison function
	sharp      *cubicTransfer   // A·w = |r|, where rows differ much in size; else nil
	residuals  []float64        // if not nil, receives |r| of the whole grid
	operator   *kernel.Operator // with residuals: receives the operator of the whole grid
	work       float64          // of computing comparison functions, in sweeps over the grid
	points     int              // approximate points per chunk; 0: chunkPoints
	quick      bool             // compute no comparison function
}

func (j *evaluator) evaluateChunks(e problem.Executor) (chunkResult, error) {
	boxes := j.boxes()
	slabs := make([]chunkResult, len(boxes))
	err := j.eachChunk(e, boxes, func(i int, w *chunk) error {
		slabs[i].evaluate(j, w)
		return slabs[i].scanValues(w)
	})
	inf := math.Inf(1)
	none := comparisonBound{least: inf}
	total := chunkResult{excess: inf, diagonal: [2]float64{inf, 0}, unit: none, sharp: none}
	for i := range slabs {
		total.merge(&slabs[i])
	}
	return total, err
}

type chunkResult struct {
	residual, reference kernel.Norm
	sum                 kernel.Sum
	contact, upper      int
	maxError            float64
	force               forces

	inf      float64 // ‖r‖∞ plus rounding
	rounding float64
	excess   float64    // least sum of a row's entries, rounded down
	diagonal [2]float64 // least and largest diagonal entry, where rows differ
	signs    string     // why A is no M-matrix, from the first such row
	outside  string     // why u is not feasible

	unit, sharp comparisonBound // for the evaluator's comparison functions
}

func (s *chunkResult) evaluate(j *evaluator, w *chunk) {
	b := &w.Discretization
	w.sweep.Residual(&s.reference, w.v, b.Layout.Interior())
	j.fill(b, w.v)
	top := 0.0
	j.eachRun(b.Box, func(u []float64) {
		w.sweep.Kernel().AddValues(&s.sum, u)
		top = problem.MaxOrNaN(top, kernel.MaxAbs(u))
	})
	b.EachGhostRow(func(at, n int, _ [3]int) bool {
		top = problem.MaxOrNaN(top, kernel.MaxAbs(w.v[at:][:n]))
		return true
	})
	s.rounding = residualRounding(b, top)
	w.sweep.Residual(&s.residual, w.v, b.Layout.Interior())
	s.inf = s.residual.Max + s.rounding
	s.checkRows(b)
	s.measureComparisons(j, w)
}

// scanValues counts contact points, compares with the exact solution and adds up the force.
func (s *chunkResult) scanValues(w *chunk) (err error) {
	b := &w.Discretization
	p := b.Problem
	exact := problem.NewSampler(p, "exact solution", p.Exact, p.Rows.Exact)
	b.EachRowOf(b.Box, func(at, m int, first [3]int) bool {
		row, d := w.v[at:][:m:m], b.Dense(first)
		phi, psi := w.obstacles(d)
		t := scanContact(w.sweep.Kernel(), w.words, row, phi, psi)
		if p.Obstacle != nil {
			s.contact += t.lower
		}
		s.upper += t.upper
		if t.outside >= 0 && s.outside == "" {
			s.outside = fmt.Sprintf("at %v the value %v is not between the obstacles, %v and %v",
				p.Location([3]int{first[0] + t.outside, first[1], first[2]}), row[t.outside], phi[t.outside], psi[t.outside])
		}
		w.addForce(t, first, d, nil, &s.force)
		if p.Exact != nil {
			err = exact.Values(w.row, w.x, first)
			for i, u := range row {
				s.maxError = problem.MaxOrNaN(s.maxError, math.Abs(u-w.row[i]))
			}
		}
		return err == nil
	})
	return err
}

func (s *chunkResult) merge(o *chunkResult) {
	s.residual.Merge(&o.residual)
	s.reference.Merge(&o.reference)
	s.sum.Merge(&o.sum)
	s.contact, s.upper = s.contact+o.contact, s.upper+o.upper
	s.force.merge(&o.force)
	s.maxError, s.inf = problem.MaxOrNaN(s.maxError, o.maxError), problem.MaxOrNaN(s.inf, o.inf)
	s.rounding, s.excess = max(s.rounding, o.rounding), min(s.excess, o.excess)
	s.diagonal = [2]float64{min(s.diagonal[0], o.diagonal[0]), max(s.diagonal[1], o.diagonal[1])}
	s.unit.merge(o.unit)
	s.sharp.merge(o.sharp)
	s.signs, s.outside = cmp.Or(s.signs, o.signs), cmp.Or(s.outside, o.outside)
}

func (s *chunkResult) evaluation(j *evaluator) Evaluation {
	p := j.p
	out := Evaluation{
		RelativeResidual: iterate.Relative(s.residual.L2(), j.units.Reference(s.reference.L2())),
		ResidualInf:      s.residual.Max,
		ErrorBound:       math.NaN(),
		MaxError:         math.NaN(),
		ContactPoints:    s.contact,
		UpperPoints:      s.upper,
		Sum:              s.sum.Float64(),
		Force:            s.force.totals(p),
	}
	if p.Exact != nil {
		out.MaxError = s.maxError
	}
	for a := range p.Dimension {
		out.Sum /= float64(p.N[a] + 1)
	}
	return out
}
