package iterate

import (
	"fmt"

	"github.com/p2pdc/p2pdc/internal/kernel"
)

// lockstepEnd ends a run in which everyone is at the same iterate: at every
// CheckEvery-th iterate k a reduction goes over the tree, and the verdict takes
// effect at iterate k + Lag, everywhere and in SolveSequential alike. A peer that
// gets there before the verdict waits for it. At most one check is open at a time,
// because Lag ≤ CheckEvery. The reduction carries the residual of iterate k where
// the schedule says so (always, if CheckEvery was given).
//
// Over a lossy channel (delay:0) a peer at the last iterate goes on repeating its
// faces until all have got there, which a second round over the tree tells.
type lockstepRule struct {
	p        *Coordination
	Check    Iteration     // open or next to come
	none     bool          // no check is left
	due      Iteration     // checks from here on measure
	schedule CheckSchedule // root
	sums     reduction     // of the check; check 0 also of the reference vector

	asks     bool       // the next check that measures brings magnitudes
	stagnant Stagnation // root

	magnitudes kernel.Sum // the own ones
	norm0      float64    // ‖r(u⁰)‖, known after check 0
	residual   float64
	Reason     Reason
	last       Iteration // valid once reason is not Running

	halt halting

	finished      []bool
	finishedHeard int
	toldFinished  bool
	closed        bool
}

func newLockstepRule(p *Coordination) *lockstepRule {
	n := len(p.Tree.Children)
	return &lockstepRule{p: p, sums: newReduction(n), finished: make([]bool, n), residual: NotYet(), norm0: NotYet()}
}

func (e *lockstepRule) Over() bool { return false }

func (e *lockstepRule) Next() Action {
	k, r := e.p.Iterate, e.p.Checks
	if e.Reason != Running && k == e.last {
		return e.close()
	}
	if e.halt.going {
		return Wait
	}
	if e.mayHalt() {
		e.begin()
		return e.Next()
	}
	if e.none || k < e.Check {
		return Sweep
	}
	if !e.sums.own && !e.measures() {
		e.sums.own = true
		e.advance()
		return e.Next()
	}
	alone := e.Check == 0 || e.Check == r.Max // nothing is relaxed before the verdict
	switch {
	case e.sums.own && k >= r.Effect(e.Check):
		return Wait
	case e.sums.own:
		return Sweep
	case alone:
		return MeasureCurrent
	}
	return SweepMeasure
}

// FreeSweeps implements TerminationRule: a peer alone decides its checks where they are made.
func (e *lockstepRule) FreeSweeps() Iteration {
	switch k := e.p.Iterate; {
	case e.Reason != Running:
		return e.last - k
	case e.none || k >= e.Check:
		return 1
	default:
		return e.Check - k
	}
}

// measures tells whether the open check is one with a residual.
func (e *lockstepRule) measures() bool {
	return e.Check >= e.due || e.Check == e.p.Checks.Max
}

// close is the gate at the last iterate.
func (e *lockstepRule) close() Action {
	lossy := e.p.Config.Scheme.Asynchronous() && len(e.p.Channels) > 0
	if !lossy || e.closed {
		return Done
	}
	if e.finishedHeard == len(e.finished) && !e.toldFinished {
		e.toldFinished = true
		if !e.p.SendParent(&Message{Kind: msgFinished}) {
			e.shut()
			return Done
		}
	}
	return Wait
}

func (e *lockstepRule) shut() {
	e.closed = true
	e.p.SendChildren(&Message{Kind: MsgClose})
}

func (e *lockstepRule) Measured(residual *kernel.Sum) {
	var second *kernel.Sum
	switch {
	case e.Check == 0:
		second = &e.p.Reference
	case e.asks:
		e.magnitudes = e.p.Source.Magnitudes()
		second = &e.magnitudes
	}
	e.sums.share(residual, second)
	e.advance()
}

