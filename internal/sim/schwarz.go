package sim

import (
	"fmt"
	"math/rand/v2"

	"github.com/p2pdc/p2pdc/solver/iterate"
	"github.com/p2pdc/p2pdc/solver/problem"
)

// drawSchwarz gives some runs the Schwarz method. It draws after everything else, so that the other
// draws of a seed stay.
func drawSchwarz(r *rand.Rand, s *Scenario) {
	if !chance(r, 0.3) {
		return
	}
	s.Method = problem.MethodConfig{
		Name:    problem.Schwarz,
		Local:   pick(r, problem.Richardson, problem.SOR, problem.Multigrid),
		Overlap: r.IntN(problem.MaxOverlap + 1),
		Work:    pick(r, 0, 1, 1, 2, 5),
		Coarse:  pick(r, -1, 0, 0, 8, 60),
	}
	if s.Scheme.Name() == iterate.Asynchronous().Name() {
		s.Method.Flexible = chance(r, 0.4)
	}
	s.Order, s.Balance = problem.Jacobi, false
	// A relaxation is many sweeps of a region larger than the box. With the drawn costs, virtual
	// time would pass with few events.
	for i := range s.Costs {
		s.Costs[i].Point = max(1, s.Costs[i].Point/relaxationSweeps)
	}
}

// relaxationSweeps is about the number of sweeps over its box that a peer's relaxation costs.
const relaxationSweeps = 10

// method describes the method.
func (s *Scenario) method() string {
	m := &s.Method
	switch {
	case s.ofGrid():
		return fmt.Sprintf("%s, omega %.3f, cycle %q", m.Name, m.Omega, m.Cycle)
	case m.Name != problem.Schwarz:
		return problem.Richardson
	}
	return fmt.Sprintf("schwarz of %s, overlap %d, work %d, coarse %d, flexible %v", m.Local, m.Overlap, m.Work, m.Coarse,
		m.Flexible)
}
