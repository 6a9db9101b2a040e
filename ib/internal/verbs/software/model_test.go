package software_test

import "github.com/p2pdc/p2pdc/ib/internal/verbs"

// flaw is what is wrong with a request.
type flaw int

const (
	sound       flaw = iota
	localFlaw        // the element's key
	remoteFlaw       // the remote key of a write
	receiveFlaw      // the key of a receive request's element
)

// message is a send request of the model.
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

// modelReceive is a receive request of the model.
type modelReceive struct {
	id    uint64
	bytes int
	flaw  flaw
}

// expectedCompletion is a completion that the model expects. freed counts the requests of its queue
// that it completes; message is what a receive request received.
type expectedCompletion struct {
	id      uint64
	status  verbs.Status
	kind    verbs.CompletionKind
	freed   int
	message message
}

// model is a reference for a sending queue pair a and a receiving queue pair b. It follows the
// specification without packets, sequence numbers, timers or acknowledgements: requests are matched
// in order.
type model struct {
	transport    verbs.Transport
	unlimitedRNR bool // RNR retries

	sends          []message
	receives       []modelReceive
	aBroken        bool
	bBroken        bool
	sent, received []expectedCompletion // completions, in order
	done, got      int
}

// run executes all requests that can be executed. settled means that all timers have expired, so
// that requests without an answer have failed.
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
		if !m.match(s, settled) {
			return
		}
	}
}

// match executes the oldest send request. It returns false if the request must wait.
func (m *model) match(s message, settled bool) bool {
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
		m.refuse(verbs.StatusRemoteAccess)
	case s.takesReceive() && len(m.receives) == 0:
		if reliable && (!settled || m.unlimitedRNR) {
			return false
		}
		m.refuse(verbs.StatusRNRExceeded)
	case !s.writes() && m.receives[0].flaw == receiveFlaw && s.bytes > 0:
		m.receive(verbs.StatusLocalProtection, 0, message{})
		m.breakReceiver()
		m.refuse(verbs.StatusRemoteOperation)
	case !s.writes() && s.bytes > m.receives[0].bytes:
		m.receive(verbs.StatusLocalLength, 0, message{})
		m.breakReceiver()
		m.refuse(verbs.StatusRemoteInvalid)
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

// refuse ends a request that the other end has refused, which UC does not notice.
func (m *model) refuse(status verbs.Status) {
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
		m.sent = append(m.sent, expectedCompletion{id: s.id, status: status, kind: kind, freed: m.done})
	}
}

func (m *model) receive(status verbs.Status, kind verbs.CompletionKind, s message) {
	r := m.receives[0]
	m.receives = m.receives[1:]
	m.got++
	m.received = append(m.received, expectedCompletion{id: r.id, status: status, kind: kind, freed: m.got, message: s})
}

func (m *model) breakReceiver() {
	m.bBroken = true
	for len(m.receives) > 0 {
		m.receive(verbs.StatusFlushed, 0, message{})
	}
}
