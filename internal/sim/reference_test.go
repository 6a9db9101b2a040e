package sim

import (
	"errors"
	"fmt"
	"math"

	"github.com/p2pdc/p2pdc/internal/virtual"
	"github.com/p2pdc/p2pdc/solver"
	"github.com/p2pdc/p2pdc/solver/iterate"
	"github.com/p2pdc/p2pdc/solver/iterate/iteratetest"
	"github.com/p2pdc/p2pdc/solver/problem"
	"github.com/p2pdc/p2pdc/solver/richardson"
	"github.com/p2pdc/p2pdc/solver/verify"
)

// playAndCheck runs a scenario and checks its outcome.
func playAndCheck(s *Scenario) (*Result, error) {
	c, err := New(s)
	if err != nil {
		return nil, err
	}
	return c.runAndCheck()
}

// runAndCheck runs a scenario. Beside what Check checks, the answer must be the sequential one, bit
// by bit if the scheme promises it, and the peers' boxes must cover the grid.
func (c *Cluster) runAndCheck() (*Result, error) {
	ends := &stepEnds{c: c}
	c.stepped = ends.add
	if err := c.Run(); err != nil {
		return nil, err
	}
	r := c.result()
	if err := c.checkCover(); err != nil {
		return r, err
	}
	var err error
	if c.Scenario.Problem.Steps() > 0 {
		err = ends.check(r)
	} else if r.Evaluation, err = verify.Evaluate(c.Scenario.Problem, r.U, nil); err == nil {
		err = c.checkAnswer(r)
	}
	return r, errors.Join(err, c.checkReasons(r), c.checkMemory())
}

// rounding bounds the rounding errors of the bounds for vectors of size 1, which are computed from
// rounded residuals.
const rounding = 1e-13

// checkAnswer compares the answer with that of the sequential method: its bits, if the scheme
// determines them, otherwise within the bounds that both residuals give.
func (c *Cluster) checkAnswer(r *Result) error {
	s := c.Scenario
	if s.lockstep() {
		return c.checkBits(r)
	}
	if err := c.checkResidual(r); err != nil || r.Outcomes[0].Reason != iterate.Converged {
		return err
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

// alone returns the run of one peer, as far as an interrupted run came.
func (s *Scenario) alone(o *iterate.Outcome) (richardson.Sequence, error) {
	t := *s
	t.Partition = problem.Partition{}
	for a, n := range s.Problem.N {
		t.Partition.Cuts[a] = []int{0, n}
	}
	if o.Reason == iterate.Interrupted {
		if t.MaxSweeps = o.Sweeps; o.Sweeps == 0 {
			t.Tolerance = math.MaxFloat64
		}
	}
	return t.emulate()
}

// emulate runs the partition in one process without a transport. In the order in-turn it is the
// reference of synchronous runs, since there the answer depends on the partition.
func (s *Scenario) emulate() (richardson.Sequence, error) {
	workers, peers := make([]problem.Peer, s.Peers()), make([]iterate.Peer, s.Peers())
	for r := range workers {
		c := s.config(iterate.Rank(r), nil)
		c.Scheme = iterate.Synchronous()
		w, err := solver.New(c)
		if err != nil {
			return richardson.Sequence{}, err
		}
		workers[r], peers[r] = w, w
	}
	if err := iteratetest.NewNetwork(s.Seed, iterate.Synchronous(), peers).Run(); err != nil {
		return richardson.Sequence{}, fmt.Errorf("sim: emulation of %v: %w", s.Partition.Cuts, err)
	}
	out := richardson.Sequence{U: make([]float64, s.Problem.Points())}
	for _, w := range workers {
		v := make([]float64, w.Box().Points())
		w.Solution(v)
		virtual.Place(out.U, s.Problem.N, w.Box(), v)
	}
	o := workers[0].Outcome()
	out.Sweeps, out.Residual = o.Sweeps, o.Residual
	out.Reason = o.Reason
	return out, nil
}

// checkCover checks that the peers' boxes cover the grid exactly, and within the bounds on moved
// planes.
func (c *Cluster) checkCover() error {
	s := c.Scenario
	sent, received := 0, 0
	for _, p := range c.peers {
		o := p.worker.Outcome()
		sent, received = sent+o.PlanesSent, received+o.PlanesReceived
	}
	if sent != received || sent > 0 && !s.Balance {
		return fmt.Errorf("sim: %d planes were sent, %d received", sent, received)
	}
	slow := s.Problem.Dimension - 1
	if !s.Balance {
		slow = -1
	}
	for _, p := range c.peers {
		box, first := p.worker.Box(), s.Partition.Box(p.rank)
		if slow >= 0 {
			low, n := 0, box.Size()[slow]
			if p.rank > 0 {
				low = c.peers[p.rank-1].worker.Box().Hi[slow]
			}
			config := s.config(p.rank, nil)
			if most := richardson.MostPlanes(&config, p.rank); box.Lo[slow] != low || n < 1 || n > most ||
				int(p.rank) == s.Peers()-1 && box.Hi[slow] != s.Problem.N[slow] {
				return fmt.Errorf("sim: rank %d ends with planes %d to %d, the one below it at %d; it may have %d",
					p.rank, box.Lo[slow], box.Hi[slow], low, most)
			}
			box.Lo[slow], box.Hi[slow] = first.Lo[slow], first.Hi[slow]
		}
		if box != first {
			return fmt.Errorf("sim: rank %d ends with box %v instead of %v", p.rank, box, first)
		}
	}
	return nil
}
