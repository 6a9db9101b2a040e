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
	p               *Coordination
	number          uint64    // of the last snapshot begun
	active          bool      // begun, no verdict yet
	begun           bool      // snapshot 0 has been begun (its faces sent)
	sums            reduction // of the snapshot; snapshot 0 also of the reference vector
	wantsMagnitudes bool      // the next snapshot brings magnitudes

	magnitudes       kernel.Sum // the own ones
	measuresCaptured bool       // the pass in progress measures the frozen block
	arrived          []bool     // frozen faces that have come
	arrivals         int
	norm0            float64 // NaN before the verdict on snapshot 0

	estimate       residualEstimate
	schedule       CheckSchedule
	measureAt      Iteration // sweep that measures for the guess
	residual       float64   // of the last verdict
	reason         Reason
	lastSweepsMade bool              // the snapshot was begun when all had made their last sweep
	scheduler      snapshotScheduler // root

	stagnant, estimateStagnation Stagnation // root: by snapshots, by estimates
	suspectFrom                  Iteration  // no snapshot before because of quiet
	measuredSince                bool       // the root has measured since quiet was told
	sampling                     samplingInterval
}

func newSnapshotRule(p *Coordination) *snapshotRule {
	n := len(p.Tree.Children)
	e := &snapshotRule{
		p: p, active: true, arrived: make([]bool, len(p.Channels)), sums: newReduction(n),
		norm0: UnknownResidual(), residual: UnknownResidual(),
	}
	e.estimate.init(n)
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
		return ActionDone
	}
	if !e.begun {
		e.begun = true
		for i, c := range e.p.Channels {
			if c.Opened && !e.arrived[i] {
				e.arrived[i] = true
				e.arrivals++
			}
		}
		e.capture()
	}
	if e.madeLastSweep() {
		e.estimate.known = true // no further measurement will come
		e.report()
	}
	e.considerSnapshot()
	switch {
	case e.active && !e.sums.ownAdded && e.arrivals == len(e.arrived):
		e.measuresCaptured = true
		return ActionMeasureCaptured
	case e.number == 0 && e.active, e.madeLastSweep():
		return ActionWait
	case e.p.Iterate >= e.measureAt:
		return ActionSweepMeasure
	}
	return ActionSweep
}

// share is what the own residual is worth measuring against: an even share of the
// tolerance.
func (e *snapshotRule) ownTarget() float64 {
	return e.p.Config.Tolerance * e.norm0 / math.Sqrt(float64(e.p.Config.Peers))
}

// atEnd tells that this peer has made its last sweep.
func (e *snapshotRule) madeLastSweep() bool {
	most := e.p.Checks.Max
	return most > 0 && e.p.Iterate >= most
}

// freeze keeps the block and sends its faces to all neighbours, but for those that
// the opening of a time step has exchanged.
func (e *snapshotRule) capture() {
	e.p.Source.Capture()
	for i, c := range e.p.Channels {
		if c.Opened && e.number == 0 {
			continue
		}
		m := Message{Kind: MsgCaptured, Mark: uint8(c.BoundaryMoves), Number: e.number, Iterate: e.p.CapturedAt, Values: make([]byte, c.Bytes)}
		e.p.Source.PackCaptured(i, m.Values)
		e.p.Send(c.Rank, &m)
	}
}

// begin starts snapshot number; the one before, if its verdict is still on its
// way, was not the last.
func (e *snapshotRule) begin(number uint64) {
	e.number, e.active, e.arrivals = number, true, 0
	clear(e.arrived)
	e.sums.reset()
	e.capture()
}

