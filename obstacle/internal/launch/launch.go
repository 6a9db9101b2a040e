package launch

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"

	"github.com/p2pdc/p2pdc/obstacle/internal/blocks"
	"github.com/p2pdc/p2pdc/obstacle/internal/host"
	"github.com/p2pdc/p2pdc/obstacle/internal/rendezvous"
	"github.com/p2pdc/p2pdc/p2psap/driver"
	"github.com/p2pdc/p2pdc/solver/iterate"
	"github.com/p2pdc/p2pdc/solver/placement"
	"github.com/p2pdc/p2pdc/solver/problem"
)

// ErrInterrupted is the error of a run that was interrupted before its first relaxation.
var ErrInterrupted = errors.New("interrupted before the first relaxation")

// Run runs the plan. It returns an error if the run could not start. Failures after the first relaxation are reported
// in the Outcome. When ctx ends, Run kills its children and returns at once.
func Run(ctx context.Context, p Plan) (*Outcome, error) {
	r := newRun(p, rand.Text(), driver.NewKey())
	var err error
	if r.series, err = newSeries(&p); err != nil {
		return nil, err
	}
	r.KeepEvery = r.keepEvery()
	r.Status.update(func(s *State) { s.Spec = r.Spec })
	children, cancel := context.WithCancel(ctx)
	r.ctx = children
	release := sync.OnceFunc(func() { r.shutdown(cancel) })
	defer release()
	defer exitOnPanic() // before release, which tells the peers that the run is over
	if err := r.gather(); err != nil {
		return nil, err
	}
	if r.monitor(); r.early() {
		return nil, r.notStarted()
	}
	o := r.outcome()
	release() // frees the memory of the peers before the launcher computes
	r.fill(ctx, o)
	r.publish(o)
	r.final.drain(ctx)
	return o, nil
}

func newRun(p Plan, name string, key driver.Key) *run {
	r := &run{
		Plan:   p,
		name:   name,
		key:    key,
		begin:  time.Now(),
		events: make(chan event, 4*p.Partition.Peers()+16),
		done:   make(chan struct{}),
		tick:   tickEvery(p.PeerTimeout, p.Suspect),
	}
	if r.Reports = p.Status != nil; !r.Reports {
		r.Status = &Status{} // for obstacle attach
	}
	for rank := range p.Partition.Peers() {
		box := p.Partition.Box(iterate.Rank(rank))
		r.members = append(r.members, &member{rank: rank, box: box, final: box})
	}
	r.Spec.Problem, r.Fingerprint, r.N = p.ProblemSpec.Name(), fmt.Sprintf("%x", p.ProblemSpec.Fingerprint()), p.Problem.N
	r.FromFile = r.FromFile || p.Initial != nil
	r.moving = moving{
		meters: map[process]*placement.Meter{}, leaving: map[process]bool{}, slow: map[process]float64{},
	}
	r.owned = newOwnership(&p)
	r.final.init()
	r.beat.Residual, r.residual = math.NaN(), math.NaN()
	return r
}

// run is a run in progress. The goroutine of Run owns its fields. Other goroutines send it events, and write blocks
// to u, each in its own box.
type run struct {
	Plan
	ctx      context.Context // when it ends, children are killed
	done     chan struct{}   // closed when events are no longer handled
	name     string
	key      driver.Key // of the control channels
	begin    time.Time
	started  time.Time     // of the relaxation; zero: the peers get ready for it
	now      time.Duration // of the event that is handled, since started, 0 before; decisions read no clock
	verdict  time.Duration // of the last result; 0: none
	server   *rendezvous.Server
	members  []*member
	starting []*member // spare peers that have not joined
	recovery
	keepers
	moving
	final   final
	capture capture // for Captures
	sample  sample  // for Samples
	u       []float64
	alloc   sync.Once     // allocates u
	owned   *ownership    // boxes of the blocks in u
	holes   []problem.Box // boxes of u for which no block arrived
	series  *series       // nil for a stationary problem
	events  chan event

	tick      time.Duration // interval of ticks
	joining   bool          // not all peers have joined and listen
	joined    int           // processes that have joined meanwhile, but for those that cannot take part
	joinTicks int           // until the time to join is over; 0: it is not bounded
	timeTicks int           // until the time to relax is over; 0: it is not bounded
	deafTicks int           // for which no peer has been heard
	deaf      bool          // that was logged
	refusal   string        // why the last peer was lost before the start; "" if none was
	stopping  bool          // an early end was requested
	solved    atomic.Bool   // the run has ended at its tolerance
	failure   *failure      // the most informative failure so far
	ending    string        // why the run cannot go on after a loss; "": it can
	ticksLeft int           // ticks until the peers are overdue; 0 before a request to end
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
	reported = iota + 1 // a peer reported it
	silent              // the peer timed out
	closed              // the connection ended
	exited              // the process ended
)

