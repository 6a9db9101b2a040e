package launch

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/p2pdc/p2pdc/internal/placement"
	"github.com/p2pdc/p2pdc/obstacle/internal/blocks"
	"github.com/p2pdc/p2pdc/obstacle/internal/rendezvous"
	"github.com/p2pdc/p2pdc/solver/iterate"
	"github.com/p2pdc/p2pdc/solver/problem"
)

// ErrInterrupted is the error of a run that was interrupted before its first relaxation.
var ErrInterrupted = errors.New("interrupted before the first relaxation")

// newRun returns a run whose peers have not joined.
func newRun(p Plan, name string, key []byte) *run {
	r := &run{Plan: p, name: name, key: key, tick: tickEvery(p.PeerTimeout, p.Suspect)}
	r.Reports = p.Status != nil
	for rank := range p.Partition.Peers() {
		box := p.Partition.Box(iterate.Rank(rank))
		r.members = append(r.members, &member{rank: rank, box: box, final: box})
	}
	r.Spec.Problem, r.Fingerprint, r.N = p.ProblemSpec.Name(), fmt.Sprintf("%x", p.ProblemSpec.Fingerprint()), p.Problem.N
	r.FromFile = r.FromFile || p.Initial != nil
	r.moving = moving{
		meters: map[process]*placement.Meter{}, leaving: map[process]bool{}, slow: map[process]float64{},
	}
	r.inTime = p.Problem.Steps() > 0
	r.largest = problem.LargestValue(p.Problem, p.Method)
	r.beat.Residual, r.residual = math.NaN(), math.NaN()
	return r
}

// run is the state of a run in progress, from which the decisions are made.
type run struct {
	Plan
	self     process // this one
	listens  string  // address of this process, where peers join
	name     string
	key      []byte        // of the control channels
	started  bool          // the relaxation; before, the peers get ready for it
	now      time.Duration // of the event that is handled, since the start, 0 before; decisions read no clock
	verdict  time.Duration // of the last result; 0: none
	members  []*member
	starting []*member // spare peers that have not joined
	recovery
	keepers
	moving
	capture capture   // for Captures
	sample  sample    // for Samples
	inTime  bool      // the problem has time steps
	largest float64   // bound of the values that peers send; 0: none
	steps   timeSteps // that have arrived
	outputs

	tick      time.Duration // interval of ticks
	joining   bool          // not all peers have joined and listen
	joined    int           // processes that have joined meanwhile, but for those that cannot take part
	joinTicks int           // until the time to join is over; 0: it is not bounded
	timeTicks int           // until the time to relax is over; 0: it is not bounded
	deafTicks int           // for which no peer has been heard
	deaf      bool          // that was logged
	refusal   string        // why the last peer was lost before the start; "" if none was
	stopping  bool          // an early end was requested
	failure   *failure      // the most informative failure so far
	ending    string        // why the run cannot go on after a loss; "": it can
	ticksLeft int           // ticks until the peers are overdue; 0 before a request to end
	ended     bool          // without those that have not ended
	beat      Progress
	residual  float64 // the newest that is known, relative; NaN: none
}

// failure describes what went wrong. One of higher weight replaces another.
type failure struct {
	weight int
	rank   int // the failed peer; −1: none
	text   string
}

// Weights of failures, by the evidence.
const (
	told     = iota + 1 // a peer reported it of another one, and may know a consequence only
	reported            // a peer reported it
	silent              // the peer timed out
	closed              // the connection ended
	exited              // the process ended
)

// check makes the decisions that are due at a tick.
func (r *run) check(t *tick) {
	for _, m := range r.members {
		m.seen, m.blocked = nil, false
	}
	for _, s := range t.seen {
		s.of.seen = &s
	}
	for _, m := range t.blocked {
		m.blocked = true
	}
	r.checkJoining()
	r.checkKeepers()
	r.checkRecovery()
	r.checkMoves()
	r.checkCapture(t.captures)
	r.checkSample(t.sample)
	if r.timeTicks--; r.timeTicks == 0 {
		r.stop()
	}
	r.checkStop()
	if r.checkSilence(); r.ticksLeft == 1 {
		r.failOverdue()
		r.ended = true
		return
	}
	r.ticksLeft = max(r.ticksLeft-1, 0)
}

// finished reports whether every peer has sent its result or is gone, or the run ends without them.
func (r *run) finished() bool {
	if r.ended {
		return true
	}
	if r.early() { // what a peer reports may be a consequence: the cause may still follow
		return r.stopping || r.failure != nil && r.failure.weight > reported
	}
	if r.active && r.failure == nil {
		return false
	}
	for _, m := range r.members {
		if !m.done() {
			return false
		}
	}
	return true
}

