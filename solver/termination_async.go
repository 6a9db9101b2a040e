package solver

import (
	"fmt"
	"math"

	"github.com/p2pdc/p2pdc/internal/kernel"
)

// snapshotEnd ends a run in which everyone is at an iterate of its own. Nobody's
// word that it has converged counts: values on their way can undo it. Peers tell
// guesses of their residual up the tree, which only decide when a snapshot is worth
// while. A snapshot freezes each peer's block, exchanges the frozen faces on the
// agreement sessions and reduces the exact residual of that assembled vector; if
// it meets the tolerance, that vector is the answer. The colouring of peers by the
// faces themselves is that of Chandy and Lamport (1985): a face of snapshot s is
// the word that s has begun.
//
// Snapshot 0 is of u⁰; nothing is relaxed before its verdict, so that every peer
// has seen a first face of each neighbour and a solved problem takes no sweep.
type snapshotEnd struct {
	p      *party
	number uint64    // of the last snapshot begun
	active bool      // begun, no verdict yet
	begun  bool      // snapshot 0 has been begun (its faces sent)
	sums   reduction // of the snapshot; snapshot 0 also of the reference vector
	asks   bool      // the next snapshot brings magnitudes

	magnitudes kernel.Sum // the own ones
	measure    bool       // the pass in progress measures the frozen block
	faces      []bool     // frozen faces that have come
	got        int
	norm0      float64 // NaN before the verdict on snapshot 0

	guess    guess
	schedule schedule
	due      Iteration // sweep that measures for the guess
	residual float64   // of the last verdict
	reason   Reason
	final    bool  // the snapshot was begun when all had made their last sweep
	shots    shots // root

	stagnant, quiet stagnation // root: by snapshots, by estimates
	quietAt         Iteration  // no snapshot before because of quiet
	quietNews       bool       // the root has measured since quiet was told
	pace            pace
}

func newSnapshotEnd(p *party) *snapshotEnd {
	n := len(p.tree.children)
	e := &snapshotEnd{
		p: p, active: true, faces: make([]bool, len(p.channels)), sums: newReduction(n),
		norm0: notYet(), residual: notYet(),
	}
	e.guess.init(n)
	for _, c := range p.channels {
		if c.agreed.data == nil {
			c.agreed.data = make([]byte, c.bytes)
		}
	}
	return e
}

func (e *snapshotEnd) over() bool { return e.reason != Running }

func (e *snapshotEnd) gate() gate {
	if e.over() {
		return gateDone
	}
	if !e.begun {
		e.begun = true
		for i, c := range e.p.channels {
			if c.opened && !e.faces[i] {
				e.faces[i] = true
				e.got++
			}
		}
		e.freeze()
	}
	if e.atEnd() {
		e.guess.known = true // no further measurement will come
		e.report()
	}
	e.consider()
	switch {
	case e.active && !e.sums.own && e.got == len(e.faces):
		e.measure = true
		return gateMeasureFrozen
	case e.number == 0 && e.active, e.atEnd():
		return gateWait
	case e.p.iterate >= e.due:
		return gateSweepMeasure
	}
	return gateSweep
}

// share is what the own residual is worth measuring against: an even share of the
// tolerance.
func (e *snapshotEnd) share() float64 {
	return e.p.run.Tolerance * e.norm0 / math.Sqrt(float64(e.p.run.Peers))
}

// atEnd tells that this peer has made its last sweep.
func (e *snapshotEnd) atEnd() bool {
	most := e.p.rhythm.max
	return most > 0 && e.p.iterate >= most
}

// freeze keeps the block and sends its faces to all neighbours, but for those that
// the opening of a time step has exchanged.
func (e *snapshotEnd) freeze() {
	e.p.subject.freeze()
	for i, c := range e.p.channels {
		if c.opened && e.number == 0 {
			continue
		}
		m := message{kind: msgFace, mark: uint8(c.age), number: e.number, iterate: e.p.frozenAt, values: make([]byte, c.bytes)}
		e.p.subject.packFrozen(i, m.values)
		e.p.tell(c.rank, &m)
	}
}

// begin starts snapshot number; the one before, if its verdict is still on its
// way, was not the last.
func (e *snapshotEnd) begin(number uint64) {
	e.number, e.active, e.got = number, true, 0
	clear(e.faces)
	e.sums.reset()
	e.freeze()
}

