package sim

import (
	"math"
	"math/rand/v2"

	"github.com/p2pdc/p2pdc/solver/iterate"
	"github.com/p2pdc/p2pdc/solver/problem"
	"github.com/p2pdc/p2pdc/solver/richardson"
)

// drawLevels gives some runs in lockstep a method of the whole grid. It draws after everything else,
// so that the other draws of a seed stay.
func drawLevels(r *rand.Rand, s *Scenario) {
	if !chance(r, 0.5) || !s.Scheme.Lockstep() || s.Method.Name == problem.Schwarz {
		return
	}
	s.Method = problem.MethodConfig{Name: pick(r, problem.SOR, problem.Multigrid)}
	if chance(r, 0.3) {
		s.Method.Omega = 1 + 0.7*r.Float64()
	}
	s.Method.Cycle = pick(r, "", "v", "w")
	s.Order, s.Balance = problem.Jacobi, false
}

// ofGrid reports whether the method is one of the whole grid. Then the reference is a run of one
// peer.
func (s *Scenario) ofGrid() bool {
	return s.Method.Name == problem.SOR || s.Method.Name == problem.Multigrid
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
