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
	guardBetween         guardPhase = iota // two cycles
	guardStart                             // the full multigrid start
	guardCycle                             // a cycle, measured at its end
	guardEvaluate                          // the total of its residual is awaited
	guardEnergy                            // the change of the energy is measured
	guardDecide                            // its total is awaited
	guardMeasureFraction                   // the change of the energy of half the step is measured
	guardFraction                          // its total is awaited
	guardTakeFraction                      // a part of the step is taken, and measured
	guardTaken                             // the total is awaited
	guardSweep                             // relaxation instead of the cycle
	guardMeasureSweeps                     // measured
	guardRelaxed                           // the total is awaited
	guardStopCheck                         // between two relaxations, at whether the run is to end early
	guardStopped                           // it is
)

// next is the next stage of the cycle in progress; see whole.
func (m *multigrid) next(iterate.Iteration) *stage {
	for {
		if m.stopped && m.phase != guardStopped {
			m.abandonCycle()
		}
		if m.at < len(m.list) {
			m.at++
			return &m.list[m.at-1]
		}
		switch m.phase {
		case guardBetween:
			m.cost, m.atReference = 0, false
			if m.first {
				m.first = false
				m.guard.Begin(residualOf(m.squares), !m.warm && m.plan.hierarchy.Coarsest() > 0)
			}
			if m.warm || len(m.start) == 0 {
				m.enter(guardCycle, m.cycle, m.cycleWork)
			} else {
				m.enter(guardStart, m.start, m.startWork)
			}
			m.warm = true
		case guardStart:
			m.enter(guardCycle, m.cycle, m.cycleWork)
		case guardCycle:
			m.reduce(guardEvaluate, m.collect())
		case guardEnergy:
			m.reduce(guardDecide, m.collectEnergy())
		case guardMeasureFraction:
			m.reduce(guardFraction, m.collectEnergy())
		case guardTakeFraction:
			m.reduce(guardTaken, m.collect())
		case guardSweep:
			switch {
			case m.sinceStopCheck > 0 && float64(m.sinceStopCheck) >= stopCheckInterval(&m.peer.config):
				m.sinceStopCheck = 0
				m.enter(guardStopCheck, m.stopStages, 0)
			case m.relaxes():
				m.enter(guardSweep, m.fallback.sweep, 1)
			default:
				m.enter(guardMeasureSweeps, m.fallback.measure, 1)
			}
		case guardStopCheck:
			m.phase = guardSweep
		case guardStopped:
			m.phase, m.list, m.at = guardBetween, nil, 0
			return nil
		case guardMeasureSweeps:
			m.reduce(guardRelaxed, m.collect())
		default:
			if m.applyReduction() {
				m.phase, m.list, m.at = guardBetween, nil, 0
				return nil
			}
		}
	}
}

// change merges and empties what the pieces measured of the change of the energy.
func (m *multigrid) collectEnergy() kernel.Sum {
	var sum kernel.Sum
	for i := range m.changes {
		sum.Merge(&m.changes[i])
		m.changes[i] = kernel.Sum{}
	}
	return sum
}

func (m *multigrid) enter(p guardPhase, list []stage, work float64) {
	m.phase, m.list, m.at = p, list, 0
	m.cost += work
}

// offer gives a sum to the total, for which phase p waits.
func (m *multigrid) reduce(p guardPhase, sum kernel.Sum) {
	m.peer.allReduce.sums[0] = sum
	m.peer.allReduce.contribute(1)
	m.enter(p, m.awaitReduction, 0)
}

// decide takes a total, and tells whether the cycle is complete.
func (m *multigrid) applyReduction() bool {
	v := m.peer.allReduce.values[0]
	verdict := method.Accepted
	switch m.phase {
	case guardRelaxed:
		m.squares = v
		m.guard.AcceptRelaxed(math.Sqrt(v))
		return true
	case guardTaken:
		m.squares = v
		m.guard.AcceptDamped(math.Sqrt(v))
		return true
	case guardFraction:
		verdict = method.Rejected
		if m.stepFraction = m.guard.StepFraction(v); m.stepFraction > 0 {
			m.enter(guardTakeFraction, m.takeFraction, 1)
			return false
		}
	case guardEvaluate:
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
			m.stepFraction = 0.5
			m.enter(guardMeasureFraction, m.measureFraction, 2)
			return false
		}
	}
	switch verdict {
	case method.Undecided:
		m.enter(guardEnergy, m.energy, 2)
	case method.StartRejected:
		m.enter(guardCycle, m.restartCycle, m.cycleWork)
	case method.Rejected:
		m.sweeps, m.sinceStopCheck = m.guard.Sweeps(), 0
		m.stopped, m.restores = m.peer.stopRequested() != iterate.Running, true
		m.enter(guardSweep, m.fallback.restore, 0)
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
