package iterate

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/p2pdc/p2pdc/internal/kernel"
)

// snapshotRule ends a run in which peers are at different iterates. It uses consistent snapshots, never local
// convergence flags: values in flight could undo these. Peers send estimates of their residual up the tree,
// which only determine when a snapshot is taken. In a snapshot each peer captures its block, exchanges the
// captured halos over the agreement sessions, and the exact residual of the assembled vector is reduced.
// If it meets the tolerance, that vector is the answer. A captured halo of snapshot s is also the marker that
// s has begun (Chandy and Lamport, 1985).
//
// Snapshot 0 captures the starting vector. No peer relaxes before its verdict, so every peer has received
// a first halo from each neighbour, and a solved problem needs no sweep. Peers with EarlyStart relax, since they need no
// halo: the first captured halos may take many round trips.
type snapshotRule struct {
	verdicts
	number           uint64 // of the newest snapshot
	active           bool   // the snapshot has no verdict yet
	begun            bool   // snapshot 0 has begun: its halos are sent
	measuresCaptured bool   // the pass in progress measures the captured block
	arrived          []bool // captured halos received, by channel

	estimate       residualEstimate
	measureAt      Iteration         // sweep that measures for the estimate
	diverges       bool              // this peer's residual does: it makes no sweep before the next verdict
	lastSweepsMade bool              // all peers had made their last sweep when the snapshot began
	scheduler      snapshotScheduler // at the root

	// At the root: detection of stagnation by estimates. They start no snapshot before iterate suspectFrom,
	// nor before the root has measured again (measuredSince).
	estimateStagnation Stagnation
	suspectFrom        Iteration
	measuredSince      bool
	sampling           samplingInterval
	counted            countedWork
}

func newSnapshotRule(p *Coordination) *snapshotRule {
	e := &snapshotRule{verdicts: newVerdicts(p), active: true, arrived: make([]bool, len(p.Channels))}
	e.stagnant.snapshots = true
	e.estimate.children = make([]childEstimate, len(p.Tree.Children))
	for _, c := range p.Channels {
		c.AgreedValues()
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
		e.scheduler.begunAt = e.p.Now
		for i, c := range e.p.Channels {
			e.arrived[i] = e.arrived[i] || c.Opened
		}
		e.capture()
	}
	if e.madeLastSweep() {
		e.estimate.known = true // there will be no further measurement
		e.report()
	}
	e.considerSnapshot()
	switch {
	case e.active && !e.sums.ownAdded && !slices.Contains(e.arrived, false):
		e.measuresCaptured = true
		return ActionMeasureCaptured
	case e.madeLastSweep(), e.diverges:
		return ActionWait
	case e.number == 0 && e.active && e.p.EarlyStart:
		return ActionSweep
	case e.number == 0 && e.active:
		return ActionWait
	case e.p.Iterate >= e.measureAt:
		return ActionSweepMeasure
	}
	return ActionSweep
}

// ownTarget returns this peer's share of the residual that meets the tolerance, if the peers share it evenly.
func (e *snapshotRule) ownTarget() float64 {
	return e.p.Config.Tolerance * e.norm0 / math.Sqrt(float64(e.p.Config.Peers))
}

// madeLastSweep reports whether this peer has made its last sweep.
func (e *snapshotRule) madeLastSweep() bool {
	most := e.p.Checks.Max
	return most > 0 && e.p.Iterate >= most
}

// capture captures the block and sends its halos to all neighbours. Halos that were exchanged at the
// opening of a time step are not sent again.
func (e *snapshotRule) capture() {
	e.p.Source.Capture()
	for i, c := range e.p.Channels {
		if c.Opened && e.number == 0 {
			continue
		}
		m := Message{
			Kind: MsgCaptured, Mark: uint8(c.BoundaryMoves), Number: e.number, Iterate: e.p.CapturedAt,
			Values: make([]byte, c.Bytes),
		}
		e.p.Source.PackCaptured(i, m.Values)
		e.p.Send(c.Rank, &m)
	}
}

// begin begins a snapshot. If the verdict on the previous one is still in flight, that one did not end the
// run.
func (e *snapshotRule) begin(number uint64) {
	e.number, e.active = number, true
	clear(e.arrived)
	e.sums.reset()
	e.capture()
}

