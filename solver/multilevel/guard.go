package multilevel

import (
	"math"

	"github.com/p2pdc/p2pdc/internal/kernel"
	"github.com/p2pdc/p2pdc/solver/iterate"
	"github.com/p2pdc/p2pdc/solver/method"
)

// guardPhase is where a cycle under the safeguard stands.
type guardPhase int

const (
	guardBetween guardPhase = iota // two cycles
	guardStart                     // the full multigrid start
	guardCycle                     // a cycle, measured at its end
	guardJudge                     // the total of its residual is awaited
	guardEnergy                    // the change of the energy is measured
	guardDecide                    // its total is awaited
	guardHalf                      // the change of the energy of half the step is measured
	guardPart                      // its total is awaited
	guardDamp                      // a part of the step is taken, and measured
	guardDamped                    // the total is awaited
	guardSweep                     // relaxation instead of the cycle
	guardBack                      // measured
	guardRelaxed                   // the total is awaited
	guardLook                      // between two relaxations, at whether the run is to end early
	guardStopped                   // it is
)

// next is the next stage of the cycle in progress; see whole.
func (m *multigrid) next(iterate.Iteration) *stage {
	for {
		if m.stopped && m.phase != guardStopped {
			m.leave()
		}
		if m.at < len(m.list) {
			m.at++
			return &m.list[m.at-1]
		}
		switch m.phase {
		case guardBetween:
			m.cost, m.cold = 0, false
			if m.first {
				m.first = false
				m.guard.Begin(residualOf(m.squares), !m.warm && m.plan.hierarchy.Coarsest() > 0)
			}
			if m.warm || len(m.start) == 0 {
				m.run(guardCycle, m.cycle, m.cycleWork)
			} else {
				m.run(guardStart, m.start, m.startWork)
			}
			m.warm = true
		case guardStart:
			m.run(guardCycle, m.cycle, m.cycleWork)
		case guardCycle:
			m.offer(guardJudge, m.collect())
		case guardEnergy:
			m.offer(guardDecide, m.change())
		case guardHalf:
			m.offer(guardPart, m.change())
		case guardDamp:
			m.offer(guardDamped, m.collect())
		case guardSweep:
			switch {
			case m.unseen > 0 && float64(m.unseen) >= lookEvery(&m.g.config):
				m.unseen = 0
				m.run(guardLook, m.between, 0)
			case m.relaxes():
				m.run(guardSweep, m.back.sweep, 1)
			default:
				m.run(guardBack, m.back.measure, 1)
			}
		case guardLook:
			m.phase = guardSweep
		case guardStopped:
			m.phase, m.list, m.at = guardBetween, nil, 0
			return nil
		case guardBack:
			m.offer(guardRelaxed, m.collect())
		default:
			if m.decide() {
				m.phase, m.list, m.at = guardBetween, nil, 0
				return nil
			}
		}
	}
}

// change merges and empties what the pieces measured of the change of the energy.
func (m *multigrid) change() kernel.Sum {
	var sum kernel.Sum
	for i := range m.changes {
		sum.Merge(&m.changes[i])
		m.changes[i] = kernel.Sum{}
	}
	return sum
}

func (m *multigrid) run(p guardPhase, list []stage, work float64) {
	m.phase, m.list, m.at = p, list, 0
	m.cost += work
}

// offer gives a sum to the total, for which phase p waits.
func (m *multigrid) offer(p guardPhase, sum kernel.Sum) {
	m.g.total.sums[0] = sum
	m.g.total.give(1)
	m.run(p, m.ask, 0)
}

// decide takes a total, and tells whether the cycle is complete.
func (m *multigrid) decide() bool {
	v := m.g.total.values[0]
	verdict := method.Accepted
	switch m.phase {
	case guardRelaxed:
		m.squares = v
		m.guard.AcceptRelaxed(math.Sqrt(v))
		return true
	case guardDamped:
		m.squares = v
		m.guard.AcceptDamped(math.Sqrt(v))
		return true
	case guardPart:
		verdict = method.Rejected
		if m.part = m.guard.StepFraction(v); m.part > 0 {
			m.run(guardDamp, m.damp, 1)
			return false
		}
	case guardJudge:
		m.squares = v
		if m.plan.hierarchy.Coarsest() == 0 {
			return true
		}
		verdict = m.guard.Evaluate(math.Sqrt(v))
	case guardDecide:
		if math.IsNaN(v) {
			v = math.Inf(1)
		}
		verdict = m.guard.EvaluateEnergy(v, math.Sqrt(m.squares))
		if verdict == method.Rejected && m.guard.TryHalfStep(math.Sqrt(m.squares)) {
			m.part = 0.5
			m.run(guardHalf, m.halve, 2)
			return false
		}
	}
	switch verdict {
	case method.Undecided:
		m.run(guardEnergy, m.energy, 2)
	case method.StartRejected:
		m.run(guardCycle, m.again, m.cycleWork)
	case method.Rejected:
		m.sweeps, m.unseen = m.guard.Sweeps(), 0
		m.stopped, m.takesBack = m.g.asked() != iterate.Running, true
		m.run(guardSweep, m.back.restore, 0)
	default:
		return true
	}
	return false
}

// residualOf is the residual that sums to these squares; +Inf where they are not known.
func residualOf(squares float64) float64 {
	if math.IsNaN(squares) {
		return math.Inf(1)
	}
	return math.Sqrt(squares)
}