func (e *snapshotEnd) measured(residual *kernel.Sum) {
	if !e.measure {
		e.guess.own, e.guess.known = residual.Float64(), true
		e.guess.age++
		e.quietNews = true
		e.plan()
		e.report()
		e.consider()
		return
	}
	e.measure = false
	var second *kernel.Sum
	switch {
	case e.number == 0:
		second = &e.p.reference
		e.guess.own, e.guess.known = residual.Float64(), true
	case e.asks:
		e.magnitudes = e.p.subject.magnitudes()
		second = &e.magnitudes
	}
	e.sums.share(residual, second)
	e.advance()
}

// advance passes the snapshot's sums up once they are complete; the root decides.
func (e *snapshotEnd) advance() {
	if !e.active || !e.sums.complete() {
		return
	}
	up := e.sums.message(e.number)
	if e.p.tellParent(&up) {
		return
	}
	if e.number == 0 {
		e.norm0 = e.p.run.Reference(norm(&e.sums.start))
	}
	n := norm(&e.sums.squares)
	rel, reason := relative(n, e.norm0), Running
	switch {
	case e.sums.void:
		rel = e.residual // it is of no vector; another snapshot follows
	case rel <= e.p.run.Tolerance:
		reason = Converged
	case !finite(n):
		reason = Diverged
	case e.p.wish != Running:
		reason = e.p.wish
	case e.final:
		reason = ReachedSweeps
	}
	m := message{kind: msgVerdict, number: e.number, reason: reason, a: rel, b: e.norm0}
	if reason == Running && !e.sums.void {
		asked := e.asks && e.number > 0
		if m.reason, asked = e.stagnant.judge(e.p.frozenAt, rel, e.p.run.Tolerance, quietSnapshots, asked, norm(&e.sums.start)/e.norm0); asked {
			m.mark = 1
		}
	}
	e.verdict(&m)
}

// verdict takes the verdict on the open snapshot and passes it on.
func (e *snapshotEnd) verdict(m *message) {
	e.p.tellChildren(m)
	e.active, e.residual, e.norm0, e.asks = false, m.a, m.b, m.mark == 1
	if m.reason != Running {
		e.reason = m.reason // the frozen block is the answer
		return
	}
	e.p.subject.thaw()
	level := levelOf(m.a, e.p.run.Tolerance)
	switch {
	case e.number == 0:
		e.plan()
		e.report()
		e.shots.exact.hear(e.p.now, level, 0)
	case e.p.tree.parent < 0:
		e.shots.failed(e.p.now, level, e.sums.void)
	}
	e.consider()
}

// plan says when this peer measures next for the guess: by its own residual, and more
// often where the root expects the end.
func (e *snapshotEnd) plan() {
	e.due = e.schedule.next(e.p.rhythm.loose(), e.p.iterate, math.Sqrt(e.guess.own), e.share())
	if !e.p.rhythm.fixed {
		e.due = min(e.due, e.pace.next(e.p.now, e.p.iterate, e.guess.round()))
	}
}

// consider begins a snapshot at the root when one is worth while: somebody wants
// the end, all have made their last sweep, or the forecast says that the tolerance will
// be met by the time that the peers hear of it.
func (e *snapshotEnd) consider() {
	if e.p.tree.parent >= 0 || e.number == 0 && e.active || e.reason != Running || !e.begun {
		return
	}
	now := e.p.now
	if sum, known := e.guess.sum(); known {
		e.shots.guessed(now, levelOf(math.Sqrt(sum), e.bound()), e.guess.round())
		e.pace.hear(now, e.shots.left(now))
	}
	if e.active {
		return
	}
	e.final = e.atEnd() && e.guess.childrenAtEnd()
	if e.p.wish == Running && !e.final && !e.shots.promising(now, e.p.iterate) && !e.suspects() {
		return
	}
	e.shots.begin(now, e.p.iterate)
	e.begin(e.number + 1)
}

// suspects tells whether the estimates have stopped falling, so that a snapshot is worth
// while to see whether the run stagnates: at most one each eighth of the run.
func (e *snapshotEnd) suspects() bool {
	k := e.p.iterate
	sum, known := e.guess.sum()
	if !known || !e.quietNews || math.Sqrt(sum) <= e.bound() {
		return false // where estimates promise the end, shots knows when
	}
	e.quietNews = false
	if e.p.run.Tolerance == 0 || !e.quiet.hear(k, math.Sqrt(sum), quietChecks) || k < e.quietAt {
		return false
	}
	e.quietAt = k + k/8
	return true
}

