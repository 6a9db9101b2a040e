package sim

import (
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/p2pdc/p2pdc/internal/virtual"
	"github.com/p2pdc/p2pdc/microproto"
	"github.com/p2pdc/p2pdc/p2psap"
	"github.com/p2pdc/p2pdc/solver/iterate"
	"github.com/p2pdc/p2pdc/solver/problem"
	"github.com/p2pdc/p2pdc/solver/richardson"
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
	Sent, Lost uint64 // data frames
	Reconnects uint64 // control connections made again
	Railed     uint64 // frames received by adapters
	Moves      uint64 // of sessions between rails
	Changes    uint64 // changes of mode at boundaries of time steps
	Planes     int    // planes moved between peers
}

// Play runs a scenario and checks its outcome.
func Play(s *Scenario, catalog *microproto.Catalog, policy p2psap.Policy) (*Result, error) {
	c, err := New(s, catalog, policy)
	if err != nil {
		return nil, err
	}
	if err := c.Run(); err != nil {
		return nil, err
	}
	return c.Check()
}

// Check checks a run that has ended. All ranks must give the same reason. The residual of the
// assembled answer must meet the tolerance. The answer must be the sequential one, bit by bit if the
// scheme promises it. All memory must have been returned.
func (c *Cluster) Check() (*Result, error) {
	s := c.Scenario
	r := &Result{Virtual: time.Duration(c.ended), Events: c.events, Railed: c.railed, Moves: c.moves, U: c.assemble()}
	for _, p := range c.peers {
		r.Outcomes = append(r.Outcomes, p.worker.Outcome())
		r.Points += p.points
		r.Planes += p.worker.Outcome().PlanesSent
		changes, _ := p.Exchange.Changes()
		r.Changes += uint64(changes)
		r.Reconnects += p.node.Counters().Reconnects
	}
	for _, l := range c.links {
		for end := range 2 {
			st := l.Stats(end)
			r.Sent += st.Sent
			r.Lost += st.Lost + st.Cut + st.Overflowed
		}
	}
	if err := c.checkCover(); err != nil {
		return r, err
	}
	var err error
	if s.Problem.Steps() > 0 {
		err = c.checkSteps(r)
		return r, errors.Join(err, c.checkReasons(r), c.checkMemory())
	}
	if r.Evaluation, err = verify.Evaluate(s.Problem, r.U, nil); err != nil {
		return r, err
	}
	return r, errors.Join(c.checkReasons(r), c.checkAnswer(r), c.checkMemory())
}

func (c *Cluster) assemble() []float64 {
	p := c.Scenario.Problem
	u := make([]float64, p.Points())
	for _, peer := range c.peers {
		box := peer.worker.Box()
		v := make([]float64, box.Points())
		peer.worker.Solution(v)
		virtual.Place(u, p.N, box, v)
	}
	return u
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
			return fmt.Errorf("sim: false termination: the residual of the assembled answer is %v, the tolerance %v, the "+
				"peers believe %v",
				r.Evaluation.RelativeResidual, s.Tolerance, r.Outcomes[0].Residual)
		}
	case reason == iterate.ReachedSweeps && s.MaxSweeps > 0:
	case reason == s.Stop.Why && s.Stop.At > 0:
	default:
		return fmt.Errorf("sim: the run ended because it %v, which nobody asked for", reason)
	}
	return nil
}

// lockstep reports whether the bits of the answer are determined: those of the sequential method, or
// of an emulation. They are not if measured times decide the amount of work.
func (s *Scenario) lockstep() bool {
	return s.Scheme.Lockstep() && !(s.Method.Name == problem.Schwarz && s.Method.InnerCycles == 0)
}

// rounding bounds the rounding errors of the bounds for vectors of size 1, which are computed from
// rounded residuals.
const rounding = 1e-13

func (c *Cluster) checkAnswer(r *Result) error {
	s := c.Scenario
	if !s.lockstep() && r.Outcomes[0].Residual != r.Evaluation.RelativeResidual &&
		r.Outcomes[0].Reason == iterate.Converged {
		return fmt.Errorf("sim: the peers agreed on a residual of %v; that of the assembled answer is %v",
			r.Outcomes[0].Residual, r.Evaluation.RelativeResidual)
	}
	if s.Large {
		return nil
	}
	if s.lockstep() {
		return c.checkBits(r)
	}
	if r.Outcomes[0].Reason != iterate.Converged {
		return nil
	}
	want, err := richardson.SolveSequential(s.Problem, problem.Jacobi, s.Tolerance, s.Every, s.Lag, 0)
	if err != nil {
		return err
	}
	ref, err := verify.Evaluate(s.Problem, want.U, nil)
	if err != nil {
		return err
	}
	// Both are within their bounds of the one discrete solution, but for rounding.
	bound := r.Evaluation.ErrorBound + ref.ErrorBound + rounding
	for i := range want.U {
		if d := math.Abs(want.U[i] - r.U[i]); d > bound {
			return fmt.Errorf("sim: value %d is %v from the sequential one; the residuals allow %v", i, d, bound)
		}
	}
	return nil
}

// checkBits compares with the sequential method. For the order in-turn and for the Schwarz method it
// compares with an emulation of the same partition in one process.
func (c *Cluster) checkBits(r *Result) error {
	want, err := c.Scenario.reference(&r.Outcomes[0])
	if err != nil {
		return err
	}
	for rank, o := range r.Outcomes {
		same := o.Reason == want.Reason && o.Residual == want.Residual || o.Reason == iterate.Interrupted
		if !same || o.Sweeps != want.Sweeps {
			return fmt.Errorf("sim: rank %d ended because it %v after %d sweeps with %v; sequentially it %v after %d with %v",
				rank, o.Reason, o.Sweeps, o.Residual, want.Reason, want.Sweeps, want.Residual)
		}
	}
	if c.Scenario.Method.Name == problem.Schwarz && r.Outcomes[0].Reason == iterate.Interrupted {
		return nil // an early end cuts the last local solves short, by a different amount on each peer
	}
	for i := range want.U {
		if math.Float64bits(want.U[i]) != math.Float64bits(r.U[i]) {
			return fmt.Errorf("sim: value %d is %v, sequentially %v: the bits differ", i, r.U[i], want.U[i])
		}
	}
	return nil
}

// reference returns the sequential run: to its own end, or as far as an interrupted run came.
func (s *Scenario) reference(o *iterate.Outcome) (richardson.Sequence, error) {
	if s.ofGrid() {
		return s.alone(o)
	}
	t := *s
	if o.Reason == iterate.Interrupted {
		t.Tolerance, t.MaxSweeps = 0, o.Sweeps
		if o.Sweeps == 0 {
			t.Tolerance = math.MaxFloat64
		}
	}
	if t.Order == problem.InTurn && t.Peers() > 1 || t.Method.Name == problem.Schwarz {
		return t.emulate()
	}
	return richardson.SolveSequential(t.Problem, t.Order, t.Tolerance, t.Every, t.Lag, t.MaxSweeps)
}

func (c *Cluster) checkMemory() error {
	if c.memory.Acquired != c.memory.Released {
		return fmt.Errorf("sim: %d frames were taken, %d given back", c.memory.Acquired, c.memory.Released)
	}
	return nil
}