// handle makes the decisions about an event at the time now.
func (r *run) handle(o event) {
	m := o.of
	if r.inTime {
		r.steps = o.steps
	}
	switch {
	case o.joined != nil: // too late: it will be refused
		r.enroll(o.joined)
		return
	case o.decided != nil:
		r.termDecided(*o.decided)
		return
	case o.tick != nil:
		r.check(o.tick)
		return
	case o.asked == toStop:
		r.stop()
		return
	case o.asked == toEnd:
		r.fail(failure{exited, -1, "ended at once, on request"})
		r.ended = true
		return
	case o.started != nil:
		r.childStarted(m, o.child, o.started)
		return
	case o.restarted:
		r.restarted()
		return
	case o.refused != nil:
		r.refused(m, o.refused)
		return
	}
	if r.handleFormer(m, o) || r.ofNoMember(m, o) || o.child != 0 && o.child != m.child {
		return
	}
	m.quietTicks = 0
	if b, is := o.message.(rendezvous.Beat); !is || b.Relaxed > m.relaxed {
		m.stillTicks = 0
	}
	switch {
	case o.exited:
		// Messages that it sent before its end may still be unread; the end of its connection follows them.
		m.exited, m.exit = true, o.exit
		switch {
		case m.result != nil:
		case o.blocked || r.anyOf(m, func(q *member) bool { return q.closed != nil }):
			r.processEnded(m)
		case m.conn == 0 && r.early():
			r.endedEarly(m)
		}
	case o.closed != nil:
		switch {
		case m.result != nil && (!m.missing() || m.result.Reason == Failed):
			m.gone = true
		case errors.Is(o.closed, rendezvous.ErrMalformed):
			r.expel(m, o.closed)
		case m.exited:
			r.processEnded(m)
		case r.anyOf(m, func(q *member) bool { return q.child != 0 }): // the exit status of its process follows
			m.closed = o.closed
		default:
			r.disconnected(m, o.closed)
		}
	case o.bytes > 0:
		m.received += o.bytes
	case o.message != nil:
		r.receive(m, o.message, o.values)
	}
}

// ofNoMember handles an event of a peer that has no part in the run: a lost or a spare one.
func (r *run) ofNoMember(m *member, o event) bool {
	if m.rank < len(r.members) && r.members[m.rank] == m {
		return false
	}
	if m.exited = m.exited || o.exited; o.exited {
		other := func(s *member) bool { return s == m }
		r.spares, r.starting = slices.DeleteFunc(r.spares, other), slices.DeleteFunc(r.starting, other)
	}
	return true
}

func (r *run) processEnded(m *member) {
	r.lose(m, failure{exited, m.rank, fmt.Sprintf("%s ended%s: %s", m, r.when(), exitText(m.exit))})
}

func (r *run) disconnected(m *member, why error) {
	r.lose(m, failure{closed, m.rank, fmt.Sprintf("%s closed its connection%s: %v", m, r.when(), why)})
}

func exitText(err error) string {
	if err == nil {
		return "it left the run"
	}
	return err.Error()
}

func (r *run) receive(m *member, msg rendezvous.Message, values []float64) {
	switch msg := msg.(type) {
	case rendezvous.Beat:
		if r.early() {
			return
		}
		m.sweep = max(m.sweep, msg.Sweep)
		r.measure(m, &msg)
		r.noteSevered(m, msg.Severed)
		r.change(swept{m.rank, msg.Sweep})
		if m.rank == 0 {
			if r.beat.Sweep == 0 && msg.Sweep > 0 {
				r.info("relaxing")
			}
			r.beat.Step, r.beat.Sweep = msg.Step, msg.Sweep
		}
		if res := float64(msg.Residual); !math.IsNaN(res) {
			r.beat.Residual, r.residual = res, res
		}
		if m.rank == 0 {
			r.beat.Elapsed = r.now
			r.change(r.beat)
			r.add(progress{r.beat})
		}
	case rendezvous.Sessions:
		r.change(accounted{m.rank, &msg})
	case rendezvous.Captured:
		if msg.Sampled {
			r.receiveSample(m, &msg, values)
			return
		}
		if r.receiveCapture(m, &msg, values); msg.Number < 0 {
			r.receiveFaces(m, msg.Number, values)
			r.receiveCopy(m, &msg, values)
		}
	case rendezvous.Result:
		if msg.Epoch != r.epoch {
			m.received = 0 // the block belongs to a former epoch, too
			return
		}
		r.verdict = r.now
		if msg.Placed && (r.Answer == nil || m.child == 0) {
			r.expel(m, errors.New("it claims that its block is in shared memory, which it does not have"))
			return
		}
		m.result = &msg
		r.change(accounted{m.rank, &rendezvous.Sessions{Sessions: msg.Sessions, Former: msg.Former, Account: msg.Account}})
		if msg.Placed {
			m.received = blocks.Bytes(m.final)
		}
		r.debug("result", "rank", m.rank, "reason", msg.Reason, "sweeps", msg.Sweeps)
		if msg.Reason != Failed {
			return
		}
		if r.early() && msg.Lost < 0 {
			r.cannotTakePart(m, msg.Error, msg.Panicked)
			return
		}
		text := fmt.Sprintf("%s failed: %s", m, msg.Error)
		if r.Recovers() && r.failure == nil && !(msg.Panicked && r.panicsAgain(m.rank)) {
			r.lose(m, failure{reported, m.rank, text})
			return
		}
		blame, weight := m.rank, reported
		if msg.Lost >= 0 && msg.Lost < len(r.members) {
			blame, weight = msg.Lost, told
			text = fmt.Sprintf("%s was lost: %s reports %s", r.members[blame], m, msg.Error)
		}
		r.fail(failure{weight, blame, text})
	case rendezvous.Block:
		m.final = msg.Box
	case rendezvous.Leave:
		if r.joining && m.child == 0 {
			r.dismiss(m, m.String()+" left before the start")
			return
		}
		r.leave(m)
	case rendezvous.Step:
		r.stepArrived()
	case rendezvous.Unreachable:
		r.unreachable(m, &msg)
	case rendezvous.Keeping:
		if r.early() {
			return // no peer is asked before
		}
		if m.keeps, m.declined = msg.Address, msg.Address == ""; m.declined {
			r.askKeepers()
		}
		r.propose()
	default:
		if r.receiveRecovery(m, msg) {
			return
		}
		r.expel(m, fmt.Errorf("it sent an unexpected %T", msg))
	}
}

