package solver

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
func (e *lockstepEnd) mayHalt() bool {
	return e.p.wish != Running && e.reason == Running && !e.halt.going && !math.IsNaN(e.norm0)
}

// begin sends halt to the subtree.
func (e *lockstepEnd) begin() {
	e.halt = halting{going: true, newest: e.p.subject.halt()}
	e.p.tellChildren(&message{kind: msgHalt})
	e.settle()
}

// settle goes on once the whole subtree has reported.
func (e *lockstepEnd) settle() {
	if e.halt.heard < len(e.p.tree.children) || e.p.tellParent(&message{kind: msgReach, iterate: e.halt.newest}) {
		return
	}
	e.end(&message{kind: msgLast, reason: e.p.wish, iterate: e.halt.newest})
}

// end takes the last iterate and passes it on.
func (e *lockstepEnd) end(m *message) {
	e.p.tellChildren(m)
	e.reason, e.last, e.none, e.halt.going = m.reason, m.iterate, true, false
}

// halted takes the messages of an early end.
func (e *lockstepEnd) halted(m *message) error {
	switch {
	case m.kind == msgHalt && e.reason == Running && !e.halt.going:
		e.begin()
	case m.kind == msgHalt: // a duplicate, or the run ends anyway
	case !e.halt.going:
		return fmt.Errorf("kind %d, while no early end was asked for", m.kind)
	case m.kind == msgReach:
		e.halt.newest = max(e.halt.newest, m.iterate)
		e.halt.heard++
		e.settle()
	case m.reason == Running || m.reason == Converged || m.iterate < e.p.iterate:
		return fmt.Errorf("an early end at iterate %d for reason %d, while this peer is at %d", m.iterate, m.reason, e.p.iterate)
	default:
		e.end(m)
	}
	return nil
}
