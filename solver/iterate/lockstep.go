package iterate

import (
	"fmt"
	"slices"

	"github.com/p2pdc/p2pdc/internal/kernel"
)

// lockstepRule ends a run in lockstep. At every CheckEvery-th iterate k a reduction is made over the
// tree, and its verdict takes effect at iterate k + Lag at every peer, as in
// richardson.SolveSequential. A peer that reaches that iterate earlier waits for the verdict. At most one
// check is open at a time because Lag ≤ CheckEvery. The schedule determines which checks measure a
// residual; all do if CheckEvery was set.
//
// Over sessions that may lose messages (delay:0), a peer at the last iterate repeats its halos until all
// peers have reached that iterate. A second reduction over the tree determines when.
type lockstepRule struct {
	verdicts
	check       Iteration // iterate of the open or the next check
	noCheckLeft bool
	measureFrom Iteration // checks from this iterate on measure
	last        Iteration // last iterate, valid unless reason is Running

	halt halting
	keep lockstepKeep

	finished     []bool
	sentFinished bool
	closed       bool
}

func newLockstepRule(p *Coordination) *lockstepRule {
	e := &lockstepRule{verdicts: newVerdicts(p), finished: make([]bool, len(p.Tree.Children))}
	e.keep.clock.Every, e.keep.kept = p.Config.KeepEvery, make([]bool, len(p.Tree.Children))
	if p.Config.Peers == 1 {
		e.keep.clock.Every = 0 // there is no other peer
	}
	if p.Config.State != nil {
		p.Fault = e.restore(p.Config.State)
	}
	return e
}

func (e *lockstepRule) Over() bool { return false }

func (e *lockstepRule) Next() Action {
	k, r := e.p.Iterate, e.p.Checks
	if e.keep.ended { // this peer's own copy may have taken longer than those of its children
		e.keep.ended = false
		e.keep.clock.End(e.p.Now)
	}
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
	if e.keep.wanted && k == e.keep.at {
		if !e.keep.begun {
			e.beginKeep()
		}
		return ActionWait
	}
	if e.noCheckLeft || k < e.check {
		return ActionSweep
	}
	if !e.sums.ownAdded && !e.measures() {
		e.sums.ownAdded = true
		e.advance()
		return e.Next()
	}
	blocking := e.check == 0 || e.check == r.Max // no relaxation before the verdict
	switch {
	case e.sums.ownAdded && k >= r.Effect(e.check):
		return ActionWait
	case e.sums.ownAdded:
		return ActionSweep
	case blocking:
		return ActionMeasure
	}
	return ActionSweepMeasure
}

// FreeSweeps implements TerminationRule: no decision is made before the next check.
func (e *lockstepRule) FreeSweeps() Iteration {
	switch k := e.p.Iterate; {
	case e.reason != Running:
		return e.last - k
	case e.noCheckLeft || k >= e.check:
		return 1
	case e.keep.wanted && k < e.keep.at:
		return e.keep.at - k
	default:
		return e.check - k
	}
}

// measures reports whether the open check measures the residual.
func (e *lockstepRule) measures() bool {
	return e.check >= e.measureFrom || e.check == e.p.Checks.Max
}

// finish returns the next action at the last iterate.
func (e *lockstepRule) finish() Action {
	lossy := e.p.Config.Scheme.Asynchronous() && len(e.p.Channels) > 0
	if !lossy || e.closed {
		return ActionDone
	}
	if !e.sentFinished && !slices.Contains(e.finished, false) {
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
	e.addOwn(residual, e.check == 0)
	e.advance()
}

// advance sends the sums of the check to the parent when they are complete. The root decides.
func (e *lockstepRule) advance() {
	if !e.sums.complete() {
		return
	}
	up := e.sums.message(uint64(e.check))
	if e.p.SendParent(&up) || e.halt.active {
		return // an early end needs no verdict
	}
	if e.check == 0 {
		e.norm0 = e.p.Config.Reference(Norm(&e.sums.start))
	}
	m := Message{Kind: MsgVerdict, Number: uint64(e.check), A: e.residual, B: e.norm0, Iterate: e.measureFrom}
	if reduced := e.wantsMagnitudes; e.measures() {
		r, tol := e.p.Checks, e.p.Config.Tolerance
		m.A, m.Reason = r.Evaluate(e.check, Norm(&e.sums.squares), e.norm0, tol)
		m.Iterate = e.schedule.Next(r, e.check, m.A, tol)
		if e.wantsMagnitudes = false; m.Reason == Running {
			magnitude := Norm(&e.sums.start) / e.norm0
			m.Reason, e.wantsMagnitudes = e.stagnant.Evaluate(e.check, e.p.work(e.check), m.A, tol,
				StagnantChecks, reduced, magnitude)
		}
	}
	if e.wantsMagnitudes {
		m.Mark = MarkMagnitudes
	}
	if m.Reason == Running && !e.keep.wanted && e.keep.clock.Due(e.p.Now) {
		m.Mark |= MarkKeep
	}
	e.verdict(&m)
}

// verdict applies the verdict on the open check and forwards it.
func (e *lockstepRule) verdict(m *Message) {
	e.p.SendChildren(m)
	e.residual, e.norm0 = m.A, m.B
	e.p.Best.Measured(e.check, m.A)
	e.measureFrom = m.Iterate
	e.wantsMagnitudes = m.Mark&MarkMagnitudes != 0
	if m.Mark&MarkKeep != 0 {
		e.keep.wanted, e.keep.at = true, e.p.Checks.Effect(e.check)
	}
	if m.Reason != Running {
		e.reason, e.last = m.Reason, e.p.Checks.Effect(e.check)
		e.noCheckLeft = true
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
		added, err := e.addChild(q, m, "iterate", uint64(e.check), e.noCheckLeft)
		if added {
			e.advance()
		}
		return err
	case MsgVerdict:
		if e.noCheckLeft {
			return nil // a duplicate
		}
		valid, err := e.checkVerdict(m, "iterate", uint64(e.check), false)
		if valid {
			e.verdict(m)
		}
		return err
	case MsgHalt, MsgReach, MsgLast:
		return e.receiveHalt(m)
	case MsgKept, MsgKeptAll:
		return e.receiveKeep(c, m)
	case MsgFinished:
		e.finished[e.p.Tree.Child(q)] = true
	case MsgClose:
		if !e.closed {
			if !e.sentFinished {
				return fmt.Errorf("a close message before this peer has finished")
			}
			e.sendClose()
		}
	default:
		return fmt.Errorf("message kind %d, which a run in lockstep does not use", m.Kind)
	}
	return nil
}

// stopRequested implements TerminationRule: the early end begins at once.
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

// Accepted implements TerminationRule: the verdict on iterate k arrives while a later iterate is computed.
func (e *lockstepRule) Accepted() (Iteration, bool) { return e.check, e.reason == Converged }
