package richardson

import (
	"math"
	"slices"

	"github.com/p2pdc/p2pdc/internal/kernel"
	"github.com/p2pdc/p2pdc/solver/iterate"
	"github.com/p2pdc/p2pdc/solver/problem"
)

// Sequence is the result of SolveSequential.
type Sequence struct {
	U        []float64         // [z][y][x]; of a nonstationary problem the end of the last complete step
	Sweeps   iterate.Iteration // of all steps
	Residual float64           // relative, of the last check; of the last step
	Reason   iterate.Reason
	Steps    []iterate.StepResult // complete ones
}

// SolveSequential solves on one block with plain loops: the oracle of tests and the one-peer reference. The
// order of operations at a point and the rule of checks are those of the workers. So a synchronous run on any
// partition gives the same bits after the same number of sweeps, in the order in-turn on one peer only.
// checkEvery, lag and maxSweeps are those of problem.Config.
func SolveSequential(p *problem.Problem, order problem.Order, tol float64,
	checkEvery, lag, maxSweeps iterate.Iteration) (Sequence, error) {
	c := problem.Config{
		Problem: p, Partition: problem.Partition{Cuts: [3][]int{{0, p.N[0]}, {0, p.N[1]}, {0, p.N[2]}}},
		Scheme: iterate.Synchronous(), Order: order, Tolerance: tol,
		CheckEvery: checkEvery, Lag: lag, MaxSweeps: maxSweeps,
	}
	if err := c.Prepare(); err != nil {
		return Sequence{}, err
	}
	out, err := solveInSteps(&c, iterate.NewCheckInterval(checkEvery, lag, maxSweeps))
	(-c.Units.Scale).Apply(out.U)
	return out, err
}

func solveInSteps(c *problem.Config, r iterate.CheckInterval) (Sequence, error) {
	p := c.Problem
	if p.Evolution == nil {
		return solveOnce(p, c, r, nil, 0)
	}
	before, err := p.InitialValues(0, problem.Box{Hi: p.N}, nil)
	if err != nil {
		return Sequence{}, err
	}
	var all Sequence
	for m := 1; m <= p.Evolution.Steps; m++ {
		one, err := solveOnce(p.AtStep(m), c, r, before, p.Evolution.Step())
		if err != nil {
			return Sequence{}, err
		}
		all.Sweeps += one.Sweeps
		all.Residual, all.Reason = one.Residual, one.Reason
		if !one.Reason.EndsStep() {
			break
		}
		before = one.U
		all.Steps = append(all.Steps, iterate.StepResult{Step: m, Sweeps: one.Sweeps, Residual: one.Residual})
		if one.Reason != iterate.Converged {
			break
		}
	}
	all.U = before
	return all, nil
}

// solveOnce solves a stationary problem, or a time step of length dt from before.
func solveOnce(p *problem.Problem, c *problem.Config, r iterate.CheckInterval,
	before []float64, dt float64) (Sequence, error) {
	s, err := newSequential(p, c.Order)
	if err != nil {
		return Sequence{}, err
	}
	for d, v := range before {
		s.f[d] += v / dt
	}
	reference := s.residual()
	if !kernel.Finite(reference) {
		return Sequence{}, p.MagnitudeError()
	}
	if err = s.start(before); err != nil {
		return Sequence{}, err
	}
	u, out := s.iterate(r, c.Units.Reference(reference), c.Tolerance, p.MayDiverge(), s.sweep)
	out.U = u
	return out, nil
}

// iterate calls sweep until the rule of checks ends the run.
func (s *sequential) iterate(
	r iterate.CheckInterval, reference, tol float64, mayDiverge bool, sweep func(),
) ([]float64, Sequence) {
	var out Sequence
	var plan iterate.CheckSchedule
	check, due, last := iterate.Iteration(0), iterate.Iteration(0), iterate.Iteration(0)
	stagnant := iterate.Stagnation{MayDiverge: mayDiverge}
	asks := false
	for k := iterate.Iteration(0); ; k++ {
		if out.Reason == iterate.Running && k == check {
			if k >= due || k == r.Max {
				out.Residual, out.Reason = r.Evaluate(k, s.residual(), reference, tol)
				if out.Reason == iterate.Running {
					m := 0.0
					if asks {
						m = s.magnitude() / reference
					}
					out.Reason, asks = stagnant.Evaluate(k, float64(k), out.Residual, tol,
						iterate.StagnantChecks, asks, m)
				}
				due, last = plan.Next(r, k, out.Residual, tol), r.Effect(k)
			}
			check = r.After(k)
		}
		if out.Reason != iterate.Running && k == last {
			out.Sweeps = k
			return s.interior(), out
		}
		sweep()
	}
}

// sequential is the whole grid with its boundary in plain arrays of (N+2)^d values.
type sequential struct {
	p           *problem.Problem
	order       problem.Order
	form        kernel.Form
	row         [kernel.Directions]float64   // constant operators
	rows        [][kernel.Directions]float64 // variable ones, by dense index
	step        float64
	phi, psi, f []float64
	cur, next   []float64
	stride      [3]int // of cur, 0 along unused axes
}

