package software_test

import "github.com/p2pdc/p2pdc/ib/internal/verbs"

// flaw is what is wrong with a request of a program.
type flaw int

const (
	sound       flaw = iota
	localFlaw        // the element's key
	remoteFlaw       // the remote key of a write
	receiveFlaw      // the key of a receive request's element
)

// message is a send request as the model sees it.
type message struct {
	id        uint64
	operation verbs.Operation
	bytes     int
	signaled  bool
	flaw      flaw
}

func (m message) immediate() bool {
	return m.operation == verbs.SendImmediate || m.operation == verbs.WriteImmediate
}

func (m message) writes() bool {
	return m.operation == verbs.Write || m.operation == verbs.WriteImmediate
}

func (m message) takesReceive() bool { return m.operation != verbs.Write }

// receipt is a receive request as the model sees it.
type receipt struct {
	id    uint64
	bytes int
	flaw  flaw
}

// ending is a completion that the model expects. freed counts the requests of its queue
// that are done with it; message is what a receive request got.
type ending struct {
	id      uint64
	status  verbs.Status
	kind    verbs.CompletionKind
	freed   int
	message message
}

// model is the reference: what a queue pair a, which sends, and a queue pair b, which
// receives, must do by the specification. It has no packets, numbers, timers or
// acknowledgements: requests meet in order.
type model struct {
	transport verbs.Transport
	patient   bool // RNR retries have no end

	sends          []message
	receives       []receipt
	aBroken        bool
	bBroken        bool
	sent, received []ending // completions, in order
	done, got      int
}

// run does all that can be done. settled: all the time of the world has passed, so that
// what waits for the other end in vain has given up.
func (m *model) run(settled bool) {
	for m.bBroken && len(m.receives) > 0 {
		m.receive(verbs.StatusFlushed, 0, message{})
	}
	for len(m.sends) > 0 {
		s := m.sends[0]
		if m.aBroken {
			m.finish(verbs.StatusFlushed)
			continue
		}
		if !m.meet(s, settled) {
			return
		}
	}
}

// meet lets the oldest send request happen; false when it must wait.
func (m *model) meet(s message, settled bool) bool {
	reliable := m.transport == verbs.RC
	switch {
	case s.flaw == localFlaw && s.bytes > 0:
		m.fail(verbs.StatusLocalProtection)
	case m.bBroken && reliable:
		if !settled {
			return false
		}
		m.fail(verbs.StatusRetriesExceeded)
	case m.bBroken:
		m.finish(verbs.StatusOK)
	case s.flaw == remoteFlaw && s.writes() && s.bytes > 0:
		if reliable {
			m.breakReceiver()
		}
		m.conclude(verbs.StatusRemoteAccess)
	case s.takesReceive() && len(m.receives) == 0:
		if reliable && (!settled || m.patient) {
			return false
		}
		m.conclude(verbs.StatusRNRExceeded)
	case !s.writes() && m.receives[0].flaw == receiveFlaw && s.bytes > 0:
		m.receive(verbs.StatusLocalProtection, 0, message{})
		m.breakReceiver()
		m.conclude(verbs.StatusRemoteOperation)
	case !s.writes() && s.bytes > m.receives[0].bytes:
		m.receive(verbs.StatusLocalLength, 0, message{})
		m.breakReceiver()
		m.conclude(verbs.StatusRemoteInvalid)
	default:
		if s.takesReceive() {
			kind := verbs.Received
			if s.writes() {
				kind = verbs.ReceivedImmediate
			}
			m.receive(verbs.StatusOK, kind, s)
		}
		m.finish(verbs.StatusOK)
	}
	return true
}

// conclude ends a request that the other end refused: UC never knows.
func (m *model) conclude(status verbs.Status) {
	if m.transport == verbs.UC {
		m.finish(verbs.StatusOK)
		return
	}
	m.fail(status)
}

func (m *model) fail(status verbs.Status) {
	m.finish(status)
	m.aBroken = true
}

func (m *model) finish(status verbs.Status) {
	s := m.sends[0]
	m.sends = m.sends[1:]
	m.done++
	if s.signaled || status != verbs.StatusOK {
		kind := verbs.Sent
		if s.writes() {
			kind = verbs.Written
		}
		m.sent = append(m.sent, ending{id: s.id, status: status, kind: kind, freed: m.done})
	}
}

func (m *model) receive(status verbs.Status, kind verbs.CompletionKind, s message) {
	r := m.receives[0]
	m.receives = m.receives[1:]
	m.got++
	m.received = append(m.received, ending{id: r.id, status: status, kind: kind, freed: m.got, message: s})
}

func (m *model) breakReceiver() {
	m.bBroken = true
	for len(m.receives) > 0 {
		m.receive(verbs.StatusFlushed, 0, message{})
	}
}
