// Package member makes the decisions of a peer of a run: about commands of the leader, epochs, the end of the work, and
// the search for another leader. It has no clock, connection or goroutine.
//
// A shell (package peer, or a test) calls Member.Step with each Event, one after the other, and executes the effects in
// their order. What takes time is a Job, whose end is an event. There is at most one job of entering an epoch and one of
// working in an epoch at a time. The end of a job that the member has replaced has no effect.
package member

import (
	"errors"
	"slices"
	"time"

	"github.com/p2pdc/p2pdc/internal/register"
	"github.com/p2pdc/p2pdc/obstacle/internal/rendezvous"
	"github.com/p2pdc/p2pdc/solver/problem"
)

// Member is the state of a peer from which its decisions are made. It has no clock, connection or goroutine: the shell
// calls Step with what has happened and executes the effects.
type Member struct {
	suspect   time.Duration // silence after which the run gives up a host
	timeout   time.Duration // of a peer
	unguarded time.Duration // silence of the leader's host after which it counts as lost, if no other one can lead
	recovers  bool          // the run goes on after losses
	byUser    bool          // a user has started this peer by hand

	now   time.Duration // of the event that is handled
	Facts               // of that event

	Started bool
	stops   bool             // an early end of the run was requested
	leaves  bool             // the parts of this process are to be moved to others
	Lost    *rendezvous.Lost // why the run has failed; nil: it has not
	Bye     *rendezvous.Bye  // nil: the leader has not ended the run
	cutOff  bool             // the connection to the leader has ended, and there is no other one
	Outcome Outcome
	Failure error // the first; nothing begins after it

	search
	entering
	working
	series
	outputs
}

// Outcome says how the part of a peer in a run has ended.
type Outcome int

const (
	InProgress Outcome = iota
	Finished           // the leader has ended the run after the answer of this peer
	Reported           // the run has failed, which the leader knows
	Failed             // for the reason in failure
)

// Reasons for the end of a peer, or of its work in an epoch.
var (
	ErrLauncherLeft = errors.New("the launcher has left")
	ErrNextEpoch    = errors.New("a newer epoch begins")
	ErrRelaxes      = errors.New("the code of the iteration does not return")
)

// New returns a member of a run that has welcomed it. Without other processes that can lead the run, its leader counts as lost
// after a silence. byUser states that a user has started the peer by hand.
func New(w *rendezvous.Welcome, silence time.Duration, byUser bool) *Member {
	m := &Member{suspect: w.Spec.Suspect, timeout: w.Spec.PeerTimeout, unguarded: silence, byUser: byUser}
	m.recovers = w.Spec.Recovers()
	m.lasts = w.Spec.Lasting()
	m.Epoch, m.open = w.Epoch, w.Epoch
	return m
}

// Event is an input of a member. The fields that are set say what has happened; without any, a deadline has passed.
type Event struct {
	Message  rendezvous.Message // of the leader
	Assigned *Assigned          // work that the leader has sent
	Keeps    string             // address at which this process keeps the register from now on
	Closed   bool               // the connection to the leader has ended
	Asked    *Found             // answer to Ask
	Decided  *register.Term     // answer to Propose; zero: the proposal was not decided
	Request  Request            // of the user
	Step     int                // a time step has ended; 0: none
	Ended    *Ended             // answer to Do, Hold or SendEnd
	Facts
}

// Facts are what decisions need to know at every event.
type Facts struct {
	Known register.Term // newest that the register of this process knows; zero: it keeps none
	Over  bool          // this end closes the connection to the leader: the peer ends
	Held  problem.Box   // of the values that the peer has while it does not relax; empty: it has none
	Loss  bool          // with the end of a job: the loss of another peer may have caused the error
	Halts bool          // with an Epoch: the peers that were lost stop the relaxation, see epoch.stops
}

// Found is the answer to Ask.
type Found struct {
	Address string // of the process that leads the run
	Err     error  // no process that leads it was found
}

// Ended is the end of a job.
type Ended struct {
	Job    Job
	Number int
	Err    error
}

// Request is what a user asks for.
type Request int

const (
	ToStop  Request = iota + 1 // with the best iterate
	ToLeave                    // after other processes have taken the parts of this one
)

// Step makes the decisions about an event at the time now, and returns their effects.
func (m *Member) Step(now time.Duration, o Event) []Effect {
	if m.Outcome != InProgress {
		return nil
	}
	m.now, m.Facts = now, o.Facts
	m.adopt(o.Known)
	switch {
	case o.Message != nil:
		m.receive(o.Message)
	case o.Assigned != nil:
		m.work, m.arrived = o.Assigned, m.conn
		m.accept()
	case o.Keeps != "":
		m.self = o.Keeps
	case o.Closed:
		m.leaderLost()
	case o.Decided != nil:
		m.decided(*o.Decided)
	case o.Asked != nil:
		m.asked(o.Asked)
	case o.Request != 0:
		m.requested(o.Request)
	case o.Ended != nil && o.Ended.Number == m.entryJob:
		m.entryEnded(o.Ended.Job, o.Ended.Err)
	case o.Step > 0:
		m.stepEnded(o.Step)
	case o.Ended != nil && o.Ended.Job == ToHold:
		m.stepHeld(o.Ended)
	case o.Ended != nil && o.Ended.Job == ToSend:
		m.endSent(o.Ended)
	case o.Ended != nil && o.Ended.Number == m.taskJob:
		m.taskEnded(o.Ended.Job, o.Ended.Err)
	case m.contact == pausing && (now >= m.deadline || o.Over):
		m.nextRound()
	}
	m.advance()
	return m.take()
}

