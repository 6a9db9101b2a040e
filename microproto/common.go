package microproto

import (
	"cmp"
	"slices"
)

// CommonCase is what a micro-protocol does with a segment that is a whole message, when nothing waits
// and nothing is held: most short messages of a session. Its functions take a message that belongs to
// the kernel; they must not hold, forward or end it, and keep it only if Retains is true. The handlers
// remain the definition: together, the functions have the effect of the handlers.
type CommonCase struct {
	// Send reports whether an outgoing segment is of the common case, and writes the header attributes
	// of the micro-protocol. It changes nothing else.
	Send func(x *Exec, m *Message) bool
	// Sent, if not nil, changes the state when the segment is among the outputs.
	Sent func(x *Exec, m *Message)
	// Retains: Sent keeps the segment, which lives until the micro-protocol ends it with Done.
	Retains bool
	// Expect reports whether an incoming segment is of the common case. It changes nothing.
	Expect func(x *Exec, m *Message) bool
	// Ends, if not nil, reports whether an expected segment ends with this micro-protocol, as an
	// acknowledgement alone does. Those of later priorities are not asked, and do not take it.
	Ends func(m *Message) bool
	// Longest, if not 0, is the longest payload for which Expect may be true. Longer segments are not
	// tried, which keeps the common path from delaying the segments of long messages.
	Longest int
	// Take, if not nil, changes the state when every micro-protocol of the composite has expected m.
	Take func(x *Exec, m *Message)
	// Priority is the order of Expect and Take among the micro-protocols, as that of handlers.
	Priority Priority
}

// Always reports true. It is Send or Expect of a micro-protocol that does nothing with a segment of the common case.
func Always(*Exec, *Message) bool { return true }

// Common declares the micro-protocol's common case. If every micro-protocol of a composite declares
// one, the composite calls these functions in place of the chains: Send and Sent from top to bottom, Expect
// and Take by priority, and from top to bottom within one.
func (b *Binder) Common(c CommonCase) {
	if c.Send == nil || c.Expect == nil {
		b.fail("microproto: %s declares a common case without Send or Expect", b.to.name)
		return
	}
	b.to.common = &c
}

// commonPath joins the declared common cases.
type commonPath struct {
	send    []func(x *Exec, m *Message) bool
	sent    []func(x *Exec, m *Message)
	retains bool
	arrive  []CommonCase // by priority
	longest int          // frame to be tried, in bytes
	segment Message      // the argument of these functions, unless a micro-protocol retains it
}

func (c *Composite) planCommonPath() {
	silent := func(a *attachment) bool { return a.common == nil }
	if c.x.tracer != nil || len(c.attached) == 0 || slices.ContainsFunc(c.attached, silent) {
		return
	}
	p := &commonPath{longest: c.config.MTU}
	p.segment.header = make([]byte, c.pool.hdrSize)
	p.segment.state = stateLive
	for _, a := range c.attached {
		p.send = append(p.send, a.common.Send)
		if a.common.Sent != nil {
			p.sent = append(p.sent, a.common.Sent)
		}
		p.retains = p.retains || a.common.Retains
		p.arrive = append(p.arrive, *a.common)
		if n := a.common.Longest; n > 0 {
			p.longest = min(p.longest, c.pool.hdrSize+n)
		}
	}
	slices.SortStableFunc(p.arrive, func(a, b CommonCase) int { return cmp.Compare(a.Priority, b.Priority) })
	c.common = p
}

// HasCommonPath reports whether the composite takes the common path: all of its micro-protocols declare
// their common case, and it has no tracer.
func (c *Composite) HasCommonPath() bool { return c.common != nil }

// SendCommon transmits a segment without the chains, if every micro-protocol declares that this is the
// common case. The segment is counted as so many messages as the chains would have used. SendCommon
// returns false, and has no effect, in any other case. If a micro-protocol retains the segment, the payload
// must not change before its message is accepted.
func (x *Exec) SendCommon(payload []byte, messages int) bool {
	c := x.c
	p := c.common
	if p == nil || x.stop != 0 || c.pool.live+messages > c.pool.limit || len(c.outputs) >= c.limits.Outputs {
		return false
	}
	m := &p.segment
	if p.retains {
		if m = c.pool.get(); m == nil {
			return false
		}
	}
	if !c.outputCommon(p, m, payload) {
		if p.retains {
			m.Payload = nil
			c.pool.unget(m)
		}
		return false
	}
	c.counters.Created += uint64(messages)
	c.counters.Done += uint64(messages)
	c.counters.Transmitted++
	c.pool.lastID += uint64(messages)
	if p.retains {
		c.counters.Done--
		c.pool.lastID-- // counted by get
		m.id, m.stage = c.pool.lastID, stageResumed
	}
	for _, sent := range p.sent {
		sent(x, m)
	}
	if !p.retains {
		m.Payload = nil
	}
	return true
}

// outputCommon appends the frame of a segment to the outputs, if that is the common case.
func (c *Composite) outputCommon(p *commonPath, m *Message, payload []byte) bool {
	n := len(m.header) + len(payload)
	m.dir, m.Payload = Down, payload
	if n > c.config.MTU || c.gathers(m) {
		return false
	}
	m.localSet = 0
	clear(m.header)
	for _, send := range p.send {
		if !send(&c.x, m) {
			return false
		}
	}
	f := c.nextOutput()
	if !acquireTo(f, c.config.Frames, n) {
		c.outputs = c.outputs[:len(c.outputs)-1]
		return false
	}
	copy(f.Data[copy(f.Data, m.header):], payload)
	f.Peer = 0
	c.counters.BytesOut += uint64(n)
	return true
}

// takeCommon takes an incoming frame without the chains, if that is the common case.
func (c *Composite) takeCommon(f *Frame) bool {
	p := c.common
	if len(f.Data) > p.longest || c.pool.live >= c.pool.limit {
		return false
	}
	m := &p.segment
	m.localSet = 0
	m.dir, m.Payload = Up, f.Data[copy(m.header, f.Data):]
	takes := p.arrive
	for i := range p.arrive {
		a := &p.arrive[i]
		if !a.Expect(&c.x, m) {
			return false
		}
		if a.Ends != nil && a.Ends(m) {
			takes = takes[:i+1]
			break
		}
	}
	c.counters.Inputs++
	c.counters.SegmentsIn++
	c.counters.Done++
	c.pool.lastID++
	for i := range takes {
		if take := takes[i].Take; take != nil {
			take(&c.x, m)
		}
	}
	m.Payload = nil
	f.Release()
	return true
}
