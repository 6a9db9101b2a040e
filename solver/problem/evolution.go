package problem

import (
	"math"

	"github.com/p2pdc/p2pdc/internal/kernel"
)

// MaxSteps bounds the time steps of one run; labels of halos hold that many.
const MaxSteps = 1 << 20

// Evolution makes a problem nonstationary: find u(t) ≥ φ(t), 0 ≤ t ≤ End, with
// u_t + A·u − f ≥ 0, complementary, from u(0). It is solved by implicit Euler in
// Steps equal steps Δt: step m is the stationary problem with A + I/Δt, the source
// f(t_m) + u(t_m−1)/Δt, and obstacles and boundary data at t_m = m·Δt. That operator
// is an M-matrix if A is, whatever Δt.
type Evolution struct {
	End     float64  // time of the last step, positive
	Steps   int      // 1 to MaxSteps
	Initial Function // u(0) in the interior; nil: max(φ(0), 0), at most ψ(0)
	// At is the problem's functions at time t: everything of a Problem but Initial
	// and Evolution, on the same grid. It is pure and called once a step.
	At func(t float64) *Problem
	// SteadyObstacles says that neither obstacle changes with t: a block then evaluates
	// them once, not in every step.
	SteadyObstacles bool
}

// Step is Δt.
func (e *Evolution) Step() float64 { return e.End / float64(e.Steps) }

// Time is t_m; exactly End at the last step.
func (e *Evolution) Time(m int) float64 {
	if m == e.Steps {
		return e.End
	}
	return float64(m) * e.Step()
}

// check refuses an evolution that has no steps to take.
func (e *Evolution) check(p *Problem) error {
	switch {
	case !(e.End > 0) || math.IsInf(e.End, 1) || !(e.Step() > 0):
		return p.Refuse("the end time is %v; it must be positive and finite", e.End)
	case e.Steps < 1 || e.Steps > MaxSteps:
		return p.Refuse("%d time steps; there may be 1 to %d", e.Steps, MaxSteps)
	case e.At == nil:
		return p.Refuse("it has time steps, but no functions of time")
	}
	return nil
}

// Steps is the number of time steps, 0 for a stationary problem.
func (p *Problem) Steps() int {
	if p.Evolution == nil {
		return 0
	}
	return p.Evolution.Steps
}

// AtStep is what step m solves, 1 ≤ m ≤ Steps, but for the term u(t_m−1)/Δt of the
// source, which is known only then: a stationary problem with 1/Δt in its reaction.
// AtStep(0) has the functions of the start and nothing added. Of a stationary problem
// it is the problem itself.
func (p *Problem) AtStep(m int) *Problem {
	e := p.Evolution
	switch {
	case e == nil:
		return p
	case m == 0:
		return p.start()
	}
	q := *e.At(e.Time(m))
	q.Name, q.Dimension, q.N, q.Lo, q.Hi = p.Name, p.Dimension, p.N, p.Lo, p.Hi
	q.Initial, q.Evolution, q.Steady = nil, nil, e.SteadyObstacles
	rate, reaction := 1/e.Step(), q.Reaction
	if reaction.Constant() {
		q.Reaction.Value += rate
	} else {
		q.Reaction.Of = func(x Point) float64 { return reaction.Of(x) + rate }
	}
	return &q
}

// start is the problem whose reference vector or Initial is u(0).
func (p *Problem) start() *Problem {
	e := p.Evolution
	if e == nil {
		return p
	}
	q := *e.At(0)
	q.Name, q.Dimension, q.N, q.Lo, q.Hi = p.Name, p.Dimension, p.N, p.Lo, p.Hi
	q.Initial, q.Evolution = e.Initial, nil
	return &q
}

// Before is u(0) on a box, brought into [φ(0), ψ(0)]: from values (dense own-box, may
// be nil), else Initial, else the reference vector.
func (p *Problem) Before(box Box, values []float64) ([]float64, error) {
	q := p.start()
	out := make([]float64, box.Points())
	if values != nil && len(values) != len(out) {
		return nil, p.Refuse("%d starting values for a box of %d points", len(values), len(out))
	}
	var err error
	box.Each(func(d int, idx [3]int) bool {
		x := q.At(idx[0], idx[1], idx[2])
		v := 0.0
		switch {
		case values != nil:
			v = values[d]
		case q.Initial != nil:
			v = q.Initial(x)
		}
		phi, psi := math.Inf(-1), math.Inf(1)
		if q.Obstacle != nil {
			phi = q.Obstacle(x)
		}
		if q.Upper != nil {
			psi = q.Upper(x)
		}
		out[d] = Clamp(v, phi, psi)
		if !kernel.Finite(out[d]) {
			err = p.Refuse("the value at time 0 is %v at %v", out[d], p.Place(idx))
		}
		return err == nil
	})
	return out, err
}

// Remember adds u(t_m−1)/Δt to the block's source; before is dense own-box.
func (b *Discretization) Remember(before []float64, dt float64) {
	source := b.Source
	if source.Array == nil {
		b.memory = b.room(b.memory)
		source.Array = b.memory
	}
	for d, v := range before {
		source.Array[d] = b.Source.At(d) + v/dt
	}
	b.Source = source
}