func newSequential(p *problem.Problem, order problem.Order) (*sequential, error) {
	b, err := problem.Discretize(p, problem.Box{Hi: p.N})
	if err != nil {
		return nil, err
	}
	s := &sequential{p: p, order: order, form: b.Operator.Form, step: 1 / b.Diagonal}
	whole := problem.Box{Hi: p.N}
	for a := range p.Dimension {
		whole.Lo[a], whole.Hi[a] = -1, p.N[a]+1
	}
	for _, idx := range whole.Each {
		s.cur = append(s.cur, p.ReferenceAt(idx))
	}
	s.next = slices.Clone(s.cur)
	for a, stride := 0, 1; a < p.Dimension; a++ {
		s.stride[a] = stride
		stride *= p.N[a] + 2
	}
	st := problem.NewStencil(p)
	s.row = st.At([3]int{1, 1, 1})
	n := p.Points()
	s.phi, s.psi, s.f = make([]float64, n), make([]float64, n), make([]float64, n)
	s.each(func(i, d int, idx [3]int) {
		q := p.At(idx[0], idx[1], idx[2])
		s.phi[d], s.psi[d] = p.Obstacles(q)
		s.f[d] = p.Source.At(q)
		if s.form == kernel.Variable {
			s.rows = append(s.rows, st.At(idx))
		}
	})
	return s, nil
}

// each visits the interior points in memory order: index in cur, dense index, grid index.
func (s *sequential) each(f func(i, d int, idx [3]int)) {
	for d, idx := range (problem.Box{Hi: s.p.N}).Each {
		f(s.stride[0]*idx[0]+s.stride[1]*idx[1]+s.stride[2]*idx[2], d, idx)
	}
}

// start sets the starting iterate: values, or else the problem's.
func (s *sequential) start(values []float64) error {
	p := s.p
	if values == nil && p.Initial == nil {
		return nil
	}
	var err error
	s.each(func(i, d int, idx [3]int) {
		v := 0.0
		if values != nil {
			v = values[d]
		} else {
			v = p.Initial(p.At(idx[0], idx[1], idx[2]))
		}
		w, wrong := p.StartValue(v, s.phi[d], s.psi[d], idx)
		if s.cur[i] = w; wrong != nil && err == nil {
			err = wrong
		}
	})
	return err
}

// defect returns A·u − f at a point. It reads the neighbour before the point along the slowest axis from below.
func (s *sequential) defect(below []float64, i, d int) float64 {
	u, a := s.cur, &s.row
	if s.rows != nil {
		a = &s.rows[d]
	}
	sum := math.Copysign(0, -1) // −0 + x is x for every x
	for axis, stride := range s.stride[:s.p.Dimension] {
		before, behind := u[i-stride], u[i+stride]
		if axis == s.p.Dimension-1 {
			before = below[i-stride]
		}
		pair := before + behind
		if s.form != kernel.Isotropic {
			low := kernel.West + 2*axis
			pair = float64(a[low]*before) + float64(a[low+1]*behind)
		}
		sum += pair
	}
	if s.form == kernel.Isotropic {
		sum = float64(a[kernel.West] * sum)
	}
	return (float64(a[kernel.Center]*u[i]) - sum) - s.f[d]
}

func (s *sequential) sweep() {
	below := s.cur
	if s.order == problem.InTurn {
		below = s.next // its boundary values are the same
	}
	s.each(func(i, d int, _ [3]int) {
		v := s.cur[i] - float64(s.step*s.defect(below, i, d))
		s.next[i] = problem.Clamp(v, s.phi[d], s.psi[d])
	})
	s.cur, s.next = s.next, s.cur
}

// residual returns the norm of the residual of the variational inequality for the current iterate.
func (s *sequential) residual() float64 {
	var sum kernel.Sum
	s.each(func(i, d int, _ [3]int) {
		r := s.residualAt(i, d)
		sum.Add(float64(r * r))
	})
	return iterate.Norm(&sum)
}

func (s *sequential) residualAt(i, d int) float64 {
	r := s.defect(s.cur, i, d)
	if s.cur[i] <= s.phi[d] {
		r = min(r, 0)
	}
	if s.cur[i] >= s.psi[d] {
		r = max(r, 0)
	}
	return r
}

// magnitude returns ‖m‖₂ of the current iterate; see iterate.Stagnation.
func (s *sequential) magnitude() float64 {
	var sum kernel.Sum
	s.each(func(i, d int, _ [3]int) {
		if u := s.cur[i]; u > s.phi[d] && u < s.psi[d] || s.residualAt(i, d) != 0 {
			center := s.row[kernel.Center]
			if s.rows != nil {
				center = s.rows[d][kernel.Center]
			}
			m := problem.PointMagnitude(center, u, s.f[d])
			sum.Add(float64(m * m))
		}
	})
	return iterate.Norm(&sum)
}

func (s *sequential) interior() []float64 {
	out := make([]float64, s.p.Points())
	s.each(func(i, d int, _ [3]int) { out[d] = s.cur[i] })
	return out
}