// advance passes the check's sums up once they are complete; the root decides.
func (e *lockstepRule) advance() {
	if !e.sums.complete() {
		return
	}
	up := e.sums.message(uint64(e.Check))
	if e.p.SendParent(&up) || e.halt.going {
		return // an early end takes no verdict
	}
	if e.Check == 0 {
		e.norm0 = e.p.Config.Reference(Norm(&e.sums.start))
	}
	m := Message{Kind: MsgVerdict, Number: uint64(e.Check), A: e.residual, B: e.norm0, Iterate: e.due}
	if asked := e.asks; e.measures() {
		r, tol := e.p.Checks, e.p.Config.Tolerance
		m.A, m.Reason = r.Judge(e.Check, Norm(&e.sums.squares), e.norm0, tol)
		m.Iterate = e.schedule.Next(r, e.Check, m.A, tol)
		if e.asks = false; m.Reason == Running {
			m.Reason, e.asks = e.stagnant.Judge(e.Check, m.A, e.p.Config.Tolerance, StagnantChecks, asked, Norm(&e.sums.start)/e.norm0)
		}
	}
	if e.asks {
		m.Mark = 1
	}
	e.verdict(&m)
}

// verdict takes a verdict on the open check and passes it on.
func (e *lockstepRule) verdict(m *Message) {
	e.p.SendChildren(m)
	e.residual, e.norm0, e.due, e.asks = m.A, m.B, m.Iterate, m.Mark == 1
	if m.Reason != Running {
		e.Reason, e.last, e.none = m.Reason, e.p.Checks.Effect(e.Check), true
		return
	}
	e.none = e.Check == e.p.Checks.Max && e.Check > 0
	e.Check = e.p.Checks.After(e.Check)
	e.sums.reset()
}

func (e *lockstepRule) Receive(c *Channel, m *Message) error {
	q := c.Rank
	switch m.Kind {
	case MsgResidual:
		return e.residualFrom(q, m)
	case MsgVerdict:
		return e.verdictFrom(m)
	case msgHalt, msgReach, msgLast:
		return e.halted(m)
	case msgFinished:
		if i := e.p.Tree.Child(q); !e.finished[i] {
			e.finished[i] = true
			e.finishedHeard++
		}
	case MsgClose:
		if !e.closed {
			if !e.toldFinished {
				return fmt.Errorf("a close before this peer had finished")
			}
			e.shut()
		}
	default:
		return fmt.Errorf("kind %d, which a run in lockstep does not use", m.Kind)
	}
	return nil
}

func (e *lockstepRule) residualFrom(q Rank, m *Message) error {
	i := e.p.Tree.Child(q)
	switch {
	case m.Number < uint64(e.Check), m.Number == uint64(e.Check) && (e.none || e.sums.children[i]):
		return nil // a duplicate
	case m.Number > uint64(e.Check):
		return fmt.Errorf("the residual of iterate %d while that of %d is due", m.Number, e.Check)
	}
	e.sums.hear(i, m)
	e.advance()
	return nil
}

func (e *lockstepRule) verdictFrom(m *Message) error {
	switch {
	case m.Number < uint64(e.Check) || e.none:
		return nil // a duplicate
	case m.Number > uint64(e.Check), !e.sums.complete():
		return fmt.Errorf("a verdict on iterate %d, whose residual is not complete here", m.Number)
	}
	e.verdict(m)
	return nil
}

// StopRequested begins the early end at once.
func (e *lockstepRule) StopRequested() {
	if e.mayHalt() {
		e.begin()
	}
}

func (e *lockstepRule) SkipSend(label Iteration) bool {
	return e.Reason != Running && label == e.last
}

func (e *lockstepRule) Outcome(o *Outcome) {
	o.Reason, o.Residual = e.Reason, e.residual
}

func (e *lockstepRule) Progress() float64 { return e.residual }

// Accepted implements TerminationRule: the verdict on iterate k arrives while a later one is made.
func (e *lockstepRule) Accepted() (Iteration, bool) { return e.Check, e.Reason == Converged }
