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
	going  bool
	newest Iteration
	heard  int // children
}

// mayHalt reports whether the root has to begin an early end: one was asked for, the run
// does not end anyway, and the residual of iterate 0 is known.
func (e *lockstepRule) mayHalt() bool {
	return e.p.StopReason != Running && e.Reason == Running && !e.halt.going && !math.IsNaN(e.norm0)
}

// begin sends halt to the subtree.
func (e *lockstepRule) begin() {
	e.halt = halting{going: true, newest: e.p.Source.Halt()}
	e.p.SendChildren(&Message{Kind: msgHalt})
	e.settle()
}

// settle goes on once the whole subtree has reported.
func (e *lockstepRule) settle() {
	if e.halt.heard < len(e.p.Tree.Children) || e.p.SendParent(&Message{Kind: msgReach, Iterate: e.halt.newest}) {
		return
	}
	e.end(&Message{Kind: msgLast, Reason: e.p.StopReason, Iterate: e.halt.newest})
}

// end takes the last iterate and passes it on.
func (e *lockstepRule) end(m *Message) {
	e.p.SendChildren(m)
	e.Reason, e.last, e.none, e.halt.going = m.Reason, m.Iterate, true, false
}

// halted takes the messages of an early end.
func (e *lockstepRule) halted(m *Message) error {
	switch {
	case m.Kind == msgHalt && e.Reason == Running && !e.halt.going:
		e.begin()
	case m.Kind == msgHalt: // a duplicate, or the run ends anyway
	case !e.halt.going:
		return fmt.Errorf("kind %d, while no early end was asked for", m.Kind)
	case m.Kind == msgReach:
		e.halt.newest = max(e.halt.newest, m.Iterate)
		e.halt.heard++
		e.settle()
	case m.Reason == Running || m.Reason == Converged || m.Iterate < e.p.Iterate:
		return fmt.Errorf("an early end at iterate %d for reason %d, while this peer is at %d", m.Iterate, m.Reason, e.p.Iterate)
	default:
		e.end(m)
	}
	return nil
}
