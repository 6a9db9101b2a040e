package richardson

import (
	"math"

	"github.com/p2pdc/p2pdc/internal/kernel"
	"github.com/p2pdc/p2pdc/solver/iterate"
	"github.com/p2pdc/p2pdc/solver/problem"
)

// Sequence is the result of SolveSequential.
type Sequence struct {
	U        []float64         // [z][y][x]; of a nonstationary problem the end of the last complete step
	Sweeps   iterate.Iteration // of all steps
	Residual float64           // relative, as it was judged; of the last step
	Reason   iterate.Reason
	Steps    []iterate.StepResult // complete ones
}

// SolveSequential solves on one block with plain loops: the oracle and the
// one-peer reference. The order of operations at a point and the rule of checks
// are those of the workers, so a synchronous run on any partition gives the same
// bits after the same number of sweeps (in the order in-turn: on one peer).
// checkEvery, lag and maxSweeps mean what they do in Config.
func SolveSequential(
	p *problem.Problem,
	order problem.Order,
	tol float64,
	checkEvery, lag, maxSweeps iterate.Iteration,
) (Sequence, error) {
	c := problem.Config{
		Problem:    p,
		Scheme:     iterate.Synchronous(),
		Order:      order,
		Tolerance:  tol,
		CheckEvery: checkEvery,
		Lag:        lag,
		MaxSweeps:  maxSweeps,
	}
	c.Partition = problem.Partition{Cuts: [3][]int{{0, p.N[0]}, {0, p.N[1]}, {0, p.N[2]}}}
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
	before, err := p.InitialValues(problem.Box{Hi: p.N}, nil)
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
		if one.Reason != iterate.Converged {
			break
		}
		before = one.U
		all.Steps = append(all.Steps, iterate.StepResult{Step: m, Sweeps: one.Sweeps, Residual: one.Residual})
	}
	all.U = before
	return all, nil
}

// solveOnce solves a stationary problem, or a time step of length dt from before.
func solveOnce(
	p *problem.Problem,
	c *problem.Config,
	r iterate.CheckInterval,
	before []float64,
	dt float64,
) (Sequence, error) {
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
	u, out := s.iterate(r, c.Units.Reference(reference), c.Tolerance, s.sweep)
	out.U = u
	return out, nil
}

