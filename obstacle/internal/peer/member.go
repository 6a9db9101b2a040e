package peer

import (
	"errors"
	"time"

	"github.com/p2pdc/p2pdc/internal/register"
	"github.com/p2pdc/p2pdc/obstacle/internal/rendezvous"
	"github.com/p2pdc/p2pdc/solver/problem"
)

// member is the state of a peer from which its decisions are made. It has no clock, connection or goroutine: the shell
// calls step with what has happened and executes the effects.
type member struct {
	suspect time.Duration // silence after which the run gives up a host
	timeout time.Duration // of a peer
	byUser  bool          // a user has started this peer by hand

	now   time.Duration // of the event that is handled
	facts               // of that event

	started bool
	stops   bool             // an early end of the run was requested
	leaves  bool             // the parts of this process are to be moved to others
	lost    *rendezvous.Lost // why the run has failed; nil: it has not
	bye     *rendezvous.Bye  // nil: the leader has not ended the run
	cutOff  bool             // the connection to the leader has ended, and there is no other one
	outcome outcome
	failure error // the first; nothing begins after it

	search
	entering
	working
	outputs
}

// outcome says how the part of a peer in a run has ended.
type outcome int

const (
	inProgress outcome = iota
	finished           // the leader has ended the run after the answer of this peer
	reported           // the run has failed, which the leader knows
	failed             // for the reason in failure
)

// Reasons for the end of a peer, or of its work in an epoch.
var (
	errLauncherLeft = errors.New("the launcher has left")
	errNextEpoch    = errors.New("a newer epoch begins")
)

func newMember(w *rendezvous.Welcome, byUser bool) *member {
	m := &member{suspect: w.Spec.Suspect, timeout: w.Spec.PeerTimeout, byUser: byUser}
	m.epoch, m.open = w.Epoch, w.Epoch
	return m
}

// event is an input of a member. The fields that are set say what has happened; without any, a deadline has passed.
type event struct {
	message  rendezvous.Message // of the leader
	assigned *assigned          // work that the leader has sent
	keeps    string             // address at which this process keeps the register from now on
	closed   bool               // the connection to the leader has ended
	asked    *found             // answer to ask
	decided  *register.Term     // answer to propose; zero: the proposal was not decided
	request  request            // of the user
	ended    *ended             // answer to do
	facts
}

// facts are what decisions need to know at every event.
type facts struct {
	known register.Term // newest that the register of this process knows; zero: it keeps none
	over  bool          // this end closes the connection to the leader: the peer ends
	held  problem.Box   // of the values that the peer has while it does not relax; empty: it has none
	halts bool          // with an Epoch: the peers that were lost stop the relaxation, see epoch.stops
}

// found is the answer to ask.
type found struct {
	address string // of the process that leads the run
	err     error  // no process that leads it was found
}

// ended is the end of a job.
type ended struct {
	job    job
	number int
	err    error
}

// request is what a user asks for.
type request int

const (
	toStop  request = iota + 1 // with the best iterate
	toLeave                    // after other processes have taken the parts of this one
)

// step makes the decisions about an event at the time now, and returns their effects.
func (m *member) step(now time.Duration, o event) []effect {
	if m.outcome != inProgress {
		return nil
	}
	m.now, m.facts = now, o.facts
	m.adopt(o.known)
	switch {
	case o.message != nil:
		m.receive(o.message)
	case o.assigned != nil:
		m.work = o.assigned
		m.accept()
	case o.keeps != "":
		m.self = o.keeps
	case o.closed:
		m.leaderLost()
	case o.decided != nil:
		m.decided(*o.decided)
	case o.asked != nil:
		m.asked(o.asked)
	case o.request != 0:
		m.requested(o.request)
	case o.ended != nil && o.ended.number == m.entryJob:
		m.entryEnded(o.ended.job, o.ended.err)
	case o.ended != nil && o.ended.number == m.taskJob:
		m.taskEnded(o.ended.job, o.ended.err)
	case m.contact == pausing && (now >= m.deadline || o.over):
		m.nextRound()
	}
	m.advance()
	return m.take()
}

// receive makes the decisions about a message of the leader.
func (m *member) receive(msg rendezvous.Message) {
	switch msg := msg.(type) {
	case rendezvous.Start:
		if m.started = true; m.task == unstarted {
			m.relax()
		}
	case rendezvous.Stop:
		m.stop()
	case rendezvous.Lost:
		m.runFailed(&msg)
	case rendezvous.Epoch:
		m.epochBegins(&msg)
	case rendezvous.Bye:
		m.bye = &msg
		m.leaderGone()
	case rendezvous.Term:
		if m.adopt(msg.Term); m.lasting() && !m.lasted {
			m.lasted = true
			m.add(detect{m.silence()})
			m.debug("another process can lead the run", "term", uint64(m.term.Number))
		}
		m.add(learn{msg.Term, true})
	case rendezvous.Record:
		m.record = true
	}
}

func (m *member) stop() {
	if !m.stops {
		m.stops = true
		m.add(stop{})
	}
}

func (m *member) requested(r request) {
	switch r {
	case toStop:
		if m.byUser && !m.stops {
			m.warn("requesting an early end of the run; a second Ctrl-C ends this process at once")
		}
		m.stop()
	case toLeave:
		m.leaves = true
		m.info("leaving: asking the launcher to move the parts of this process")
		m.add(send{rendezvous.Leave{}})
	}
}

// runFailed ends the work of this peer, since the run has failed, and has it send the values that it has.
func (m *member) runFailed(why *rendezvous.Lost) {
	if m.lost != nil {
		return
	}
	if m.lost = why; m.task != idle {
		m.add(abort{m.at}) // ends every blocking call
	}
	switch m.task {
	case unstarted:
		m.fail(errors.New(why.Why))
	case relaxed:
		m.keep()
	case answering:
		m.deliver()
	}
}

// leaderGone ends what waits for the leader, since no process leads the run any more, or the run is over.
func (m *member) leaderGone() {
	m.contact, m.cutOff = alone, true
	m.add(hangUp{})
	switch {
	case m.task == unstarted:
		m.quit()
	case m.task == relaxed, m.task == answering && !m.sending:
		m.afterAnswer()
	}
}

// fail ends the part of this peer in the run, after the end of the work in progress.
func (m *member) fail(err error) {
	if m.failure == nil {
		m.failure = err
	}
	m.abandon()
}

// advance begins what has waited for the end of something else.
func (m *member) advance() {
	switch stopped := m.failure != nil || m.cutOff || m.lost != nil; {
	case m.outcome != inProgress:
	case stopped && m.task == idle:
		m.end()
	case stopped:
	case m.entry == leaving && !m.yields():
		m.reopen()
	case m.entry == resumable && !m.yields():
		m.enterBy(resuming, toResume)
	case m.entry == queued && m.task == idle:
		m.enter()
	}
}

// end ends the part of this peer in the run, which has stopped while the peer does not work. If the run has failed and
// the peer has values, it sends them first.
func (m *member) end() {
	switch {
	case m.cutOff && m.lost != nil:
		m.outcome = reported
	case m.cutOff && m.bye == nil, m.cutOff && m.failure == nil:
		m.failure, m.outcome = errLauncherLeft, failed
	case m.failure != nil:
		m.outcome = failed
	case m.held.Empty():
		m.failure, m.outcome = errors.New(m.lost.Why), failed
	default:
		m.surrender()
	}
}

// wake returns when a deadline passes, and false if there is none.
func (m *member) wake() (time.Duration, bool) { return m.deadline, m.contact == pausing }
