package multilevel

import (
	"math"

	"github.com/p2pdc/p2pdc/internal/kernel"
	"github.com/p2pdc/p2pdc/solver/iterate"
	"github.com/p2pdc/p2pdc/solver/method"
)

// guardPhase is the phase of a cycle under the safeguard.
type guardPhase int

const (
	guardBetween         guardPhase = iota // between two cycles
	guardStart                             // the full multigrid start
	guardCycle                             // a cycle, measured at its end
	guardEvaluate                          // waiting for the total of its residual
	guardEnergy                            // measuring the change of the energy
	guardDecide                            // waiting for its total
	guardMeasureFraction                   // measuring the change of the energy of half the step
	guardFraction                          // waiting for its total
	guardTakeFraction                      // taking and measuring a fraction of the step
	guardTaken                             // waiting for its total
	guardSweep                             // relaxing instead of the cycle
	guardMeasureSweeps                     // measuring after relaxation
	guardRelaxed                           // waiting for its total
	guardStopCheck                         // checking for an early end between two relaxations
	guardStopped                           // ending early
)

// freshStart is the relative residual of starting values beyond which the full multigrid start, which costs a fifth of
// a cycle, is better than to begin with them: after the loss of a peer before the first cycle is complete, for example.
const freshStart = 0.5

// startsAfresh reports whether multigrid ignores starting values of a relative residual.
func startsAfresh(relative float64) bool { return relative > freshStart }

// next returns the next stage of the cycle in progress (see globalMethod).
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
				residual := math.Sqrt(m.squared)
				if d := &m.peer.driver; m.warm && !m.continues && startsAfresh(iterate.Relative(residual, d.norm0)) {
					m.warm, residual = false, d.referenceNorm
				}
				m.continues = true
				if math.IsNaN(residual) {
					residual = math.Inf(1)
				}
				m.guard.Begin(residual, !m.warm && m.plan.hierarchy.Coarsest() > 0)
			}
			if m.warm {
				m.enter(guardCycle, m.cycle, m.cycleWork)
			} else {
				m.enter(guardStart, m.start, m.startWork)
			}
			m.warm = true
		case guardStart:
			m.enter(guardCycle, m.cycle, m.cycleWork)
		case guardCycle:
			m.reduce(guardEvaluate, m.squares())
		case guardEnergy:
			m.reduce(guardDecide, method.TakeSums(m.changes))
		case guardMeasureFraction:
			m.reduce(guardFraction, method.TakeSums(m.changes))
		case guardTakeFraction:
			m.reduce(guardTaken, m.squares())
		case guardSweep:
			switch {
			case m.sinceStopCheck > 0 && float64(m.sinceStopCheck) >= stopCheckInterval(&m.peer.config):
				m.sinceStopCheck = 0
				m.enter(guardStopCheck, m.stopStages, 0)
			case m.relaxes():
				m.enter(guardSweep, m.relaxation, 1)
			default:
				m.enter(guardMeasureSweeps, m.measureRelaxed, 1)
			}
		case guardStopCheck:
			m.phase = guardSweep
		case guardStopped:
			m.enter(guardBetween, nil, 0)
			return nil
		case guardMeasureSweeps:
			m.reduce(guardRelaxed, m.squares())
		default:
			if m.applyReduction() {
				m.enter(guardBetween, nil, 0)
				return nil
			}
		}
	}
}

func (m *multigrid) enter(p guardPhase, list []stage, work float64) {
	m.phase = p
	m.list = list
	m.at = 0
	m.cost += work
}

// reduce contributes a sum to a reduction, for which phase p waits.
func (m *multigrid) reduce(p guardPhase, sum kernel.Sum) {
	m.peer.allReduce.sums[0] = sum
	m.peer.allReduce.contribute(1)
	m.enter(p, m.awaitReduction, 0)
}

// applyReduction applies the total of a reduction and reports whether the cycle is complete.
func (m *multigrid) applyReduction() bool {
	v := m.peer.allReduce.values[0]
	verdict := method.Accepted
	switch m.phase {
	case guardRelaxed:
		m.squared = v
		m.guard.AcceptRelaxed(math.Sqrt(v))
		return true
	case guardTaken:
		m.squared = v
		m.guard.Accept(math.Sqrt(v))
		return true
	case guardFraction:
		verdict = method.Rejected
		if m.stepFraction = m.guard.StepFraction(v); m.stepFraction > 0 {
			m.enter(guardTakeFraction, m.takeFraction, 1)
			return false
		}
	case guardEvaluate:
		m.squared = v
		if m.plan.hierarchy.Coarsest() == 0 {
			return true
		}
		verdict = m.guard.Evaluate(math.Sqrt(v))
	case guardDecide:
		if math.IsNaN(v) {
			v = math.Inf(1)
		}
		verdict = m.guard.EvaluateEnergy(v, math.Sqrt(m.squared))
		if verdict == method.Rejected && m.guard.TryHalfStep(math.Sqrt(m.squared)) {
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
		m.enter(guardSweep, m.restore, 0)
	default:
		return true
	}
	return false
}
