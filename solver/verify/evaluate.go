package verify

import (
	"cmp"
	"fmt"
	"math"

	"github.com/p2pdc/p2pdc/internal/kernel"
	"github.com/p2pdc/p2pdc/solver/iterate"
	"github.com/p2pdc/p2pdc/solver/problem"
)

// Evaluation judges a vector by the problem alone: nothing in it is what a peer
// believed.
type Evaluation struct {
	RelativeResidual float64    // ‖r(u)‖₂/‖r(u⁰)‖₂, r the VI residual of SPEC §1, u⁰ = max(φ, 0)
	ResidualInf      float64    // ‖r(u)‖∞
	ErrorBound       float64    // of ‖u − u*‖∞, u* the discrete solution, rounding included; NaN: no bound known
	MaxError         float64    // at the grid points, against Exact; NaN: no exact solution
	ContactPoints    int        // points with u = φ
	UpperPoints      int        // points with u = ψ
	Sum              float64    // Σu/((nx+1)(ny+1)(nz+1)), unused axes count 1
	Force            [2]float64 // A·u − f summed over the points on φ and on ψ, times a cell's volume

	Certificate Certificate // what ErrorBound rests on
}

// evaluationPoints is about how many points are worked on at a time where only the values
// of the whole grid are in memory.
const evaluationPoints = 1 << 20

// Evaluate judges an assembled vector u of interior values [z][y][x]: the true VI
// residual and what follows from it. It evaluates the problem's functions at every
// point, slab by slab, on the executor (nil: Sequential). u is only read.
// All sums are exact, so the result depends neither on slabs nor on threads.
func Evaluate(p *problem.Problem, u []float64, e problem.Executor) (Evaluation, error) {
	return evaluateWhole(p, u, false, e)
}

// Measure is Evaluate without the search for a bound, which may take longer than a run that was
// interrupted. ErrorBound is known only where coefficients or rows give it at once.
func Measure(p *problem.Problem, u []float64, e problem.Executor) (Evaluation, error) {
	return evaluateWhole(p, u, true, e)
}

func evaluateWhole(p *problem.Problem, u []float64, quick bool, e problem.Executor) (Evaluation, error) {
	p, in, err := p.InRange()
	if err != nil {
		return Evaluation{}, err
	}
	if p.Evolution != nil {
		return Evaluation{}, p.Refuse("it is nonstationary: a vector is judged as the end of one of its steps")
	}
	out, _, err := evaluate(p, evaluator{units: in, u: in.Copied(u), quick: quick}, nil, e)
	return out, err
}

// EvaluateStep judges u as the end of time step m, 1 ≤ m ≤ Steps, which began with
// before: by the stationary problem that the step is. MaxError is against the exact
// solution at that time, so it holds what all steps have added to it. ErrorBound is
// what this step adds at most to the distance from the solution of the scheme, with
// which errors of steps before it do not grow: their sum bounds the error at the end.
func EvaluateStep(p *problem.Problem, m int, before, u []float64, e problem.Executor) (Evaluation, error) {
	out, _, err := evaluateStep(p, m, before, u, nil, e)
	return out, err
}

// evaluateStep is EvaluateStep with the profile of another step, which may serve here, too.
func evaluateStep(p *problem.Problem, m int, before, u []float64, t *cubicTransfer, e problem.Executor) (Evaluation, *cubicTransfer, error) {
	p, in, err := p.InRange()
	if err != nil {
		return Evaluation{}, nil, err
	}
	if p.Evolution == nil || m < 1 || m > p.Evolution.Steps || len(before) != p.Points() {
		return Evaluation{}, nil, p.Refuse("no step %d that begins with %d values", m, len(before))
	}
	j := evaluator{units: in, before: in.Copied(before), dt: p.Evolution.Step(), u: in.Copied(u)}
	return evaluate(p.AtStep(m), j, t, e)
}

// unscale multiplies what has the unit of values or residuals by 2^k.
func (e *Evaluation) unscale(k problem.Scale) {
	if k == 0 {
		return
	}
	for _, v := range []*float64{&e.ResidualInf, &e.MaxError, &e.Sum, &e.Force[0], &e.Force[1]} {
		*v = k.Times(*v)
	}
	// Data too small for a float64 in the scaled problem are 0 there: by less than that.
	e.ErrorBound = k.Outward(e.ErrorBound*(1+8*kernel.UnitRoundoff)+problem.LostData, 1)
	e.Certificate.Rounding = k.Outward(e.Certificate.Rounding+problem.LostData, 1)
}

// AtStart is u(0) of a nonstationary problem on the whole grid, from values [z][y][x]
// where there are some.
func AtStart(p *problem.Problem, values []float64) ([]float64, error) {
	return p.Before(problem.Box{Hi: p.N}, values)
}

// MaxError is the largest distance of u from the exact solution at the grid points; NaN
// where none is known.
func MaxError(p *problem.Problem, u []float64) float64 {
	if p.Exact == nil || len(u) != p.Points() {
		return math.NaN()
	}
	worst := 0.0
	p.EachPlace(problem.Box{Hi: p.N}, func(d, _, _, _ int, x, y, z float64) bool {
		if e := math.Abs(u[d] - p.Exact(problem.Point{x, y, z})); e > worst || math.IsNaN(e) {
			worst = e
		}
		return true
	})
	return worst
}