// receive makes the decisions about a message of the leader.
func (m *Member) receive(msg rendezvous.Message) {
	switch msg := msg.(type) {
	case rendezvous.Start:
		if m.Started = true; m.task == unstarted {
			m.relax()
		}
	case rendezvous.Stop:
		m.stop()
	case rendezvous.Lost:
		m.runFailed(&msg)
	case rendezvous.Epoch:
		m.epochBegins(&msg)
	case rendezvous.Resend:
		m.resend(msg.From)
	case rendezvous.Bye:
		m.Bye = &msg
		m.leaderGone()
	case rendezvous.Term:
		if m.adopt(msg.Term); m.lasting() && !m.lasted {
			m.lasted = true
			m.add(Detect{m.silence()})
			m.debug("another process can lead the run", "term", uint64(m.Term.Number))
		}
		m.add(Learn{msg.Term, true})
	case rendezvous.Record:
		m.record = true
	}
}

func (m *Member) stop() {
	if !m.stops {
		m.stops = true
		m.add(Stop{})
	}
}

func (m *Member) requested(r Request) {
	switch r {
	case ToStop:
		if m.byUser && !m.stops {
			m.warn("requesting an early end of the run; a second Ctrl-C ends this process at once")
		}
		m.stop()
	case ToLeave:
		m.leaves = true
		m.info("leaving: asking the launcher to move the parts of this process")
		m.add(Send{rendezvous.Leave{}})
	}
}

// runFailed ends the work of this peer, since the run has failed, and has it send the values that it has.
func (m *Member) runFailed(why *rendezvous.Lost) {
	if m.Lost != nil {
		return
	}
	if m.Lost = why; m.task != idle {
		m.add(Abort{m.at}) // ends every blocking call
	}
	switch m.task {
	case beginning, unstarted:
		m.quit()
	case relaxed:
		m.keep()
	case answering:
		m.deliver()
	}
}

// leaderGone ends what waits for the leader, since no process leads the run any more, or the run is over.
func (m *Member) leaderGone() {
	m.contact, m.cutOff = alone, true
	m.add(HangUp{})
	switch {
	case m.task == beginning, m.task == unstarted:
		m.quit()
	case m.task == relaxed, m.task == answering && !m.sending:
		m.afterAnswer()
	}
}

// fail ends the part of this peer in the run, after the end of the work in progress.
func (m *Member) fail(err error) {
	if m.Failure == nil {
		m.Failure = err
	}
	m.abandon()
}

// advance begins the jobs that waited for other jobs to end.
func (m *Member) advance() {
	m.sendEnd()
	m.boundRelaxation()
	if m.suspected != nil && (m.now >= m.until || m.Lost != nil || m.cutOff) {
		m.fail(m.suspected)
		m.suspected = nil
	}
	switch stopped := m.Failure != nil || m.cutOff || m.Lost != nil; {
	case m.Outcome != InProgress:
	case stopped && m.task == idle:
		m.end()
	case stopped:
	case m.entry == leaving && !m.yields():
		m.reopen()
	case m.entry == opened && m.endJob == 0:
		m.enterBy(reporting, ToReport)
	case m.entry == resumable && !m.yields():
		m.enterBy(resuming, ToResume)
	case m.entry == queued && m.task == idle:
		m.enter()
	case m.task == beginning && !m.frozen && m.endJob == 0:
		m.beginSteps()
	case m.task == answering:
		m.deliver()
	}
}

// end ends the part of this peer in the run, which has stopped while the peer does not work. If the run has failed and
// the peer has values, it sends them first.
func (m *Member) end() {
	switch {
	case m.Lost != nil && (m.cutOff || m.Failure == nil && m.Held.Empty()):
		m.Outcome = Reported
	case m.cutOff && m.Bye == nil, m.cutOff && m.Failure == nil:
		m.Failure, m.Outcome = ErrLauncherLeft, Failed
	case m.Failure != nil:
		m.Outcome = Failed
	default:
		m.surrender()
	}
}

// Wake returns when a deadline passes, and false if there is none.
func (m *Member) Wake() (time.Duration, bool) {
	var all []time.Duration
	if m.contact == pausing {
		all = append(all, m.deadline)
	}
	if m.suspected != nil {
		all = append(all, m.until)
	}
	if m.overdue > 0 {
		all = append(all, m.overdue)
	}
	if len(all) == 0 {
		return 0, false
	}
	return slices.Min(all), true
}