// bound is the residual that ends the run, NaN before it is known.
func (e *snapshotEnd) bound() float64 {
	return e.p.run.Tolerance * e.norm0
}

// report tells the parent the guess of this subtree when it has changed enough.
func (e *snapshotEnd) report() {
	bound := e.bound()
	if m, ok := e.guess.report(e.p.now, e.atEnd(), float64(bound*bound)); ok {
		e.p.tellParent(&m)
	}
}

func (e *snapshotEnd) agree(c *channel, m *message) error {
	switch m.kind {
	case msgFace:
		return e.faceFrom(c, m)
	case msgResidual:
		return e.residualFrom(c.rank, m)
	case msgVerdict:
		return e.verdictFrom(m)
	case msgHalt:
		e.halt()
		return nil
	case msgHeard:
		e.guess.answered(e.p.now)
		e.pace.hear(e.p.now, m.a)
		e.report()
		return nil
	case msgEstimate:
		e.p.tell(c.rank, &message{kind: msgHeard, a: e.pace.left(e.p.now)})
		if math.IsNaN(m.a) {
			m.a = math.Inf(1)
		}
		e.guess.hear(e.p.tree.child(c.rank), m)
		e.shots.news = true
		e.report()
		e.consider()
		return nil
	}
	return fmt.Errorf("kind %d, which an asynchronous run does not use", m.kind)
}

// faceFrom takes a frozen face. The first of the next snapshot begins it here; that
// is only possible once this peer's share of the one before has gone up.
func (e *snapshotEnd) faceFrom(c *channel, m *message) error {
	if e.reason != Running {
		return nil
	}
	if m.number > e.number {
		if m.number != e.number+1 || e.active && !e.sums.own {
			return fmt.Errorf("a face of snapshot %d while %d is open", m.number, e.number)
		}
		if e.p.tree.parent < 0 {
			return fmt.Errorf("a face of snapshot %d, which the root has not begun", m.number)
		}
		e.begin(m.number)
	}
	for i, g := range e.p.channels {
		if g != c || m.number < e.number || e.faces[i] {
			continue // of an old snapshot, or a duplicate
		}
		e.faces[i] = true
		e.got++
		if int(m.mark) != c.age {
			e.sums.void = true // the cut has moved at one end, and not yet at the other
			continue
		}
		copy(c.agreed.data, m.values)
		c.agree(e.p.steps.at, m.iterate, true)
	}
	return nil
}

func (e *snapshotEnd) residualFrom(q Rank, m *message) error {
	i := e.p.tree.child(q)
	switch {
	case m.number < e.number, m.number == e.number && (!e.active || e.sums.children[i]):
		return nil // a duplicate
	case m.number > e.number:
		return fmt.Errorf("the residual of snapshot %d while %d is the last", m.number, e.number)
	}
	e.sums.hear(i, m)
	e.advance()
	return nil
}

func (e *snapshotEnd) verdictFrom(m *message) error {
	switch {
	case m.number < e.number, m.number == e.number && !e.active:
		return nil // the next snapshot's face was faster, or a duplicate
	case m.number > e.number, !e.sums.complete():
		return fmt.Errorf("a verdict on snapshot %d, whose residual is not complete here", m.number)
	}
	e.verdict(m)
	return nil
}

// wished begins the snapshot that ends the run.
func (e *snapshotEnd) wished() {
	e.halt()
	e.consider()
}

// halt has all peers leave out work that delays the snapshot.
func (e *snapshotEnd) halt() {
	e.p.subject.halt()
	e.p.tellChildren(&message{kind: msgHalt})
}

func (e *snapshotEnd) skipSend(Iteration) bool { return e.reason != Running }

func (e *snapshotEnd) outcome(o *Outcome) {
	o.Reason, o.Residual, o.Snapshots = e.reason, e.residual, int(e.number)
	if e.reason != Running {
		o.Iterate = e.p.frozenAt
	}
}

// progress is a guess: at the root of the whole, elsewhere of what is below.
func (e *snapshotEnd) progress() float64 {
	sum, known := e.guess.sum()
	if !known || e.reason != Running {
		return e.residual
	}
	return relative(math.Sqrt(sum), e.norm0)
}