func (e *snapshotRule) Measured(residual *kernel.Sum) {
	if !e.measuresCaptured {
		e.estimate.own, e.estimate.known = residual.Float64(), true
		e.estimate.sinceReport++
		e.measuredSince = true
		e.planMeasurement()
		e.report()
		e.considerSnapshot()
		return
	}
	e.measuresCaptured = false
	var second *kernel.Sum
	switch {
	case e.number == 0:
		second = &e.p.Reference
		e.estimate.own, e.estimate.known = residual.Float64(), true
	case e.wantsMagnitudes:
		e.magnitudes = e.p.Source.Magnitudes()
		second = &e.magnitudes
	}
	e.sums.addOwn(residual, second)
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
	case e.p.stopReason != Running:
		reason = e.p.stopReason
	case e.lastSweepsMade:
		reason = ReachedSweeps
	}
	m := Message{Kind: MsgVerdict, Number: e.number, Reason: reason, A: rel, B: e.norm0}
	if reason == Running && !e.sums.void {
		asked := e.wantsMagnitudes && e.number > 0
		if m.Reason, asked = e.stagnant.Evaluate(e.p.CapturedAt, rel, e.p.Config.Tolerance, snapshotChecks, asked, Norm(&e.sums.start)/e.norm0); asked {
			m.Mark = 1
		}
	}
	e.verdict(&m)
}

// verdict takes the verdict on the open snapshot and passes it on.
func (e *snapshotRule) verdict(m *Message) {
	e.p.SendChildren(m)
	e.active, e.residual, e.norm0, e.wantsMagnitudes = false, m.A, m.B, m.Mark == 1
	if m.Reason != Running {
		e.reason = m.Reason // the frozen block is the answer
		return
	}
	e.p.Source.Release()
	level := levelOf(m.A, e.p.Config.Tolerance)
	switch {
	case e.number == 0:
		e.planMeasurement()
		e.report()
		e.scheduler.exact.record(e.p.Now, level, 0)
	case e.p.Tree.Parent < 0:
		e.scheduler.rejected(e.p.Now, level, e.sums.void)
	}
	e.considerSnapshot()
}

// plan says when this peer measures next for the guess: by its own residual, and more
// often where the root expects the end.
func (e *snapshotRule) planMeasurement() {
	e.measureAt = e.schedule.Next(e.p.Checks.forEstimates(), e.p.Iterate, math.Sqrt(e.estimate.own), e.ownTarget())
	if !e.p.Checks.Fixed {
		e.measureAt = min(e.measureAt, e.sampling.next(e.p.Now, e.p.Iterate, e.estimate.roundTrip()))
	}
}

// consider begins a snapshot at the root when one is worth while: somebody wants
// the end, all have made their last sweep, or the forecast says that the tolerance will
// be met by the time that the peers hear of it.
func (e *snapshotRule) considerSnapshot() {
	if e.p.Tree.Parent >= 0 || e.number == 0 && e.active || e.reason != Running || !e.begun {
		return
	}
	now := e.p.Now
	if sum, known := e.estimate.sum(); known {
		e.scheduler.recordEstimate(now, levelOf(math.Sqrt(sum), e.bound()), e.estimate.roundTrip())
		e.sampling.receive(now, e.scheduler.remaining(now))
	}
	if e.active {
		return
	}
	e.lastSweepsMade = e.madeLastSweep() && e.estimate.childrenAtEnd()
	if e.p.stopReason == Running && !e.lastSweepsMade && !e.scheduler.due(now, e.p.Iterate) && !e.suspectsStagnation() {
		return
	}
	e.scheduler.begin(now, e.p.Iterate)
	e.begin(e.number + 1)
}

// suspects tells whether the estimates have stopped falling, so that a snapshot is worth
// while to see whether the run stagnates: at most one each eighth of the run.
func (e *snapshotRule) suspectsStagnation() bool {
	k := e.p.Iterate
	sum, known := e.estimate.sum()
	if !known || !e.measuredSince || math.Sqrt(sum) <= e.bound() {
		return false // where estimates promise the end, shots knows when
	}
	e.measuredSince = false
	if e.p.Config.Tolerance == 0 || !e.estimateStagnation.record(k, math.Sqrt(sum), estimateChecks) || k < e.suspectFrom {
		return false
	}
	e.suspectFrom = k + k/8
	return true
}

// bound is the residual that ends the run, NaN before it is known.
func (e *snapshotRule) bound() float64 {
	return e.p.Config.Tolerance * e.norm0
}

