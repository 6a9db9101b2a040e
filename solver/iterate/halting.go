package iterate

import (
	"fmt"
	"math"
)

// halting ends a run in lockstep early, at one iterate for all: the root sends halt down the
// tree, every peer finishes the relaxation that it has begun, begins no other, and reports
// the iterate that it makes. All end at the newest of these. A peer is ahead of another by
// at most as many iterates as there are faces between them, mostly by none or one, so this
// takes a relaxation or two, whatever the interval of checks. It costs nothing before.
type halting struct {
	active   bool
	newest   Iteration
	reported int // children
}

// mayHalt reports whether the root has to begin an early end: one was asked for, the run
// does not end anyway, and the residual of iterate 0 is known.
func (e *lockstepRule) shouldHalt() bool {
	return e.p.stopReason != Running && e.reason == Running && !e.halt.active && !math.IsNaN(e.norm0)
}

// begin sends halt to the subtree.
func (e *lockstepRule) beginHalt() {
	e.halt = halting{active: true, newest: e.p.Source.Halt()}
	e.p.SendChildren(&Message{Kind: MsgHalt})
	e.reportHalt()
}

// settle goes on once the whole subtree has reported.
func (e *lockstepRule) reportHalt() {
	if e.halt.reported < len(e.p.Tree.Children) || e.p.SendParent(&Message{Kind: MsgReach, Iterate: e.halt.newest}) {
		return
	}
	e.endAt(&Message{Kind: MsgLast, Reason: e.p.stopReason, Iterate: e.halt.newest})
}

// end takes the last iterate and passes it on.
func (e *lockstepRule) endAt(m *Message) {
	e.p.SendChildren(m)
	e.reason, e.last, e.noCheckLeft, e.halt.active = m.Reason, m.Iterate, true, false
}

// halted takes the messages of an early end.
func (e *lockstepRule) receiveHalt(m *Message) error {
	switch {
	case m.Kind == MsgHalt && e.reason == Running && !e.halt.active:
		e.beginHalt()
	case m.Kind == MsgHalt: // a duplicate, or the run ends anyway
	case !e.halt.active:
		return fmt.Errorf("kind %d, while no early end was asked for", m.Kind)
	case m.Kind == MsgReach:
		e.halt.newest = max(e.halt.newest, m.Iterate)
		e.halt.reported++
		e.reportHalt()
	case m.Reason == Running || m.Reason == Converged || m.Iterate < e.p.Iterate:
		return fmt.Errorf("an early end at iterate %d for reason %d, while this peer is at %d", m.Iterate, m.Reason, e.p.Iterate)
	default:
		e.endAt(m)
	}
	return nil
}
