package microproto

// forwardOn resumes a released message after the current chain.
var forwardOn = NewEvent[*Message]("message.released")

// Hold sets hold bits. A message on its way up stops before SegmentToUser until they are
// released. One on its way down stops before SegmentReady or, if a handler of SegmentReady sets
// them, before SegmentToNet. Hold has no effect on a message beyond that point.
func (x *Exec) Hold(m *Message, h HoldBit) {
	m.hold |= h
	if x.tracer != nil {
		x.trace(TraceRecord{Kind: TraceHold, Message: m.id, Detail: x.c.holdNames(h)})
	}
}

// Release clears hold bits. A forwarded message continues once all bits are clear, after the
// current chain. Release returns false if the message has ended meanwhile, as a retransmission
// does whose acknowledgement arrives first. The pointer to it is invalid then.
func (x *Exec) Release(m *Message, h HoldBit) (lives bool) {
	had := m.hold
	m.hold &^= h
	if x.tracer != nil {
		x.trace(TraceRecord{Kind: TraceRelease, Message: m.id, Detail: x.c.holdNames(h)})
	}
	if had == 0 || m.hold != 0 {
		return !m.ended
	}
	if m.ended {
		x.c.reuse(m)
		return false
	}
	if m.waits() {
		Enqueue(x, forwardOn, m)
	}
	return true
}

// waits reports whether m was forwarded and is held.
func (m *Message) waits() bool { return m.stage == stageWaiting || m.stage == stageReady }

// Held returns the hold bits that are set.
func (x *Exec) Held(m *Message) HoldBit { return m.hold }

// Holds reports whether a micro-protocol of the composite holds messages: it has reserved a hold bit.
func (x *Exec) Holds() bool { return x.c.Holds() }

// Holds reports whether a micro-protocol of the composite holds messages. The frames that leave after a
// Send may then be of earlier messages.
func (c *Composite) Holds() bool { return len(c.bitNames) > 0 }

// Forward lets a segment continue: without hold bits SegmentToUser or, on its way down, SegmentReady
// and SegmentToNet are raised now, otherwise after the last Release. A second call does nothing. If no
// handler is bound to SegmentToUser or SegmentToNet, the message is dropped for the reason "unhandled".
func (x *Exec) Forward(m *Message) {
	if m.stage != stageNone || m.ended {
		return
	}
	if x.tracer != nil {
		x.trace(TraceRecord{Kind: TraceForward, Message: m.id, Detail: x.c.holdNames(m.hold)})
	}
	if m.hold == 0 {
		x.pass(m)
		return
	}
	m.stage = stageWaiting
	x.c.held++
}

// Resend transmits a segment again that a micro-protocol has retained: SegmentReady and SegmentToNet are
// raised as by Forward. It does nothing while the segment waits for an earlier transmission (Held).
func (x *Exec) Resend(m *Message) {
	if m.stage == stageResumed && !m.ended {
		m.hold = 0
		x.pass(m)
	}
}

func (x *Exec) resume(m *Message) {
	// It may have been held again since its release.
	if m.hold != 0 || !m.waits() {
		return
	}
	x.c.held--
	if m.stage == stageReady {
		x.leave(m, x.c.toNet)
		return
	}
	x.pass(m)
}

// pass raises the events beyond the hold bits.
func (x *Exec) pass(m *Message) {
	c := x.c
	if m.dir == Up {
		x.leave(m, c.toUser)
		return
	}
	if len(c.readyToNet.entries) > 0 {
		id := m.id
		m.stage = stageReady
		c.held++
		x.raiseMessage(c.readyToNet, m)
		if m.id != id || m.ended || m.stage != stageReady || m.hold != 0 || c.err != nil {
			return
		}
		c.held--
	}
	x.leave(m, c.toNet)
}

// leave raises the last event of a message.
func (x *Exec) leave(m *Message, ch *chain) {
	m.stage = stageResumed
	if len(ch.entries) == 0 {
		x.Drop(m, "unhandled")
		return
	}
	x.raiseMessage(ch, m)
}

// Replace gives the payload, header and local attributes of m, a newer value of the same segment, to one
// that is held, and drops m for the reason "replaced by a newer value". The held one keeps its hold bits,
// and its place in the queue of its holder, which SegmentReplaced informs. Replace returns false, and does
// nothing, if held has ended or is not held, if the two differ in length, if one is a train, or if held has
// no memory of its own (Own).
func (x *Exec) Replace(held, m *Message) bool {
	if held.ended || held.hold == 0 || held.state != stateLive || held.Segments() > 1 || m.Segments() > 1 ||
		len(held.Payload) != len(m.Payload) || !held.frame.hasRoom(held.Payload, 0, 0) {
		return false
	}
	copy(held.Payload, m.Payload)
	copy(held.header, m.header)
	for i := range held.local {
		if m.localSet&(1<<i) != 0 {
			held.local[i] = m.local[i]
		}
	}
	held.localSet |= m.localSet
	x.Drop(m, "replaced by a newer value")
	Raise(x, SegmentReplaced, held)
	return true
}
