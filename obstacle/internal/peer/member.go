package peer

import (
	"time"

	"github.com/p2pdc/p2pdc/internal/register"
	"github.com/p2pdc/p2pdc/obstacle/internal/rendezvous"
)

// member is the state of a peer from which its decisions are made. It has no clock, connection or goroutine: the shell
// calls step with what has happened and executes the effects.
type member struct {
	suspect time.Duration // silence after which the run gives up a host
	timeout time.Duration // of a peer
	now     time.Duration // of the event that is handled
	lost    *rendezvous.Lost
	search
	outputs
}

func newMember(run *rendezvous.Spec) *member {
	return &member{suspect: run.Suspect, timeout: run.PeerTimeout}
}

// event is an input of a member. The fields that are set say what has happened; without any, a deadline has passed.
type event struct {
	message rendezvous.Message // of the leader
	keeps   string             // address at which this process keeps the register from now on
	closed  bool               // the connection to the leader has ended
	asked   *found             // answer to ask
	decided *register.Term     // answer to propose; zero: the proposal was not decided

	// At every event:
	known register.Term // newest that the register of this process knows; zero: it keeps none
	over  bool          // the peer ends
}

// found is the answer to ask.
type found struct {
	address string // of the process that leads the run
	err     error  // no process that leads it was found
}

// step makes the decisions about an event at the time now, and returns their effects.
func (m *member) step(now time.Duration, o event) []effect {
	m.now = now
	m.adopt(o.known)
	switch {
	case o.message != nil:
		m.receive(o.message)
	case o.keeps != "":
		m.self = o.keeps
	case o.closed:
		m.leaderLost(o.over)
	case o.decided != nil:
		m.decided(*o.decided)
	case o.asked != nil:
		m.asked(o.asked, o.over)
	case m.contact == pausing && (now >= m.deadline || o.over):
		m.nextRound()
	}
	return m.take()
}

// receive makes the decisions about a message of the leader.
func (m *member) receive(msg rendezvous.Message) {
	switch msg := msg.(type) {
	case rendezvous.Lost:
		if m.lost == nil {
			m.lost = &msg
		}
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

// wake returns when a deadline passes, and false if there is none.
func (m *member) wake() (time.Duration, bool) { return m.deadline, m.contact == pausing }