// evaluate judges j's values by a problem in range, and returns the profile behind the bound,
// if there is one. It begins with profile t; nil: one is made.
func evaluate(p *problem.Problem, j evaluator, t *cubicTransfer, e problem.Executor) (Evaluation, *cubicTransfer, error) {
	if len(j.u) != p.Points() {
		return Evaluation{}, nil, p.Refuse("a vector of %d values to evaluate; the grid has %d points", len(j.u), p.Points())
	}
	if e == nil {
		e = problem.Sequential{}
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

// judgement is what all slabs share.
type evaluator struct {
	p          *problem.Problem
	units      problem.Units
	before     []float64 // of a time step, which is dt long
	dt         float64
	u          []float64
	comparison *cubicTransfer // nil: one row serves all points, or row sums will do
	minimiser  *minimiser     // on the problem's own grid, where the profile is by it
	sharp      *cubicTransfer // A·w = |r|, where rows differ much in size; else nil
	residuals  []float64      // takes |r| of the whole grid, where it is not nil
	work       float64        // of making profiles, in sweeps over the grid
	points     int            // of a slab, about; 0: slabPoints
	quick      bool           // no profile is made
}

func (j *evaluator) evaluateChunks(e problem.Executor) (chunkResult, error) {
	boxes := j.boxes()
	slabs := make([]chunkResult, len(boxes))
	j.eachChunk(e, boxes, func(i int, w *chunk) error { return slabs[i].evaluate(j, w) }, func(i int, err error) { slabs[i].err = err })
	inf := math.Inf(1)
	total := chunkResult{excess: inf, diagonal: [2]float64{inf, 0}, unit: comparisonBound{least: inf}, sharp: comparisonBound{least: inf}}
	for i := range slabs {
		if slabs[i].err != nil {
			return total, slabs[i].err
		}
		total.merge(&slabs[i])
	}
	return total, nil
}

type chunkResult struct {
	residual, reference kernel.Norm
	sum                 kernel.Sum
	contact, upper      int
	maxError            float64
	force               forces
	err                 error

	inf      float64 // ‖r‖∞, the rounding added
	rounding float64
	excess   float64    // least sum of a row's entries, rounded down
	diagonal [2]float64 // smallest and largest entry, where rows differ
	signs    string     // why A is no M-matrix: the first row that shows it
	outside  string     // why u is not feasible

	unit, sharp comparisonBound // of the judgement's profiles
}

func (s *chunkResult) evaluate(j *evaluator, w *chunk) error {
	b := &w.Discretization
	stepper, err := b.Sweep(1) // the step is not used: nothing is relaxed
	if err != nil {
		return err
	}
	if err = b.FillReference(w.v); err != nil {
		return err
	}
	stepper.Residual(&s.reference, w.v, b.Layout.Interior())
	j.fill(b, w.v)
	top := 0.0
	j.eachRun(b.Box, func(u []float64) {
		stepper.Kernel().AddValues(&s.sum, u)
		top = problem.Larger(top, problem.LargestMagnitude(u))
	})
	b.EachGhostRow(func(at, n int, _ [3]int) bool {
		top = problem.Larger(top, problem.LargestMagnitude(w.v[at:][:n]))
		return true
	})
	s.rounding = roundingUpTo(b, top)
	if err = s.scanValues(w, stepper); err != nil {
		return err
	}
	stepper.Residual(&s.residual, w.v, b.Layout.Interior())
	s.inf = s.residual.Max + s.rounding
	s.checkRows(b)
	s.measureComparisons(j, b, stepper, w.v)
	return nil
}

// look finds what is read off the values themselves, and the force.
func (s *chunkResult) scanValues(w *chunk, stepper *kernel.Sweep) (err error) {
	b := &w.Discretization
	p := b.Problem
	exact := problem.NewSampler(p, "exact solution", p.Exact, p.Rows.Exact)
	b.EachRowOf(b.Box, func(at, m int, first [3]int) bool {
		row, d := w.v[at:][:m:m], b.Dense(first)
		phi, psi := w.obstacles(d)
		t := scanContact(stepper.Kernel(), w.words, row, phi, psi)
		if p.Obstacle != nil {
			s.contact += t.lower
		}
		s.upper += t.upper
		if t.outside >= 0 && s.outside == "" {
			s.outside = fmt.Sprintf("at %v the value %v is not between the obstacles, %v and %v",
				p.Place([3]int{first[0] + t.outside, first[1], first[2]}), row[t.outside], phi[t.outside], psi[t.outside])
		}
		w.addForce(stepper, t, first, d, nil, &s.force)
		if p.Exact != nil {
			err = exact.Values(w.row, w.x, first)
			for i, u := range row {
				s.maxError = problem.Larger(s.maxError, math.Abs(u-w.row[i]))
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
	if o.maxError > s.maxError || math.IsNaN(o.maxError) {
		s.maxError = o.maxError
	}
	if !(o.inf <= s.inf) {
		s.inf = o.inf
	}
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