// checkSilence marks peers lost that timed out, or whose process ended while they were blocked.
func (r *run) checkSilence() {
	r.listen()
	for _, m := range r.members {
		held := m.blocked
		switch {
		case m.done():
		case held && m.exited:
			r.processEnded(m)
		case m.closed != nil:
			if m.silentFor(false, r.ticks(causeTime)) {
				r.disconnected(m, m.closed)
			}
		case r.active && m.conn == 0: // its replacement has not joined
		case m.silentFor(held, r.ticks(r.PeerTimeout)):
			r.lose(m, failure{silent, m.rank, m.silence(r.PeerTimeout) + r.when()})
		case r.suspects(m):
			r.lose(m, failure{silent, m.rank, fmt.Sprintf("%s has been silent for more than %v (--suspect)%s", m, r.Suspect, r.when())})
		}
	}
}

// fail records a failure. The first one ends the run.
func (r *run) fail(f failure) {
	first := r.failure == nil
	say := r.debug
	if first || f.weight > r.failure.weight && (r.failure.rank == f.rank || r.failure.weight <= reported) {
		if r.ending != "" {
			f.text += "; " + r.ending
		}
		r.failure = &f
		say = r.warn
	}
	if f.weight > reported {
		r.change(rankLost(f.rank))
	}
	say(f.text, "rank", f.rank)
	if first && r.early() {
		r.ticksLeft = r.ticks(causeTime)
	} else if first {
		for _, m := range r.members { // those that have sent their results, too
			m.gone = m.gone || m.conn == 0 // nobody has its place
			r.send(m, rendezvous.Lost{Rank: f.rank, Why: f.text, CutOff: r.cutOff})
		}
		r.ticksLeft = r.ticks(StopTime)
	}
}

// stop requests an early end from the peers.
func (r *run) stop() {
	if r.stopping || r.failure != nil {
		return
	}
	if r.stopping = true; r.early() {
		return
	}
	r.info("stopping")
	for _, m := range r.members {
		m.stillTicks = 0
		if !m.done() {
			r.send(m, rendezvous.Stop{})
		}
	}
	r.ticksLeft = r.ticks(r.stopTimeout())
}

// stopTimeout bounds the time in which the peers agree on an early end and send their blocks.
func (r *run) stopTimeout() time.Duration { return 3*r.PeerTimeout + StopTime }

// checkStop looks, at every tick after a request to stop, for a peer that neither relaxes nor sends anything but signs of life, as one
// whose relaxation does not return: the others do not wait for it for the whole of stopTimeout.
func (r *run) checkStop() {
	if !r.stopping || r.failure != nil || r.early() {
		return
	}
	limit := r.PeerTimeout + StopTime
	for _, m := range r.members {
		if m.stillTicks++; m.stillTicks > r.ticks(limit) && !m.done() && !m.blocked && m.conn != 0 {
			r.fail(failure{reported, m.rank, fmt.Sprintf("%s has not relaxed for %v, and does not end", m, limit)})
		}
	}
}

func (r *run) failOverdue() {
	for _, m := range r.members {
		if !m.done() {
			r.fail(failure{reported, m.rank, fmt.Sprintf("%s did not end in time after the request to stop", m)})
		}
	}
}
