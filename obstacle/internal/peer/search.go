package peer

import (
	"cmp"
	"errors"
	"slices"
	"time"

	"github.com/p2pdc/p2pdc/internal/register"
	"github.com/p2pdc/p2pdc/obstacle/internal/launch"
	"github.com/p2pdc/p2pdc/obstacle/internal/rendezvous"
)

// Times of the search for the process that leads.
const (
	leadTime   = 5 * time.Second        // least bound of the search, see searchLimit
	askTime    = 3 * time.Second        // largest bound of one attempt, see attemptTime
	searchTime = 50 * time.Millisecond  // between two attempts
	turnTime   = 200 * time.Millisecond // after which the next keeper proposes itself
	voteTime   = time.Second            // least bound of one proposal; it is that of an attempt if that is longer
	roundsOver = 10                     // in which nothing listens anywhere, after which the search ends
)

// errNobody is the error of a search at hosts that answer, where no process listens.
var errNobody = errors.New("nothing listens at the addresses of the keepers")

// contact is what a peer does about the process that leads the run.
//
//	state      event                     next
//	connected  the connection has ended  proposing, asking or alone
//	proposing  the proposal has ended    asking
//	asking     a process leads the run   connected
//	asking     none was found            pausing or alone
//	pausing    the deadline has passed   proposing or asking
type contact int

const (
	connected contact = iota
	proposing         // this process as the next leader, to the other keepers
	asking            // the keepers for the process that leads
	pausing           // until the next attempt
	alone             // no process that leads the run was found, or the peer has ended
)

// search is the connection to the process that leads the run, and the search for another one after its loss. If this
// process is a keeper, it may lead the run itself.
type search struct {
	contact  contact
	term     register.Term // the newest that is known; zero: the run has no keepers but the launcher
	lasted   bool          // another process could lead, at least once
	self     string        // address of this process as a keeper; "": it is none
	record   bool          // this process has what it needs to lead the run
	leads    bool          // this process has begun to lead the run
	base     register.Term // whose leader was lost
	began    time.Duration // the search
	round    int           // number of former attempts
	deadline time.Duration // of pausing
	why      error         // the last attempt has failed, while alone; nil: the peer has made none
	conn     int           // number of former connections
}

// adopt accepts a decided term.
func (m *member) adopt(t register.Term) {
	if t.Number > m.term.Number {
		m.term = t
	}
}

// lasting reports whether another process can lead if the leader is lost.
func (m *member) lasting() bool { return len(m.term.Keepers) > 1 }

// silence returns after which silence of its host the leader counts as lost.
func (m *member) silence() time.Duration {
	if !m.lasting() {
		return m.timeout + launch.StopTime
	}
	return 2 * m.suspect
}

// leaderLost begins the search for another process that leads the run, unless there can be none, or the run has failed.
func (m *member) leaderLost() {
	if !m.lasting() || m.over || m.lost != nil {
		m.leaderGone()
		return
	}
	m.base, m.began, m.round = m.term, m.now, 0
	m.warn("the leader of the run is lost: looking for the process that leads now", "term", m.term.Number)
	m.add(learn{term: m.term})
	m.add(reach{false})
	m.attempt()
}

// attempt begins an attempt to find the process that leads.
func (m *member) attempt() {
	if !m.turn() {
		m.ask()
		return
	}
	want := register.Term{Number: m.base.Number + 1, Epoch: m.base.Epoch, Leader: m.self, Keepers: []string{m.self}}
	for _, address := range m.base.Keepers {
		if address != m.base.Leader && address != m.self {
			want.Keepers = append(want.Keepers, address)
		}
	}
	want.Keepers = want.Keepers[:len(want.Keepers)-(len(want.Keepers)+1)%2]
	m.contact = proposing
	m.add(propose{m.base, want, max(voteTime, attemptTime(m.suspect))})
}

func (m *member) nextRound() {
	m.round++
	m.attempt()
}

// turn reports whether this process should propose itself now. The keepers do so one after the other, in the order of
// the term.
func (m *member) turn() bool {
	if m.self == "" || !m.record || m.leads || m.term.Number > m.base.Number {
		return false
	}
	before := 0 // keepers
	for _, address := range m.base.Keepers {
		if address == m.self {
			return m.now-m.began >= time.Duration(before)*turnTime
		}
		if address != m.base.Leader {
			before++
		}
	}
	return false
}

// decided continues an attempt after the proposal. If the keepers have agreed, this process begins to lead.
func (m *member) decided(t register.Term) {
	if m.adopt(t); m.self != "" && t.Leader == m.self {
		m.leads = true
		m.add(lead{t})
	}
	m.ask()
}

func (m *member) ask() {
	m.contact = asking
	m.add(ask{m.candidates(), attemptTime(m.suspect), m.epoch, m.silence()})
}

// asked ends an attempt. The search ends if the run goes on without this peer, or if it has lasted too long.
func (m *member) asked(f *found) {
	if f.err == nil {
		m.contact = connected
		m.conn++
		m.add(reach{true})
		m.add(use{f.address})
		if m.leaves { // the process that leads now has to be asked again
			m.add(send{rendezvous.Leave{}})
		}
		if m.task == answering {
			m.deliver()
		}
		return
	}
	_, refused := errors.AsType[*rendezvous.RefusedError](f.err)
	nobody := errors.Is(f.err, errNobody) && m.round > roundsOver
	if refused || nobody || m.over || m.now-m.began > m.searchLimit() {
		m.why = f.err
		m.warn("no process that leads the run takes this peer back", "error", f.err)
		m.leaderGone()
		return
	}
	m.contact, m.deadline = pausing, m.now+searchTime
}

// attemptTime bounds one attempt to find the process that leads. A lost leader that does not even refuse a connection
// must not use up the time in which peers have to return to the next one, which is twice suspect.
func attemptTime(suspect time.Duration) time.Duration { return min(askTime, cmp.Or(suspect, askTime)) }

// searchLimit bounds the search. It is not shorter than the process that leads then waits for peers to return.
func (m *member) searchLimit() time.Duration { return max(leadTime, m.timeout, m.silence()) }

// candidates returns the addresses of the processes that may lead the run after a lost one.
func (m *member) candidates() (out []string) {
	for _, address := range slices.Concat([]string{m.term.Leader}, m.term.Keepers, m.base.Keepers) {
		if !slices.Contains(out, address) {
			out = append(out, address)
		}
	}
	return out
}
