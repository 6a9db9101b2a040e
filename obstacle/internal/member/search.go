package member

import (
	"cmp"
	"errors"
	"slices"
	"time"

	"github.com/p2pdc/p2pdc/internal/register"
	"github.com/p2pdc/p2pdc/obstacle/internal/rendezvous"
)

// Times of the search for the process that leads.
const (
	LeadTime   = 5 * time.Second        // least bound of the search, see searchLimit
	AskTime    = 3 * time.Second        // largest bound of one attempt, see attemptTime
	searchTime = 50 * time.Millisecond  // between two attempts
	turnTime   = 200 * time.Millisecond // after which the next keeper proposes itself
	voteTime   = time.Second            // least bound of one proposal; it is that of an attempt if that is longer
	roundsOver = 10                     // in which nothing listens anywhere, after which the search ends
)

// ErrNobody is the error of a search at hosts that answer, where no process listens.
var ErrNobody = errors.New("nothing listens at the addresses of the keepers")

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
	Term     register.Term // the newest that is known; zero: the run has no keepers but the launcher
	lasted   bool          // another process could lead, at least once
	self     string        // address of this process as a keeper; "": it is none
	record   bool          // this process has what it needs to lead the run
	leads    bool          // this process has begun to lead the run
	base     register.Term // whose leader was lost
	began    time.Duration // the search
	round    int           // number of former attempts
	deadline time.Duration // of pausing
	Why      error         // the last attempt has failed, while alone; nil: the peer has made none
	conn     int           // number of former connections
}

// adopt accepts a decided term.
func (m *Member) adopt(t register.Term) {
	if t.Number > m.Term.Number {
		m.Term = t
	}
}

// lasting reports whether another process can lead if the leader is lost.
func (m *Member) lasting() bool { return len(m.Term.Keepers) > 1 }

// silence returns after which silence of its host the leader counts as lost.
func (m *Member) silence() time.Duration {
	if !m.lasting() {
		return m.unguarded
	}
	return 2 * m.suspect
}

// leaderLost begins the search for another process that leads the run, unless there can be none, or the run has failed.
func (m *Member) leaderLost() {
	if !m.lasting() || m.Over || m.Lost != nil {
		m.leaderGone()
		return
	}
	m.base, m.began, m.round = m.Term, m.now, 0
	m.warn("the leader of the run is lost: looking for the process that leads now", "term", m.Term.Number)
	m.add(Learn{Term: m.Term})
	m.add(Reach{false})
	m.attempt()
}

// attempt begins an attempt to find the process that leads.
func (m *Member) attempt() {
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
	m.add(Propose{m.base, want, max(voteTime, attemptTime(m.suspect))})
}

func (m *Member) nextRound() {
	m.round++
	m.attempt()
}

// turn reports whether this process should propose itself now. The keepers do so one after the other, in the order of
// the term.
func (m *Member) turn() bool {
	if m.self == "" || !m.record || m.leads || m.Term.Number > m.base.Number {
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
func (m *Member) decided(t register.Term) {
	if m.adopt(t); m.self != "" && t.Leader == m.self {
		m.leads = true
		m.add(Lead{t})
	}
	m.ask()
}

func (m *Member) ask() {
	m.contact = asking
	m.frozen = true
	m.add(Ask{m.candidates(), attemptTime(m.suspect), m.Epoch, slices.Clone(m.steps), m.silence()})
}

// asked ends an attempt. The search ends if the run goes on without this peer, or if it has lasted too long.
func (m *Member) asked(f *Found) {
	if f.Err == nil {
		m.contact = connected
		m.conn++
		m.add(Reach{true})
		m.add(Use{f.Address})
		if m.leaves { // the process that leads now has to be asked again
			m.add(Send{rendezvous.Leave{}})
		}
		return
	}
	_, refused := errors.AsType[*rendezvous.RefusedError](f.Err)
	nobody := errors.Is(f.Err, ErrNobody) && m.round > roundsOver
	if refused || nobody || m.Over || m.now-m.began > m.searchLimit() {
		m.Why = f.Err
		m.warn("no process that leads the run takes this peer back", "error", f.Err)
		m.leaderGone()
		return
	}
	m.contact, m.deadline = pausing, m.now+searchTime
}

// attemptTime bounds one attempt to find the process that leads. A lost leader that does not even refuse a connection
// must not use up the time in which peers have to return to the next one, which is twice suspect.
func attemptTime(suspect time.Duration) time.Duration { return min(AskTime, cmp.Or(suspect, AskTime)) }

// searchLimit bounds the search. It is not shorter than the process that leads then waits for peers to return.
func (m *Member) searchLimit() time.Duration { return max(LeadTime, m.timeout, m.silence()) }

// candidates returns the addresses of the processes that may lead the run after a lost one.
func (m *Member) candidates() (out []string) {
	for _, address := range slices.Concat([]string{m.Term.Leader}, m.Term.Keepers, m.base.Keepers) {
		if !slices.Contains(out, address) {
			out = append(out, address)
		}
	}
	return out
}