// vector returns the assembled iterate. It is allocated when the first block arrives, after a peer of this process
// has freed its arrays.
func (r *run) vector() []float64 {
	r.alloc.Do(func() {
		if r.u = r.Answer; r.u == nil {
			r.u = host.Array(r.Problem.Points())
		}
	})
	return r.u
}

// emit sends an event to the launcher and reports whether the run is still in progress.
func (r *run) emit(o event) bool {
	select {
	case r.events <- o:
		return true
	case <-r.done:
		return false
	}
}

// monitor handles events until the end.
func (r *run) monitor() {
	tick := time.NewTicker(r.tick)
	defer tick.Stop()
	interrupt := r.Interrupt
	for !r.finished() {
		select {
		case o := <-r.events:
			r.setNow()
			r.handle(o)
		case <-tick.C:
			r.setNow()
			if r.check() {
				return
			}
		case <-interrupt:
			interrupt = nil
			r.stop()
		case <-r.ctx.Done():
			r.fail(failure{exited, -1, "ended at once, on request"})
			return
		}
	}
}

// setNow sets the time of the event that is handled.
func (r *run) setNow() {
	if !r.early() {
		r.now = time.Since(r.started)
	}
}

// limitTime bounds the time to relax. The peers observe MaxTime themselves; the limit is for a peer that does not.
func (r *run) limitTime() {
	if r.MaxTime > 0 {
		r.timeTicks = r.ticks(r.MaxTime - time.Since(r.started) + r.stopTimeout())
	}
}

// check makes the decisions that are due at a tick. It reports whether the run ends because peers are overdue.
func (r *run) check() (overdue bool) {
	r.checkJoining()
	r.checkKeepers()
	r.checkRecovery()
	r.checkMoves()
	r.checkCapture()
	r.checkSample()
	if r.timeTicks--; r.timeTicks == 0 {
		r.stop()
	}
	if r.checkSilence(); r.ticksLeft == 1 {
		r.failOverdue()
		return true
	}
	r.ticksLeft = max(r.ticksLeft-1, 0)
	return false
}

