package iterate

import (
	"fmt"
	"math"

	"github.com/p2pdc/p2pdc/internal/kernel"
)

// snapshotRule ends a run in which everyone is at an iterate of its own. Nobody's
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
type snapshotRule struct {
	p      *Coordination
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

	guess    residualEstimate
	schedule CheckSchedule
	due      Iteration // sweep that measures for the guess
	residual float64   // of the last verdict
	reason   Reason
	final    bool              // the snapshot was begun when all had made their last sweep
	shots    snapshotScheduler // root

	stagnant, quiet Stagnation // root: by snapshots, by estimates
	quietAt         Iteration  // no snapshot before because of quiet
	quietNews       bool       // the root has measured since quiet was told
	pace            samplingInterval
}

func newSnapshotRule(p *Coordination) *snapshotRule {
	n := len(p.Tree.Children)
	e := &snapshotRule{
		p: p, active: true, faces: make([]bool, len(p.Channels)), sums: newReduction(n),
		norm0: NotYet(), residual: NotYet(),
	}
	e.guess.init(n)
	for _, c := range p.Channels {
		if c.Agreed.Data == nil {
			c.Agreed.Data = make([]byte, c.Bytes)
		}
	}
	return e
}

func (e *snapshotRule) Over() bool { return e.reason != Running }