func (e *snapshotRule) Measured(residual *kernel.Sum) {
	if !e.measuresCaptured {
		e.estimate.own, e.estimate.known = residual.Float64(), true
		e.estimate.sinceReport++
		e.measuredSince = true
		e.diverges = diverges(math.Sqrt(e.estimate.own), e.norm0)
		e.planMeasurement()
		e.report()
		e.considerSnapshot()
		return
	}
	e.measuresCaptured = false
	if e.number == 0 {
		e.estimate.own, e.estimate.known = residual.Float64(), true
	}
	e.addOwn(residual, e.number == 0)
	e.advance()
}

// advance sends the sums of the snapshot to the parent when they are complete. The root decides.
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
		rel = e.residual // the sums belong to no vector; another snapshot follows
	case rel <= e.p.Config.Tolerance:
		reason = Converged
	case diverges(n, e.norm0):
		reason = Diverged
	case e.p.stopReason != Running:
		reason = e.p.stopReason
	case e.lastSweepsMade:
		reason = ReachedSweeps
	}
	m := Message{Kind: MsgVerdict, Number: e.number, Reason: reason, A: rel, B: e.norm0}
	if reason == Running && !e.sums.void {
		reduce := e.wantsMagnitudes && e.number > 0
		magnitude := Norm(&e.sums.start) / e.norm0
		m.Reason, reduce = e.stagnant.Evaluate(
			e.p.CapturedAt, e.work(e.p.CapturedAt, rel), rel, e.p.Config.Tolerance, snapshotChecks, reduce, magnitude)
		if reduce {
			m.Mark = 1
		}
	}
	e.verdict(&m)
}

// sweepsPerRound bounds the sweeps in a round trip that count as work against a standstill.
const sweepsPerRound = 16

// countedWork is the work that counts against a standstill.
type countedWork struct {
	sum   float64
	made  float64 // all work at the newest call of work
	at    time.Duration
	halos uint64 // of the neighbour from which fewest have arrived
}

// work returns the sweeps up to iterate k that count as work. Small blocks are relaxed thousands of times while values pass
// to the farthest peer, and most of these sweeps change nothing. The round trip may change, so the sweeps since the snapshot
// before are compared with its newest value. No more sweeps count than halos have arrived from every neighbour: the
// relaxations of Schwarz's method are many sweeps each, and on a busy machine a neighbour sends seldom.
func (e *snapshotRule) work(k Iteration, residual float64) float64 {
	c, made, now := &e.counted, e.p.work(k), e.p.Now
	more := made - c.made
	if round := e.scheduler.newestRound; round > 0 {
		more = min(more, sweepsPerRound*float64(now-c.at)/float64(round))
	}
	halos := c.halos
	if len(e.p.Halos) > 0 && !(residual >= grown) { // what has grown is to end soon
		halos = slices.MinFunc(e.p.Halos, func(a, b *Channel) int { return cmp.Compare(a.received, b.received) }).received
		more = min(more, float64(halos-c.halos))
	}
	*c = countedWork{sum: c.sum + max(0, more), made: made, at: now, halos: halos}
	return c.sum
}

// verdict applies the verdict on the open snapshot and forwards it.
func (e *snapshotRule) verdict(m *Message) {
	e.p.SendChildren(m)
	e.active = false
	e.residual, e.norm0 = m.A, m.B
	e.wantsMagnitudes = m.Mark == 1
	if m.Reason != Running {
		e.reason = m.Reason // the captured block is the answer
		return
	}
	e.p.Source.Release()
	if e.diverges {
		e.diverges, e.measureAt = false, e.p.Iterate // the captured vector did not
	}
	level := levelOf(m.A, e.p.Config.Tolerance)
	switch {
	case e.number == 0:
		e.planMeasurement()
		e.report()
		at := e.p.Now
		if e.p.EarlyStart {
			at = e.scheduler.begunAt
		}
		e.scheduler.exact.record(at, level, 0)
	case e.p.Tree.Parent < 0:
		e.scheduler.rejected(e.p.Now, level, e.sums.void)
	}
	e.considerSnapshot()
}

// planMeasurement sets the sweep of the next measurement for the estimate. It depends on this peer's
// residual, and on the expected end of the run.
func (e *snapshotRule) planMeasurement() {
	e.measureAt = e.schedule.Next(e.p.Checks.forEstimates(), e.p.Iterate, math.Sqrt(e.estimate.own), e.ownTarget())
	if !e.p.Checks.Fixed {
		e.measureAt = min(e.measureAt, e.sampling.next(e.p.Now, e.p.Iterate, e.estimate.roundTrip()))
	}
}