// finished reports whether every peer has sent its result or is gone.
func (r *run) finished() bool {
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

func (r *run) handle(o event) {
	if o.joined != nil {
		r.enroll(o.joined, o.join)
		return
	}
	if o.decided != nil {
		r.termDecided(*o.decided)
		return
	}
	m := o.of
	if r.handleFormer(m, o) || r.ofNoMember(m, o) || o.child != nil && o.child != m.child {
		return
	}
	m.quietTicks = 0
	switch {
	case o.exited:
		// Messages that it sent before its end may still be unread; the end of its connection follows them.
		m.exited, m.exit = true, o.exit
		switch {
		case m.result != nil:
		case m.blocked.Load() || r.anyOf(m, func(q *member) bool { return q.closed != nil }):
			r.processEnded(m)
		case m.conn == nil && r.early():
			r.endedEarly(m)
		}
	case o.closed != nil:
		switch {
		case m.result != nil && (!m.missing() || m.result.Reason == Failed):
			m.gone = true
		case m.exited:
			r.processEnded(m)
		case r.anyOf(m, func(q *member) bool { return q.child != nil }): // the exit status of its process follows
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
		r.Status.update(func(s *State) { s.Sweeps[m.rank] = msg.Sweep })
		if m.rank == 0 {
			if r.beat.Sweep == 0 && msg.Sweep > 0 {
				r.Log.Info().Msg("relaxing")
			}
			r.beat.Step, r.beat.Sweep = msg.Step, msg.Sweep
		}
		if res := float64(msg.Residual); !math.IsNaN(res) {
			r.beat.Residual, r.residual = res, res
		}
		if m.rank == 0 {
			r.beat.Elapsed = r.now
			r.Status.update(func(s *State) { s.Progress = r.beat })
			if r.Watch != nil {
				r.Watch(r.beat)
			}
		}
	case rendezvous.Sessions:
		r.Status.update(func(s *State) { s.report(m.rank, &msg) })
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
		if msg.Placed && (r.Answer == nil || m.child == nil) {
			m.gone = true
			m.conn.Close()
			r.fail(failure{closed, m.rank,
				fmt.Sprintf("%s claims that its block is in shared memory, which it does not have", m)})
			return
		}
		m.result = &msg
		r.Status.update(func(s *State) {
			s.report(m.rank, &rendezvous.Sessions{Sessions: msg.Sessions, Former: msg.Former, Account: msg.Account})
		})
		if msg.Placed {
			m.received = blocks.Bytes(m.final)
		}
		r.Log.Debug().Int("rank", m.rank).Str("reason", msg.Reason).Uint64("sweeps", msg.Sweeps).Msg("result")
		if msg.Reason != Failed {
			return
		}
		if r.early() && msg.Lost < 0 {
			r.cannotTakePart(m, msg.Error)
			return
		}
		text := fmt.Sprintf("%s failed: %s", m, msg.Error)
		if r.Recovers() && r.failure == nil {
			r.lose(m, failure{reported, m.rank, text})
			return
		}
		blame := m.rank
		if msg.Lost >= 0 && msg.Lost < len(r.members) {
			blame = msg.Lost
			text = fmt.Sprintf("%s was lost: %s reports %s", r.members[blame], m, msg.Error)
		}
		r.fail(failure{reported, blame, text})
	case rendezvous.Block:
		m.final = msg.Box
	case rendezvous.Leave:
		if r.joining && m.child == nil {
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
		m.conn.Close()
		r.lose(m, failure{closed, m.rank, fmt.Sprintf("%s sent an unexpected %T", m, msg)})
	}
}

// checkSilence marks peers lost that timed out, or whose process ended while they were blocked.
func (r *run) checkSilence() {
	r.listen()
	for _, m := range r.members {
		held := m.blocked.Load()
		switch {
		case m.done():
		case held && m.exited:
			r.processEnded(m)
		case m.closed != nil:
			if m.silentFor(false, r.ticks(causeTime)) {
				r.disconnected(m, m.closed)
			}
		case r.active && m.conn == nil: // its replacement has not joined
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
	level := zerolog.DebugLevel
	if first || f.weight > r.failure.weight && (r.failure.rank == f.rank || r.failure.weight == reported) {
		if r.ending != "" {
			f.text += "; " + r.ending
		}
		r.failure = &f
		level = zerolog.WarnLevel
	}
	if f.weight > reported {
		r.Status.update(func(s *State) { s.lose(f.rank) })
	}
	r.Log.WithLevel(level).Int("rank", f.rank).Msg(f.text)
	if first && r.early() {
		r.ticksLeft = r.ticks(causeTime)
	} else if first {
		for _, m := range r.members { // those that have sent their results, too
			m.notify(rendezvous.Lost{Rank: f.rank, Why: f.text, CutOff: r.cutOff})
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
	r.Log.Info().Msg("stopping")
	for _, m := range r.members {
		if !m.done() {
			m.notify(rendezvous.Stop{})
		}
	}
	r.ticksLeft = r.ticks(r.stopTimeout())
}

// stopTimeout bounds the time in which the peers agree on an early end and send their blocks.
func (r *run) stopTimeout() time.Duration { return 3*r.PeerTimeout + StopTime }

func (r *run) failOverdue() {
	for _, m := range r.members {
		if !m.done() {
			r.fail(failure{reported, m.rank, fmt.Sprintf("%s did not end in time after the request to stop", m)})
		}
	}
}