// iterate calls sweep until the rule of checks says that it is enough.
func (s *sequential) iterate(r iterate.CheckInterval, reference, tol float64, sweep func()) ([]float64, Sequence) {
	var out Sequence
	var plan iterate.CheckSchedule
	check, due, last := iterate.Iteration(0), iterate.Iteration(0), iterate.Iteration(0)
	var stagnant iterate.Stagnation
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
					out.Reason, asks = stagnant.Evaluate(k, out.Residual, tol, iterate.StagnantChecks, asks, m)
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

// sequential is the whole grid with its boundary: plain arrays of (N+2)^d values,
// the operator's row of every point if rows differ.
type sequential struct {
	p           *problem.Problem
	order       problem.Order
	form        kernel.Form
	row         [kernel.Directions]float64   // constant operators
	rows        [][kernel.Directions]float64 // variable ones, by dense index
	step        float64
	phi, psi, f []float64
	cur, next   []float64
	line, plane int // strides
	size        [3]int
}

func newSequential(p *problem.Problem, order problem.Order) (*sequential, error) {
	b, err := problem.Discretize(p, problem.Box{Hi: p.N})
	if err != nil {
		return nil, err
	}
	s := &sequential{p: p, order: order, form: b.Operator.Form, step: 1 / b.Diagonal}
	for a := range 3 {
		s.size[a] = 1
		if a < p.Dimension {
			s.size[a] = p.N[a] + 2
		}
	}
	s.line, s.plane = s.size[0], s.size[0]*s.size[1]
	st := problem.NewStencil(p)
	s.row = st.At([3]int{1, 1, 1})
	n := p.Points()
	s.phi, s.psi, s.f = make([]float64, n), make([]float64, n), make([]float64, n)
	s.cur, s.next = make([]float64, s.plane*s.size[2]), make([]float64, s.plane*s.size[2])
	s.each(func(i, d int, idx [3]int) {
		s.phi[d], s.psi[d] = math.Inf(-1), math.Inf(1)
		q := p.At(idx[0], idx[1], idx[2])
		if p.Obstacle != nil {
			s.phi[d] = p.Obstacle(q)
		}
		if p.Upper != nil {
			s.psi[d] = p.Upper(q)
		}
		s.f[d] = p.Source.At(q)
		if s.form == kernel.Variable {
			s.rows = append(s.rows, st.At(idx))
		}
	})
	for k := range s.size[2] {
		for j := range s.size[1] {
			for i := range s.size[0] {
				idx := [3]int{i, j, k}
				for a := p.Dimension; a < 3; a++ {
					idx[a] = 1
				}
				at := i + s.line*j + s.plane*k
				s.cur[at] = p.ReferenceAt(idx)
				s.next[at] = s.cur[at]
			}
		}
	}
	return s, nil
}

// each visits interior points in memory order: index in cur, dense index, grid
// index.
func (s *sequential) each(f func(i, d int, idx [3]int)) {
	d := 0
	for k := 1; k <= s.p.N[2]; k++ {
		for j := 1; j <= s.p.N[1]; j++ {
			for i := 1; i <= s.p.N[0]; i++ {
				f(s.at(i, j, k), d, [3]int{i, j, k})
				d++
			}
		}
	}
}

func (s *sequential) at(i, j, k int) int {
	switch s.p.Dimension {
	case 1:
		return i
	case 2:
		return i + s.line*j
	}
	return i + s.line*j + s.plane*k
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

// defect is A·u − f at a point; the neighbour before it along the slowest axis is
// read from below.
func (s *sequential) defect(below []float64, i, d int) float64 {
	u, a := s.cur, &s.row
	if s.rows != nil {
		a = &s.rows[d]
	}
	if s.form == kernel.Isotropic {
		var sum float64
		switch s.p.Dimension {
		case 1:
			sum = below[i-1] + u[i+1]
		case 2:
			sum = (u[i-1] + u[i+1]) + (below[i-s.line] + u[i+s.line])
		default:
			sum = ((u[i-1] + u[i+1]) + (u[i-s.line] + u[i+s.line])) + (below[i-s.plane] + u[i+s.plane])
		}
		return (float64(a[kernel.Center]*u[i]) - float64(a[kernel.West]*sum)) - s.f[d]
	}
	pair := func(low, high, stride int, first []float64) float64 {
		return float64(a[low]*first[i-stride]) + float64(a[high]*u[i+stride])
	}
	var sum float64
	switch s.p.Dimension {
	case 1:
		sum = pair(kernel.West, kernel.East, 1, below)
	case 2:
		sum = pair(kernel.West, kernel.East, 1, u) + pair(kernel.South, kernel.North, s.line, below)
	default:
		sum = pair(kernel.West, kernel.East, 1, u) + pair(kernel.South, kernel.North, s.line, u)
		sum += pair(kernel.Bottom, kernel.Top, s.plane, below)
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

// residual is the norm of the VI residual of the current iterate.
func (s *sequential) residual() float64 {
	var sum kernel.Sum
	s.each(func(i, d int, _ [3]int) {
		r := s.defect(s.cur, i, d)
		if s.cur[i] <= s.phi[d] {
			r = min(r, 0)
		}
		if s.cur[i] >= s.psi[d] {
			r = max(r, 0)
		}
		sum.Add(float64(r * r))
	})
	return iterate.Norm(&sum)
}

// magnitude is ‖m‖₂ of the current iterate, see stagnation.
func (s *sequential) magnitude() float64 {
	var sum kernel.Sum
	s.each(func(i, d int, _ [3]int) {
		if u := s.cur[i]; u > s.phi[d] && u < s.psi[d] {
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
