package solver

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
type lockstepEnd struct {
	p        *party
	check    Iteration // open or next to come
	none     bool      // no check is left
	due      Iteration // checks from here on measure
	schedule schedule  // root
	sums     reduction // of the check; check 0 also of the reference vector

	asks     bool       // the next check that measures brings magnitudes
	stagnant stagnation // root

	magnitudes kernel.Sum // the own ones
	norm0      float64    // ‖r(u⁰)‖, known after check 0
	residual   float64
	reason     Reason
	last       Iteration // valid once reason is not Running

	halt halting

	finished      []bool
	finishedHeard int
	toldFinished  bool
	closed        bool
}

func newLockstepEnd(p *party) *lockstepEnd {
	n := len(p.tree.children)
	return &lockstepEnd{p: p, sums: newReduction(n), finished: make([]bool, n), residual: notYet(), norm0: notYet()}
}

func (e *lockstepEnd) over() bool { return false }

func (e *lockstepEnd) gate() gate {
	k, r := e.p.iterate, e.p.rhythm
	if e.reason != Running && k == e.last {
		return e.close()
	}
	if e.halt.going {
		return gateWait
	}
	if e.mayHalt() {
		e.begin()
		return e.gate()
	}
	if e.none || k < e.check {
		return gateSweep
	}
	if !e.sums.own && !e.measures() {
		e.sums.own = true
		e.advance()
		return e.gate()
	}
	alone := e.check == 0 || e.check == r.max // nothing is relaxed before the verdict
	switch {
	case e.sums.own && k >= r.effect(e.check):
		return gateWait
	case e.sums.own:
		return gateSweep
	case alone:
		return gateMeasureCurrent
	}
	return gateSweepMeasure
}

// patience: of one peer, whose checks are decided where they are made.
func (e *lockstepEnd) patience() Iteration {
	switch k := e.p.iterate; {
	case e.reason != Running:
		return e.last - k
	case e.none || k >= e.check:
		return 1
	default:
		return e.check - k
	}
}

// measures tells whether the open check is one with a residual.
func (e *lockstepEnd) measures() bool {
	return e.check >= e.due || e.check == e.p.rhythm.max
}

// close is the gate at the last iterate.
func (e *lockstepEnd) close() gate {
	lossy := e.p.run.Scheme.Asynchronous() && len(e.p.channels) > 0
	if !lossy || e.closed {
		return gateDone
	}
	if e.finishedHeard == len(e.finished) && !e.toldFinished {
		e.toldFinished = true
		if !e.p.tellParent(&message{kind: msgFinished}) {
			e.shut()
			return gateDone
		}
	}
	return gateWait
}

func (e *lockstepEnd) shut() {
	e.closed = true
	e.p.tellChildren(&message{kind: msgClose})
}

func (e *lockstepEnd) measured(residual *kernel.Sum) {
	var second *kernel.Sum
	switch {
	case e.check == 0:
		second = &e.p.reference
	case e.asks:
		e.magnitudes = e.p.subject.magnitudes()
		second = &e.magnitudes
	}
	e.sums.share(residual, second)
	e.advance()
}

// advance passes the check's sums up once they are complete; the root decides.
func (e *lockstepEnd) advance() {
	if !e.sums.complete() {
		return
	}
	up := e.sums.message(uint64(e.check))
	if e.p.tellParent(&up) || e.halt.going {
		return // an early end takes no verdict
	}
	if e.check == 0 {
		e.norm0 = e.p.run.Reference(norm(&e.sums.start))
	}
	m := message{kind: msgVerdict, number: uint64(e.check), a: e.residual, b: e.norm0, iterate: e.due}
	if asked := e.asks; e.measures() {
		r, tol := e.p.rhythm, e.p.run.Tolerance
		m.a, m.reason = r.judge(e.check, norm(&e.sums.squares), e.norm0, tol)
		m.iterate = e.schedule.next(r, e.check, m.a, tol)
		if e.asks = false; m.reason == Running {
			m.reason, e.asks = e.stagnant.judge(e.check, m.a, e.p.run.Tolerance, stagnantChecks, asked, norm(&e.sums.start)/e.norm0)
		}
	}
	if e.asks {
		m.mark = 1
	}
	e.verdict(&m)
}

// verdict takes a verdict on the open check and passes it on.
func (e *lockstepEnd) verdict(m *message) {
	e.p.tellChildren(m)
	e.residual, e.norm0, e.due, e.asks = m.a, m.b, m.iterate, m.mark == 1
	if m.reason != Running {
		e.reason, e.last, e.none = m.reason, e.p.rhythm.effect(e.check), true
		return
	}
	e.none = e.check == e.p.rhythm.max && e.check > 0
	e.check = e.p.rhythm.after(e.check)
	e.sums.reset()
}

func (e *lockstepEnd) agree(c *channel, m *message) error {
	q := c.rank
	switch m.kind {
	case msgResidual:
		return e.residualFrom(q, m)
	case msgVerdict:
		return e.verdictFrom(m)
	case msgHalt, msgReach, msgLast:
		return e.halted(m)
	case msgFinished:
		if i := e.p.tree.child(q); !e.finished[i] {
			e.finished[i] = true
			e.finishedHeard++
		}
	case msgClose:
		if !e.closed {
			if !e.toldFinished {
				return fmt.Errorf("a close before this peer had finished")
			}
			e.shut()
		}
	default:
		return fmt.Errorf("kind %d, which a run in lockstep does not use", m.kind)
	}
	return nil
}

func (e *lockstepEnd) residualFrom(q Rank, m *message) error {
	i := e.p.tree.child(q)
	switch {
	case m.number < uint64(e.check), m.number == uint64(e.check) && (e.none || e.sums.children[i]):
		return nil // a duplicate
	case m.number > uint64(e.check):
		return fmt.Errorf("the residual of iterate %d while that of %d is due", m.number, e.check)
	}
	e.sums.hear(i, m)
	e.advance()
	return nil
}

func (e *lockstepEnd) verdictFrom(m *message) error {
	switch {
	case m.number < uint64(e.check) || e.none:
		return nil // a duplicate
	case m.number > uint64(e.check), !e.sums.complete():
		return fmt.Errorf("a verdict on iterate %d, whose residual is not complete here", m.number)
	}
	e.verdict(m)
	return nil
}

// wished begins the early end at once.
func (e *lockstepEnd) wished() {
	if e.mayHalt() {
		e.begin()
	}
}

func (e *lockstepEnd) skipSend(label Iteration) bool {
	return e.reason != Running && label == e.last
}

func (e *lockstepEnd) outcome(o *Outcome) {
	o.Reason, o.Residual = e.reason, e.residual
}

func (e *lockstepEnd) progress() float64 { return e.residual }
