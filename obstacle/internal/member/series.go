package member

import (
	"slices"

	"github.com/p2pdc/p2pdc/obstacle/internal/rendezvous"
)

// series are the ends of the newest time steps in the box of a peer. It holds them, and sends them to the process that
// leads the run while it continues to relax. A step ends when the end of the one before was sent.
//
// A step ends at a peer only after all peers have ended the one before. If the leader is lost, each peer holds the ends
// that it has until it knows from which step the next leader needs them. The numbers of complete steps of two peers
// then differ by at most one, so two ends each contain a step that all have.
type series struct {
	lasts  bool  // another process leads the run if its leader is lost, so two ends are held
	steps  []int // numbers of successive steps that are held; the first is that before the epoch
	next   int   // step whose end is sent next
	on     int   // connection on which ends are sent, + 1; 0: none
	frozen bool  // the leader was lost, and the next one has not said which ends it needs
	ended  int   // step that has ended and is not held yet; 0: none
	holds  int   // number of the job that copies the values of the newest step; 0: none
	before []int // steps before it
	endJob int   // number of the job that sends an end; 0: none
	endOn  int   // connection on which it does, + 1
	endOf  int   // the step
}

// beginSteps begins the time steps of an epoch. Later ends are sent on the connection that has brought the work.
func (m *Member) beginSteps() {
	after := m.accepted.After
	m.steps, m.next, m.on = []int{after}, after+1, m.workOn+1
	m.ended, m.holds = 0, 0
	m.add(BeginSteps{})
	m.workBy(announcing, ToAnnounce)
}

// newest returns the number of the newest step that is held.
func (m *Member) newest() int { return m.steps[len(m.steps)-1] }

// sent reports whether the leader has the ends of all steps.
func (m *Member) sent() bool {
	return len(m.steps) == 0 || m.on == m.conn+1 && m.next > m.newest()
}

// stepEnded awaits that the end of a step can be held. That of a former epoch is abandoned.
func (m *Member) stepEnded(step int) {
	if m.task == relaxing && m.at == m.Epoch && len(m.steps) > 0 {
		m.ended = step
	}
}

// stepHeld allows to send the end of the newest step, or forgets the step, since it was abandoned.
func (m *Member) stepHeld(e *Ended) {
	if e.Number != m.holds {
		return
	}
	if m.holds = 0; e.Err != nil {
		m.steps = m.before
	}
}

// sendEnd holds the end of the step that has ended, if it can be held, and sends the next end.
func (m *Member) sendEnd() {
	if m.at < m.Epoch {
		m.ended = 0
	}
	if m.ended > 0 && !m.frozen && m.next > m.newest() && m.endJob == 0 {
		drop := len(m.steps) == rendezvous.MaxHeld || !m.lasts
		if m.before = slices.Clone(m.steps); drop {
			m.steps = m.steps[1:]
		}
		m.steps = append(m.steps, m.ended)
		m.numbers++
		m.ended, m.holds = 0, m.numbers
		m.add(Hold{m.numbers, drop})
	}
	if m.endJob == 0 && m.on == m.conn+1 && m.contact == connected && m.holds == 0 && m.next <= m.newest() {
		m.numbers++
		m.endJob, m.endOn, m.endOf = m.numbers, m.on, m.next
		m.add(SendEnd{m.numbers, m.next})
	}
}

// endSent goes on to the next end.
func (m *Member) endSent(e *Ended) {
	m.endJob = 0
	switch {
	case m.on != m.endOn, m.next != m.endOf: // another leader, or epoch
	case e.Err != nil:
		m.on = 0 // another leader asks for what it needs
	default:
		m.next++
	}
}

// resend sends the ends from that of a step on to the process that leads the run now; from -1: none.
func (m *Member) resend(from int) {
	m.frozen, m.on = false, 0
	if from >= 0 && len(m.steps) > 0 {
		m.on, m.next = m.conn+1, max(from, m.steps[0])
	}
}