// considerSnapshot begins a snapshot at the root if an early end was requested, if all peers have made their
// last sweep, if the estimates diverge, or if the forecast predicts that the tolerance is met when the snapshot reaches the
// peers.
func (e *snapshotRule) considerSnapshot() {
	if e.p.Tree.Parent >= 0 || e.number == 0 && e.active || e.reason != Running || !e.begun {
		return
	}
	now := e.p.Now
	diverging := false
	if sum, known := e.estimate.sum(); known {
		diverging = diverges(math.Sqrt(sum), e.norm0) && e.scheduler.changed(e.p.Iterate)
		e.scheduler.recordEstimate(now, levelOf(math.Sqrt(sum), e.bound()), e.estimate.roundTrip())
		e.sampling.receive(now, e.scheduler.remaining(now))
	}
	if e.active {
		return
	}
	e.lastSweepsMade = e.madeLastSweep() && e.estimate.childrenAtEnd()
	if e.p.stopReason == Running && !e.lastSweepsMade && !diverging && !e.scheduler.due(now, e.p.Iterate) &&
		!e.suspectsStagnation() {
		return
	}
	e.scheduler.begin(now, e.p.Iterate)
	e.begin(e.number + 1)
}

// suspectsStagnation reports whether a snapshot has to test for stagnation: the estimates have stopped falling, or the
// newest snapshot found no new minimum. It does so at most once in an eighth of the run.
func (e *snapshotRule) suspectsStagnation() bool {
	k := e.p.Iterate
	sum, known := e.estimate.sum()
	if !known || !e.measuredSince || math.Sqrt(sum) <= e.bound() {
		return false // the estimates meet the tolerance, so the scheduler decides
	}
	e.measuredSince = false
	stalled := e.estimateStagnation.record(k, math.Sqrt(sum), estimateChecks) || e.stagnant.checks > 0
	if e.p.Config.Tolerance == 0 || !stalled || k < e.suspectFrom {
		return false
	}
	e.suspectFrom = k + k/8
	return true
}

// bound returns the residual that ends the run, NaN if it is unknown.
func (e *snapshotRule) bound() float64 {
	return e.p.Config.Tolerance * e.norm0
}

// report sends the estimate of this subtree to the parent if it has changed enough.
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
		added, err := e.addChild(c.Rank, m, "snapshot", e.number, !e.active)
		if added {
			e.advance()
		}
		return err
	case MsgVerdict:
		// A halo of the next snapshot may overtake the verdict on this one.
		valid, err := e.checkVerdict(m, "snapshot", e.number, !e.active)
		if valid {
			e.verdict(m)
		}
		return err
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
	return fmt.Errorf("message kind %d, which an asynchronous run does not use", m.Kind)
}

// capturedFrom handles a captured halo. The first one of the next snapshot begins that snapshot here, which
// is valid only after this peer has added its residual to the previous one.
func (e *snapshotRule) capturedFrom(c *Channel, m *Message) error {
	if e.reason != Running {
		return nil
	}
	if m.Number > e.number {
		if m.Number != e.number+1 || e.active && !e.sums.ownAdded {
			return fmt.Errorf("a halo of snapshot %d; snapshot %d is open", m.Number, e.number)
		}
		if e.p.Tree.Parent < 0 {
			return fmt.Errorf("a halo of snapshot %d, which this peer, the root, has not begun", m.Number)
		}
		e.begin(m.Number)
	}
	i := slices.Index(e.p.Channels, c)
	if m.Number < e.number || e.arrived[i] {
		return nil // a halo of a past snapshot, or a duplicate
	}
	e.arrived[i] = true
	if int(m.Mark) != c.BoundaryMoves {
		e.sums.void = true // the boundary has moved at one end and not yet at the other
		return nil
	}
	copy(c.AgreedValues(), m.Values)
	c.LabelAgreed(e.p.Steps.Current, m.Iterate, true)
	return nil
}

// stopRequested implements TerminationRule: it begins the snapshot that ends the run.
func (e *snapshotRule) stopRequested() {
	e.halt()
	e.considerSnapshot()
}

// halt makes all peers omit work that would delay the snapshot.
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

// progress returns an estimate, at the root for all peers, elsewhere for the subtree.
func (e *snapshotRule) progress() float64 {
	sum, known := e.estimate.sum()
	if !known || e.reason != Running {
		return e.residual
	}
	return Relative(math.Sqrt(sum), e.norm0)
}

// FreeSweeps implements TerminationRule: estimates may be due after every sweep.
func (e *snapshotRule) FreeSweeps() Iteration { return 1 }

// Accepted implements TerminationRule: the answer is the captured block.
func (e *snapshotRule) Accepted() (Iteration, bool) { return 0, false }
