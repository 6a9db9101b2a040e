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
	p           *Coordination
	check       Iteration     // open or next to come
	noCheckLeft bool          // no check is left
	measureFrom Iteration     // checks from here on measure
	schedule    CheckSchedule // root
	sums        reduction     // of the check; check 0 also of the reference vector

	wantsMagnitudes bool       // the next check that measures brings magnitudes
	stagnant        Stagnation // root

	magnitudes kernel.Sum // the own ones
	norm0      float64    // ‖r(u⁰)‖, known after check 0
	residual   float64
	reason     Reason
	last       Iteration // valid once reason is not Running

	halt halting

	finished      []bool
	finishedCount int
	sentFinished  bool
	closed        bool
}

func newLockstepRule(p *Coordination) *lockstepRule {
	n := len(p.Tree.Children)
	return &lockstepRule{p: p, sums: newReduction(n), finished: make([]bool, n), residual: UnknownResidual(), norm0: UnknownResidual()}
}

func (e *lockstepRule) Over() bool { return false }

func (e *lockstepRule) Next() Action {
	k, r := e.p.Iterate, e.p.Checks
	if e.reason != Running && k == e.last {
		return e.finish()
	}
	if e.halt.active {
		return ActionWait
	}
	if e.shouldHalt() {
		e.beginHalt()
		return e.Next()
	}
	if e.noCheckLeft || k < e.check {
		return ActionSweep
	}
	if !e.sums.ownAdded && !e.measures() {
		e.sums.ownAdded = true
		e.advance()
		return e.Next()
	}
	alone := e.check == 0 || e.check == r.Max // nothing is relaxed before the verdict
	switch {
	case e.sums.ownAdded && k >= r.Effect(e.check):
		return ActionWait
	case e.sums.ownAdded:
		return ActionSweep
	case alone:
		return ActionMeasure
	}
	return ActionSweepMeasure
}

// FreeSweeps implements TerminationRule: a peer alone decides its checks where they are made.
func (e *lockstepRule) FreeSweeps() Iteration {
	switch k := e.p.Iterate; {
	case e.reason != Running:
		return e.last - k
	case e.noCheckLeft || k >= e.check:
		return 1
	default:
		return e.check - k
	}
}

// measures tells whether the open check is one with a residual.
func (e *lockstepRule) measures() bool {
	return e.check >= e.measureFrom || e.check == e.p.Checks.Max
}

// close is the gate at the last iterate.
func (e *lockstepRule) finish() Action {
	lossy := e.p.Config.Scheme.Asynchronous() && len(e.p.Channels) > 0
	if !lossy || e.closed {
		return ActionDone
	}
	if e.finishedCount == len(e.finished) && !e.sentFinished {
		e.sentFinished = true
		if !e.p.SendParent(&Message{Kind: MsgFinished}) {
			e.sendClose()
			return ActionDone
		}
	}
	return ActionWait
}

func (e *lockstepRule) sendClose() {
	e.closed = true
	e.p.SendChildren(&Message{Kind: MsgClose})
}

func (e *lockstepRule) Measured(residual *kernel.Sum) {
	var second *kernel.Sum
	switch {
	case e.check == 0:
		second = &e.p.Reference
	case e.wantsMagnitudes:
		e.magnitudes = e.p.Source.Magnitudes()
		second = &e.magnitudes
	}
	e.sums.addOwn(residual, second)
	e.advance()
}

// advance passes the check's sums up once they are complete; the root decides.
func (e *lockstepRule) advance() {
	if !e.sums.complete() {
		return
	}
	up := e.sums.message(uint64(e.check))
	if e.p.SendParent(&up) || e.halt.active {
		return // an early end takes no verdict
	}
	if e.check == 0 {
		e.norm0 = e.p.Config.Reference(Norm(&e.sums.start))
	}
	m := Message{Kind: MsgVerdict, Number: uint64(e.check), A: e.residual, B: e.norm0, Iterate: e.measureFrom}
	if asked := e.wantsMagnitudes; e.measures() {
		r, tol := e.p.Checks, e.p.Config.Tolerance
		m.A, m.Reason = r.Evaluate(e.check, Norm(&e.sums.squares), e.norm0, tol)
		m.Iterate = e.schedule.Next(r, e.check, m.A, tol)
		if e.wantsMagnitudes = false; m.Reason == Running {
			m.Reason, e.wantsMagnitudes = e.stagnant.Evaluate(e.check, m.A, e.p.Config.Tolerance, StagnantChecks, asked, Norm(&e.sums.start)/e.norm0)
		}
	}
	if e.wantsMagnitudes {
		m.Mark = 1
	}
	e.verdict(&m)
}

// verdict takes a verdict on the open check and passes it on.
func (e *lockstepRule) verdict(m *Message) {
	e.p.SendChildren(m)
	e.residual, e.norm0, e.measureFrom, e.wantsMagnitudes = m.A, m.B, m.Iterate, m.Mark == 1
	if m.Reason != Running {
		e.reason, e.last, e.noCheckLeft = m.Reason, e.p.Checks.Effect(e.check), true
		return
	}
	e.noCheckLeft = e.check == e.p.Checks.Max && e.check > 0
	e.check = e.p.Checks.After(e.check)
	e.sums.reset()
}

func (e *lockstepRule) receive(c *Channel, m *Message) error {
	q := c.Rank
	switch m.Kind {
	case MsgResidual:
		return e.residualFrom(q, m)
	case MsgVerdict:
		return e.verdictFrom(m)
	case MsgHalt, MsgReach, MsgLast:
		return e.receiveHalt(m)
	case MsgFinished:
		if i := e.p.Tree.Child(q); !e.finished[i] {
			e.finished[i] = true
			e.finishedCount++
		}
	case MsgClose:
		if !e.closed {
			if !e.sentFinished {
				return fmt.Errorf("a close before this peer had finished")
			}
			e.sendClose()
		}
	default:
		return fmt.Errorf("kind %d, which a run in lockstep does not use", m.Kind)
	}
	return nil
}

func (e *lockstepRule) residualFrom(q Rank, m *Message) error {
	i := e.p.Tree.Child(q)
	switch {
	case m.Number < uint64(e.check), m.Number == uint64(e.check) && (e.noCheckLeft || e.sums.added[i]):
		return nil // a duplicate
	case m.Number > uint64(e.check):
		return fmt.Errorf("the residual of iterate %d while that of %d is due", m.Number, e.check)
	}
	e.sums.addChild(i, m)
	e.advance()
	return nil
}

func (e *lockstepRule) verdictFrom(m *Message) error {
	switch {
	case m.Number < uint64(e.check) || e.noCheckLeft:
		return nil // a duplicate
	case m.Number > uint64(e.check), !e.sums.complete():
		return fmt.Errorf("a verdict on iterate %d, whose residual is not complete here", m.Number)
	}
	e.verdict(m)
	return nil
}

// StopRequested begins the early end at once.
func (e *lockstepRule) stopRequested() {
	if e.shouldHalt() {
		e.beginHalt()
	}
}

func (e *lockstepRule) SkipSend(label Iteration) bool {
	return e.reason != Running && label == e.last
}

func (e *lockstepRule) Outcome(o *Outcome) {
	o.Reason, o.Residual = e.reason, e.residual
}

func (e *lockstepRule) progress() float64 { return e.residual }

// Accepted implements TerminationRule: the verdict on iterate k arrives while a later one is made.
func (e *lockstepRule) Accepted() (Iteration, bool) { return e.check, e.reason == Converged }
