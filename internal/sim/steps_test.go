package sim

import (
	"fmt"

	"github.com/p2pdc/p2pdc/solver/iterate"
	"github.com/p2pdc/p2pdc/solver/verify"
)

// stepEnds holds the iterates at the ends of time steps.
type stepEnds struct {
	c        *Cluster
	u        [][]float64          // by time step, assembled
	reported []iterate.StepResult // by rank 0
}

// add stores a peer's block at the end of a time step.
func (e *stepEnds) add(p *peer, r *iterate.StepResult) {
	for len(e.u) <= r.Step {
		e.u = append(e.u, make([]float64, e.c.Scenario.Problem.Points()))
	}
	p.place(e.u[r.Step])
	if p.rank == 0 {
		e.reported = append(e.reported, *r)
	}
}

// check checks the end of every complete step, and what the peers reported. Result.Evaluation
// becomes that of the last step.
func (e *stepEnds) check(r *Result) error {
	s := e.c.Scenario
	before, err := verify.AtStart(s.Problem, nil)
	if err != nil {
		return err
	}
	for rank, o := range r.Outcomes {
		if o.Steps != len(e.reported) {
			return fmt.Errorf("sim: rank %d has completed %d steps, rank 0 %d", rank, o.Steps, len(e.reported))
		}
	}
	for _, b := range e.reported {
		end := e.u[b.Step]
		v, err := verify.EvaluateStep(s.Problem, b.Step, before, end, nil)
		if err != nil {
			return err
		}
		if v.RelativeResidual > s.Tolerance {
			return fmt.Errorf("sim: step %d ended with a residual of %v, the tolerance is %v", b.Step, v.RelativeResidual,
				s.Tolerance)
		}
		if !s.lockstep() && v.RelativeResidual != b.Residual {
			return fmt.Errorf("sim: at the end of step %d the peers agreed on a residual of %v; it is %v", b.Step, b.Residual,
				v.RelativeResidual)
		}
		before, r.Evaluation = end, v
	}
	for i := range before {
		if before[i] != r.U[i] {
			return fmt.Errorf("sim: value %d of the answer is %v; at the end of the last complete step it was %v", i, r.U[i],
				before[i])
		}
	}
	if s.lockstep() && r.Outcomes[0].Reason != iterate.Interrupted {
		return e.c.checkBits(r)
	}
	return nil
}
