package iterate

import (
	"fmt"
	"math"
)

// halting ends a run in lockstep early and at the same iterate for all peers. The root sends halt down the
// tree. Every peer finishes the relaxation in progress, begins no other, and reports the iterate that it
// makes. All end at the newest reported iterate. The number of halo exchanges between two peers bounds the
// difference of their iterates, and it is mostly 0 or 1. So an early end takes one or two relaxations, for every
// interval of checks, and costs nothing before it is requested.
type halting struct {
	active   bool
	newest   Iteration // in the subtree
	reported int       // children that have reported
}

// shouldHalt reports whether the root has to begin an early end: it was requested, the run does not end
// anyway, and the residual of iterate 0 is known.
func (e *lockstepRule) shouldHalt() bool {
	return e.p.stopReason != Running && e.reason == Running && !e.halt.active && !math.IsNaN(e.norm0)
}

// beginHalt sends halt to the subtree.
func (e *lockstepRule) beginHalt() {
	e.halt = halting{active: true, newest: e.p.Source.Halt()}
	e.p.SendChildren(&Message{Kind: MsgHalt})
	e.reportHalt()
}

// reportHalt reports to the parent once the whole subtree has reported. The root ends the run.
func (e *lockstepRule) reportHalt() {
	if e.halt.reported < len(e.p.Tree.Children) || e.p.SendParent(&Message{Kind: MsgReach, Iterate: e.halt.newest}) {
		return
	}
	e.endAt(&Message{Kind: MsgLast, Reason: e.p.stopReason, Iterate: e.halt.newest})
}

// endAt sets the last iterate and forwards it.
func (e *lockstepRule) endAt(m *Message) {
	e.p.SendChildren(m)
	e.reason, e.last = m.Reason, m.Iterate
	e.noCheckLeft, e.halt.active = true, false
}

// receiveHalt handles the messages of an early end.
func (e *lockstepRule) receiveHalt(m *Message) error {
	switch {
	case m.Kind == MsgHalt && e.reason == Running && !e.halt.active:
		e.beginHalt()
	case m.Kind == MsgHalt: // a duplicate, or the run ends anyway
	case !e.halt.active:
		return fmt.Errorf("message kind %d without a request for an early end", m.Kind)
	case m.Kind == MsgReach:
		e.halt.newest = max(e.halt.newest, m.Iterate)
		e.halt.reported++
		e.reportHalt()
	case m.Reason == Running || m.Reason == Converged || m.Iterate < e.p.Iterate:
		return fmt.Errorf("an early end at iterate %d with reason %d; this peer is at iterate %d",
			m.Iterate, m.Reason, e.p.Iterate)
	default:
		e.endAt(m)
	}
	return nil
}
