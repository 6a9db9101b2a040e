package sim

import (
	"errors"
	"fmt"
	"time"

	"github.com/p2pdc/p2pdc/internal/virtual"
	"github.com/p2pdc/p2pdc/solver/iterate"
	"github.com/p2pdc/p2pdc/solver/problem"
	"github.com/p2pdc/p2pdc/solver/verify"
)

// Result is the outcome of a run.
type Result struct {
	U          []float64 // assembled [z][y][x]
	Outcomes   []iterate.Outcome
	Evaluation verify.Evaluation
	Virtual    time.Duration // from start to the last session's end
	Events     uint64
	Points     uint64 // relaxed by all peers
	Lost       uint64 // data frames
	Reconnects uint64 // control connections made again
	Railed     uint64 // frames received by adapters
	Moves      uint64 // of sessions between rails
	Changes    uint64 // changes of mode at boundaries of time steps
	Planes     int    // planes moved between peers
}

// Play runs a scenario and checks its outcome.
func Play(s *Scenario) (*Result, error) {
	c, err := New(s)
	if err != nil {
		return nil, err
	}
	if err := c.Run(); err != nil {
		return nil, err
	}
	return c.Check()
}

// Check checks a run that has ended. All ranks must give the same reason. The residual of the
// assembled answer must meet the tolerance. All memory must have been returned.
func (c *Cluster) Check() (*Result, error) {
	r := c.result()
	var err error
	if r.Evaluation, err = verify.Evaluate(c.Scenario.Problem, r.U, nil); err != nil {
		return r, err
	}
	return r, errors.Join(c.checkReasons(r), c.checkResidual(r), c.checkMemory())
}

// result collects the outcome of a run, without its evaluation.
func (c *Cluster) result() *Result {
	r := &Result{Virtual: time.Duration(c.ended), Events: c.events, Railed: c.railed, Moves: c.moves, U: c.assemble()}
	for _, p := range c.peers {
		o := p.worker.Outcome()
		r.Outcomes = append(r.Outcomes, o)
		r.Points += p.points
		r.Planes += o.PlanesSent
		changes, _ := p.Exchange.Changes()
		r.Changes += uint64(changes)
		r.Reconnects += p.node.Counters().Reconnects
	}
	for _, l := range c.links {
		for end := range 2 {
			st := l.Stats(end)
			r.Lost += st.Lost + st.Cut + st.Overflowed
		}
	}
	return r
}

func (c *Cluster) assemble() []float64 {
	u := make([]float64, c.Scenario.Problem.Points())
	for _, p := range c.peers {
		p.place(u)
	}
	return u
}

// place writes the peer's block into the grid u, [z][y][x].
func (p *peer) place(u []float64) {
	box := p.worker.Box()
	v := make([]float64, box.Points())
	p.worker.Solution(v)
	virtual.Place(u, p.c.Scenario.Problem.N, box, v)
}

func (c *Cluster) checkReasons(r *Result) error {
	s, reason := c.Scenario, r.Outcomes[0].Reason
	for rank, o := range r.Outcomes {
		if o.Reason != reason {
			return fmt.Errorf("sim: rank %d ended because it %v, rank 0 because it %v", rank, o.Reason, reason)
		}
	}
	switch {
	case reason == iterate.Converged:
		if r.Evaluation.RelativeResidual > s.Tolerance {
			return fmt.Errorf("sim: false termination: the residual of the assembled answer is %v, the tolerance %v, "+
				"that of the peers %v", r.Evaluation.RelativeResidual, s.Tolerance, r.Outcomes[0].Residual)
		}
	case reason == iterate.ReachedSweeps && s.MaxSweeps > 0:
	case reason == s.Stop.Why && s.Stop.At > 0:
	default:
		return fmt.Errorf("sim: the run ended because it %v, which was not requested", reason)
	}
	return nil
}

// lockstep reports whether the bits of the answer are determined: those of the sequential method, or
// of an emulation. They are not if measured times decide the amount of work.
func (s *Scenario) lockstep() bool {
	return s.Scheme.Lockstep() && !(s.Method.Name == problem.Schwarz && s.Method.InnerCycles == 0)
}

// checkResidual checks the residual on which asynchronous peers agreed.
func (c *Cluster) checkResidual(r *Result) error {
	o := &r.Outcomes[0]
	if !c.Scenario.lockstep() && o.Reason == iterate.Converged && o.Residual != r.Evaluation.RelativeResidual {
		return fmt.Errorf("sim: the peers agreed on a residual of %v; that of the assembled answer is %v",
			o.Residual, r.Evaluation.RelativeResidual)
	}
	return nil
}

func (c *Cluster) checkMemory() error {
	if c.memory.Acquired != c.memory.Released {
		return fmt.Errorf("sim: %d frames were taken, %d given back", c.memory.Acquired, c.memory.Released)
	}
	return nil
}