// report tells the parent the guess of this subtree when it has changed enough.
func (e *snapshotRule) report() {
	bound := e.bound()
	if m, ok := e.estimate.report(e.p.Now, e.madeLastSweep(), float64(bound*bound)); ok {
		e.p.SendParent(&m)
	}
}

func (e *snapshotRule) receive(c *Channel, m *Message) error {
	switch m.Kind {
	case MsgCaptured:
		return e.capturedFrom(c, m)
	case MsgResidual:
		return e.residualFrom(c.Rank, m)
	case MsgVerdict:
		return e.verdictFrom(m)
	case MsgHalt:
		e.halt()
		return nil
	case MsgEstimateReply:
		e.estimate.acknowledged(e.p.Now)
		e.sampling.receive(e.p.Now, m.A)
		e.report()
		return nil
	case MsgEstimate:
		e.p.Send(c.Rank, &Message{Kind: MsgEstimateReply, A: e.sampling.remaining(e.p.Now)})
		if math.IsNaN(m.A) {
			m.A = math.Inf(1)
		}
		e.estimate.receive(e.p.Tree.Child(c.Rank), m)
		e.scheduler.progressed = true
		e.report()
		e.considerSnapshot()
		return nil
	}
	return fmt.Errorf("kind %d, which an asynchronous run does not use", m.Kind)
}

// faceFrom takes a frozen face. The first of the next snapshot begins it here; that
// is only possible once this peer's share of the one before has gone up.
func (e *snapshotRule) capturedFrom(c *Channel, m *Message) error {
	if e.reason != Running {
		return nil
	}
	if m.Number > e.number {
		if m.Number != e.number+1 || e.active && !e.sums.ownAdded {
			return fmt.Errorf("a face of snapshot %d while %d is open", m.Number, e.number)
		}
		if e.p.Tree.Parent < 0 {
			return fmt.Errorf("a face of snapshot %d, which the root has not begun", m.Number)
		}
		e.begin(m.Number)
	}
	for i, g := range e.p.Channels {
		if g != c || m.Number < e.number || e.arrived[i] {
			continue // of an old snapshot, or a duplicate
		}
		e.arrived[i] = true
		e.arrivals++
		if int(m.Mark) != c.BoundaryMoves {
			e.sums.void = true // the cut has moved at one end, and not yet at the other
			continue
		}
		copy(c.Agreed.Data, m.Values)
		c.LabelAgreed(e.p.Steps.Current, m.Iterate, true)
	}
	return nil
}

func (e *snapshotRule) residualFrom(q Rank, m *Message) error {
	i := e.p.Tree.Child(q)
	switch {
	case m.Number < e.number, m.Number == e.number && (!e.active || e.sums.added[i]):
		return nil // a duplicate
	case m.Number > e.number:
		return fmt.Errorf("the residual of snapshot %d while %d is the last", m.Number, e.number)
	}
	e.sums.addChild(i, m)
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
func (e *snapshotRule) stopRequested() {
	e.halt()
	e.considerSnapshot()
}

// halt has all peers leave out work that delays the snapshot.
func (e *snapshotRule) halt() {
	e.p.Source.Halt()
	e.p.SendChildren(&Message{Kind: MsgHalt})
}

func (e *snapshotRule) SkipSend(Iteration) bool { return e.reason != Running }

func (e *snapshotRule) Outcome(o *Outcome) {
	o.Reason, o.Residual, o.Snapshots = e.reason, e.residual, int(e.number)
	if e.reason != Running {
		o.Iterate = e.p.CapturedAt
	}
}

// Progress is a guess: at the root of the whole, elsewhere of what is below.
func (e *snapshotRule) progress() float64 {
	sum, known := e.estimate.sum()
	if !known || e.reason != Running {
		return e.residual
	}
	return Relative(math.Sqrt(sum), e.norm0)
}

// FreeSweeps implements TerminationRule: estimates may be due after every sweep.
func (e *snapshotRule) FreeSweeps() Iteration { return 1 }

// Accepted implements TerminationRule: the answer is the captured block, not an iterate in progress.
func (e *snapshotRule) Accepted() (Iteration, bool) { return 0, false }