func (e *snapshotRule) Next() Action {
	if e.Over() {
		return Done
	}
	if !e.begun {
		e.begun = true
		for i, c := range e.p.Channels {
			if c.Opened && !e.faces[i] {
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
		return MeasureCaptured
	case e.number == 0 && e.active, e.atEnd():
		return Wait
	case e.p.Iterate >= e.due:
		return SweepMeasure
	}
	return Sweep
}

// share is what the own residual is worth measuring against: an even share of the
// tolerance.
func (e *snapshotRule) share() float64 {
	return e.p.Config.Tolerance * e.norm0 / math.Sqrt(float64(e.p.Config.Peers))
}

// atEnd tells that this peer has made its last sweep.
func (e *snapshotRule) atEnd() bool {
	most := e.p.Checks.Max
	return most > 0 && e.p.Iterate >= most
}

// freeze keeps the block and sends its faces to all neighbours, but for those that
// the opening of a time step has exchanged.
func (e *snapshotRule) freeze() {
	e.p.Source.Capture()
	for i, c := range e.p.Channels {
		if c.Opened && e.number == 0 {
			continue
		}
		m := Message{Kind: MsgFace, Mark: uint8(c.Age), Number: e.number, Iterate: e.p.CapturedAt, Values: make([]byte, c.Bytes)}
		e.p.Source.PackCaptured(i, m.Values)
		e.p.Send(c.Rank, &m)
	}
}

// begin starts snapshot number; the one before, if its verdict is still on its
// way, was not the last.
func (e *snapshotRule) begin(number uint64) {
	e.number, e.active, e.got = number, true, 0
	clear(e.faces)
	e.sums.reset()
	e.freeze()
}

func (e *snapshotRule) Measured(residual *kernel.Sum) {
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
		second = &e.p.Reference
		e.guess.own, e.guess.known = residual.Float64(), true
	case e.asks:
		e.magnitudes = e.p.Source.Magnitudes()
		second = &e.magnitudes
	}
	e.sums.share(residual, second)
	e.advance()
}

// advance passes the snapshot's sums up once they are complete; the root decides.
func (e *snapshotRule) advance() {
	if !e.active || !e.sums.complete() {
		return
	}
	up := e.sums.message(e.number)
	if e.p.SendParent(&up) {
		return
	}
	if e.number == 0 {
		e.norm0 = e.p.Config.Reference(Norm(&e.sums.start))
	}
	n := Norm(&e.sums.squares)
	rel, reason := Relative(n, e.norm0), Running
	switch {
	case e.sums.void:
		rel = e.residual // it is of no vector; another snapshot follows
	case rel <= e.p.Config.Tolerance:
		reason = Converged
	case !kernel.Finite(n):
		reason = Diverged
	case e.p.StopReason != Running:
		reason = e.p.StopReason
	case e.final:
		reason = ReachedSweeps
	}
	m := Message{Kind: MsgVerdict, Number: e.number, Reason: reason, A: rel, B: e.norm0}
	if reason == Running && !e.sums.void {
		asked := e.asks && e.number > 0
		if m.Reason, asked = e.stagnant.Judge(e.p.CapturedAt, rel, e.p.Config.Tolerance, quietSnapshots, asked, Norm(&e.sums.start)/e.norm0); asked {
			m.Mark = 1
		}
	}
	e.verdict(&m)
}

// verdict takes the verdict on the open snapshot and passes it on.
func (e *snapshotRule) verdict(m *Message) {
	e.p.SendChildren(m)
	e.active, e.residual, e.norm0, e.asks = false, m.A, m.B, m.Mark == 1
	if m.Reason != Running {
		e.reason = m.Reason // the frozen block is the answer
		return
	}
	e.p.Source.Release()
	level := levelOf(m.A, e.p.Config.Tolerance)
	switch {
	case e.number == 0:
		e.plan()
		e.report()
		e.shots.exact.hear(e.p.Now, level, 0)
	case e.p.Tree.Parent < 0:
		e.shots.failed(e.p.Now, level, e.sums.void)
	}
	e.consider()
}

// plan says when this peer measures next for the guess: by its own residual, and more
// often where the root expects the end.
func (e *snapshotRule) plan() {
	e.due = e.schedule.Next(e.p.Checks.loose(), e.p.Iterate, math.Sqrt(e.guess.own), e.share())
	if !e.p.Checks.Fixed {
		e.due = min(e.due, e.pace.next(e.p.Now, e.p.Iterate, e.guess.round()))
	}
}

// consider begins a snapshot at the root when one is worth while: somebody wants
// the end, all have made their last sweep, or the forecast says that the tolerance will
// be met by the time that the peers hear of it.
func (e *snapshotRule) consider() {
	if e.p.Tree.Parent >= 0 || e.number == 0 && e.active || e.reason != Running || !e.begun {
		return
	}
	now := e.p.Now
	if sum, known := e.guess.sum(); known {
		e.shots.guessed(now, levelOf(math.Sqrt(sum), e.bound()), e.guess.round())
		e.pace.hear(now, e.shots.left(now))
	}
	if e.active {
		return
	}
	e.final = e.atEnd() && e.guess.childrenAtEnd()
	if e.p.StopReason == Running && !e.final && !e.shots.promising(now, e.p.Iterate) && !e.suspects() {
		return
	}
	e.shots.begin(now, e.p.Iterate)
	e.begin(e.number + 1)
}

// suspects tells whether the estimates have stopped falling, so that a snapshot is worth
// while to see whether the run stagnates: at most one each eighth of the run.
func (e *snapshotRule) suspects() bool {
	k := e.p.Iterate
	sum, known := e.guess.sum()
	if !known || !e.quietNews || math.Sqrt(sum) <= e.bound() {
		return false // where estimates promise the end, shots knows when
	}
	e.quietNews = false
	if e.p.Config.Tolerance == 0 || !e.quiet.hear(k, math.Sqrt(sum), quietChecks) || k < e.quietAt {
		return false
	}
	e.quietAt = k + k/8
	return true
}

// bound is the residual that ends the run, NaN before it is known.
func (e *snapshotRule) bound() float64 {
	return e.p.Config.Tolerance * e.norm0
}

// report tells the parent the guess of this subtree when it has changed enough.
func (e *snapshotRule) report() {
	bound := e.bound()
	if m, ok := e.guess.report(e.p.Now, e.atEnd(), float64(bound*bound)); ok {
		e.p.SendParent(&m)
	}
}

func (e *snapshotRule) Receive(c *Channel, m *Message) error {
	switch m.Kind {
	case MsgFace:
		return e.faceFrom(c, m)
	case MsgResidual:
		return e.residualFrom(c.Rank, m)
	case MsgVerdict:
		return e.verdictFrom(m)
	case msgHalt:
		e.halt()
		return nil
	case MsgHeard:
		e.guess.answered(e.p.Now)
		e.pace.hear(e.p.Now, m.A)
		e.report()
		return nil
	case MsgEstimate:
		e.p.Send(c.Rank, &Message{Kind: MsgHeard, A: e.pace.left(e.p.Now)})
		if math.IsNaN(m.A) {
			m.A = math.Inf(1)
		}
		e.guess.hear(e.p.Tree.Child(c.Rank), m)
		e.shots.news = true
		e.report()
		e.consider()
		return nil
	}
	return fmt.Errorf("kind %d, which an asynchronous run does not use", m.Kind)
}

// faceFrom takes a frozen face. The first of the next snapshot begins it here; that
// is only possible once this peer's share of the one before has gone up.
func (e *snapshotRule) faceFrom(c *Channel, m *Message) error {
	if e.reason != Running {
		return nil
	}
	if m.Number > e.number {
		if m.Number != e.number+1 || e.active && !e.sums.own {
			return fmt.Errorf("a face of snapshot %d while %d is open", m.Number, e.number)
		}
		if e.p.Tree.Parent < 0 {
			return fmt.Errorf("a face of snapshot %d, which the root has not begun", m.Number)
		}
		e.begin(m.Number)
	}
	for i, g := range e.p.Channels {
		if g != c || m.Number < e.number || e.faces[i] {
			continue // of an old snapshot, or a duplicate
		}
		e.faces[i] = true
		e.got++
		if int(m.Mark) != c.Age {
			e.sums.void = true // the cut has moved at one end, and not yet at the other
			continue
		}
		copy(c.Agreed.Data, m.Values)
		c.Agree(e.p.Steps.Current, m.Iterate, true)
	}
	return nil
}

func (e *snapshotRule) residualFrom(q Rank, m *Message) error {
	i := e.p.Tree.Child(q)
	switch {
	case m.Number < e.number, m.Number == e.number && (!e.active || e.sums.children[i]):
		return nil // a duplicate
	case m.Number > e.number:
		return fmt.Errorf("the residual of snapshot %d while %d is the last", m.Number, e.number)
	}
	e.sums.hear(i, m)
	e.advance()
	return nil
}

func (e *snapshotRule) verdictFrom(m *Message) error {
	switch {
	case m.Number < e.number, m.Number == e.number && !e.active:
		return nil // the next snapshot's face was faster, or a duplicate
	case m.Number > e.number, !e.sums.complete():
		return fmt.Errorf("a verdict on snapshot %d, whose residual is not complete here", m.Number)
	}
	e.verdict(m)
	return nil
}

// StopRequested begins the snapshot that ends the run.
func (e *snapshotRule) StopRequested() {
	e.halt()
	e.consider()
}

// halt has all peers leave out work that delays the snapshot.
func (e *snapshotRule) halt() {
	e.p.Source.Halt()
	e.p.SendChildren(&Message{Kind: msgHalt})
}

func (e *snapshotRule) SkipSend(Iteration) bool { return e.reason != Running }

func (e *snapshotRule) Outcome(o *Outcome) {
	o.Reason, o.Residual, o.Snapshots = e.reason, e.residual, int(e.number)
	if e.reason != Running {
		o.Iterate = e.p.CapturedAt
	}
}

// Progress is a guess: at the root of the whole, elsewhere of what is below.
func (e *snapshotRule) Progress() float64 {
	sum, known := e.guess.sum()
	if !known || e.reason != Running {
		return e.residual
	}
	return Relative(math.Sqrt(sum), e.norm0)
}

// FreeSweeps implements TerminationRule: estimates may be due after every sweep.
func (e *snapshotRule) FreeSweeps() Iteration { return 1 }

// Accepted implements TerminationRule: the answer is the captured block, not an iterate in progress.
func (e *snapshotRule) Accepted() (Iteration, bool) { return 0, false }
