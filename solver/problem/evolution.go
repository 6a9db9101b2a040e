package problem

import (
	"math"

	"github.com/p2pdc/p2pdc/internal/kernel"
)

// MaxSteps bounds the time steps of one run. Halo labels have 20 bits for the step.
const MaxSteps = 1 << 20

// Evolution makes a problem nonstationary: find u(t) ≥ φ(t), 0 ≤ t ≤ End, with u_t + A·u − f ≥ 0 and
// complementarity, from u(0). It is solved by implicit Euler in Steps equal steps Δt. Step m is the stationary
// problem with the operator A + I/Δt, the source f(t_m) + u(t_m−1)/Δt, and obstacles and boundary data at t_m =
// m·Δt. Its operator is an M-matrix if A is, for any Δt.
type Evolution struct {
	End     float64  // time of the last step, positive
	Steps   int      // 1 to MaxSteps
	Initial Function // u(0) in the interior; nil: max(φ(0), 0), at most ψ(0)
	// At returns the problem at time t, with everything except Initial and Evolution, on the same grid. It must be
	// pure. It is called once per step.
	At func(t float64) *Problem
	// SteadyObstacles states that neither obstacle depends on t. They are then evaluated once per run.
	SteadyObstacles bool
}

// Step returns Δt.
func (e *Evolution) Step() float64 { return e.End / float64(e.Steps) }

// Time returns t_m. At the last step it returns exactly End.
func (e *Evolution) Time(m int) float64 {
	if m == e.Steps {
		return e.End
	}
	return float64(m) * e.Step()
}

// check returns an error if the time steps are invalid.
func (e *Evolution) check(p *Problem) error {
	switch {
	case !(e.End > 0) || math.IsInf(e.End, 1) || !(e.Step() > 0):
		return p.Errorf("the end time is %v; it must be positive and finite", e.End)
	case e.Steps < 1 || e.Steps > MaxSteps:
		return p.Errorf("%d time steps; there must be 1 to %d", e.Steps, MaxSteps)
	case e.At == nil:
		return p.Errorf("it has time steps but no functions of time (Evolution.At)")
	}
	return nil
}

// Steps returns the number of time steps, 0 for a stationary problem.
func (p *Problem) Steps() int {
	if p.Evolution == nil {
		return 0
	}
	return p.Evolution.Steps
}

// AtStep returns the stationary problem of step m, 1 ≤ m ≤ Steps, with 1/Δt added to its reaction. It lacks the
// source term u(t_m−1)/Δt, which Discretization.AddPrevious adds. AtStep(0) returns the problem at the start
// with nothing added. For a stationary problem it returns p.
func (p *Problem) AtStep(m int) *Problem {
	e := p.Evolution
	switch {
	case e == nil:
		return p
	case m == 0:
		return p.atTime(0, e.Initial)
	}
	q := p.atTime(e.Time(m), nil)
	q.SteadyObstacles = e.SteadyObstacles
	rate, reaction := 1/e.Step(), q.Reaction
	if reaction.Constant() {
		q.Reaction.Value += rate
	} else {
		q.Reaction.Of = func(x Point) float64 { return reaction.Of(x) + rate }
	}
	return q
}

// atTime returns the stationary problem with the functions at time t.
func (p *Problem) atTime(t float64, initial Function) *Problem {
	q := *p.Evolution.At(t)
	q.Name, q.Dimension, q.N, q.Lo, q.Hi = p.Name, p.Dimension, p.N, p.Lo, p.Hi
	q.Initial, q.Evolution = initial, nil
	return &q
}

// InitialValues returns u(t_m), from which step m+1 starts, on a box, projected onto [φ, ψ] at t_m: values (dense, own
// box) if not nil. Otherwise m must be 0, and it returns Initial or else the reference vector.
func (p *Problem) InitialValues(m int, box Box, values []float64) ([]float64, error) {
	q := p.AtStep(m)
	out := make([]float64, box.Points())
	if len(values) != len(out) && (values != nil || m > 0) {
		return nil, p.Errorf("%d starting values for a box of %d points", len(values), len(out))
	}
	for d, idx := range box.Each {
		x := q.At(idx[0], idx[1], idx[2])
		v := 0.0
		switch {
		case values != nil:
			v = values[d]
		case q.Initial != nil:
			v = q.Initial(x)
		}
		phi, psi := q.Obstacles(x)
		out[d] = Clamp(v, phi, psi)
		if !kernel.Finite(out[d]) {
			return out, p.Errorf("the value at time %v is %v at %v", p.Evolution.Time(m), out[d], p.Location(idx))
		}
	}
	return out, nil
}

// AddPrevious adds u(t_m−1)/Δt to the block's source. before is dense on the own box.
func (b *Discretization) AddPrevious(before []float64, dt float64) {
	source := b.Source
	if source.Array == nil {
		b.stepSource = b.array(b.stepSource)
		source.Array = b.stepSource
	}
	for d, v := range before {
		source.Array[d] = b.Source.At(d) + v/dt
	}
	b.Source = source
}
