package sim

import (
	"fmt"
	"math/rand/v2"

	"github.com/p2pdc/p2pdc/internal/virtual"
	"github.com/p2pdc/p2pdc/solver/iterate"
	"github.com/p2pdc/p2pdc/solver/problem"
	"github.com/p2pdc/p2pdc/solver/verify"
)

// drawSteps makes some problems nonstationary, with a moving load and boundary. It draws after the
// rest, so that the other draws of a seed stay.
func drawSteps(r *rand.Rand, s *Scenario) {
	if !chance(r, 0.2) {
		return
	}
	base, heat := *s.Problem, r.Float64()
	e := &problem.Evolution{Steps: 2 + r.IntN(3), End: pick(r, 0.01, 0.1, 1)}
	e.At = func(t float64) *problem.Problem {
		q := base
		source := q.Source
		q.Source = problem.Coefficient{Of: func(x problem.Point) float64 { return source.At(x) + 5*heat*t }}
		q.Boundary = func(x problem.Point) float64 { return heat * t * x[0] / e.End / 10 }
		return &q
	}
	s.Problem = e.At(e.End)
	s.Problem.Evolution = e
	s.What += fmt.Sprintf(" in %d steps to %v", e.Steps, e.End)
	s.Reconfigure = chance(r, 0.6)
	s.Tolerance = max(s.Tolerance, 1e-4)
}

// step stores the block at the end of a time step.
func (p *peer) step(r iterate.StepResult) {
	c, n := p.c, p.c.Scenario.Problem.Points()
	for len(c.ends) <= r.Step {
		c.ends = append(c.ends, make([]float64, n))
	}
	v := make([]float64, p.worker.Box().Points())
	p.worker.Solution(v)
	virtual.Place(c.ends[r.Step], c.Scenario.Problem.N, p.worker.Box(), v)
	if p.rank == 0 {
		c.reported = append(c.reported, r)
	}
}

// checkSteps checks the end of every complete step, and what the peers reported. Result.Evaluation
// becomes that of the last step.
func (c *Cluster) checkSteps(r *Result) error {
	s := c.Scenario
	before, err := verify.AtStart(s.Problem, nil)
	if err != nil {
		return err
	}
	for rank, o := range r.Outcomes {
		if o.Steps != len(c.reported) {
			return fmt.Errorf("sim: rank %d has completed %d steps, rank 0 %d", rank, o.Steps, len(c.reported))
		}
	}
	for _, b := range c.reported {
		end := c.ends[b.Step]
		e, err := verify.EvaluateStep(s.Problem, b.Step, before, end, nil)
		if err != nil {
			return err
		}
		if e.RelativeResidual > s.Tolerance {
			return fmt.Errorf("sim: step %d ended with a residual of %v, the tolerance is %v", b.Step, e.RelativeResidual,
				s.Tolerance)
		}
		if !s.lockstep() && e.RelativeResidual != b.Residual {
			return fmt.Errorf("sim: at the end of step %d the peers agreed on a residual of %v; it is %v", b.Step, b.Residual,
				e.RelativeResidual)
		}
		before, r.Evaluation = end, e
	}
	for i := range before {
		if before[i] != r.U[i] {
			return fmt.Errorf("sim: value %d of the answer is %v; at the end of the last complete step it was %v", i, r.U[i],
				before[i])
		}
	}
	if s.lockstep() && r.Outcomes[0].Reason != iterate.Interrupted {
		return c.checkBits(r)
	}
	return nil
}
