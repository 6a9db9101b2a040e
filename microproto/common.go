package microproto

import "slices"

// CommonCase is what a micro-protocol does with a segment that is a whole message, when nothing waits
// and nothing is held: most messages of a session over a reliable network. Its functions take a message
// that belongs to the kernel; they must not keep, hold, forward or end it. The handlers remain the
// definition: together, the functions have the effect of the handlers.
type CommonCase struct {
	// Send reports whether an outgoing segment is of the common case, and writes the header attributes
	// of the micro-protocol. It changes nothing else.
	Send func(x *Exec, m *Message) bool
	// Expect reports whether an incoming segment is of the common case. It changes nothing.
	Expect func(x *Exec, m *Message) bool
	// Longest, if not 0, is the longest payload for which Expect may be true. Longer segments are not
	// tried, which keeps the common path from delaying the segments of long messages.
	Longest int
	// Take, if not nil, changes the state when every micro-protocol of the composite has expected m.
	Take func(x *Exec, m *Message)
}

// Common declares the micro-protocol's common case. If every micro-protocol of a composite declares
// one, the composite calls these functions, from top to bottom, in place of the chains.
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
	expect  []func(x *Exec, m *Message) bool
	take    []func(x *Exec, m *Message)
	longest int     // frame to be tried, in bytes
	segment Message // the argument of these functions
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
		p.expect = append(p.expect, a.common.Expect)
		if n := a.common.Longest; n > 0 {
			p.longest = min(p.longest, c.pool.hdrSize+n)
		}
		if a.common.Take != nil {
			p.take = append(p.take, a.common.Take)
		}
	}
	c.common = p
}

// HasCommonPath reports whether the composite takes the common path: all of its micro-protocols declare
// their common case, and it has no tracer.
func (c *Composite) HasCommonPath() bool { return c.common != nil }

// SendCommon transmits a segment without the chains, if every micro-protocol declares that this is the
// common case. The segment is counted as so many messages as the chains would have used. SendCommon
// returns false, and has no effect, in any other case.
func (x *Exec) SendCommon(payload []byte, messages int) bool {
	c := x.c
	p := c.common
	if p == nil || x.stop != 0 || c.pool.live+messages > c.pool.limit || len(c.outputs) >= c.limits.Outputs {
		return false
	}
	m := &p.segment
	n := len(m.header) + len(payload)
	m.dir, m.Payload = Down, payload
	if n > c.config.MTU || c.gathers(m) {
		return false
	}
	m.localSet = 0
	clear(m.header)
	for _, send := range p.send {
		if !send(x, m) {
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
	c.counters.Created += uint64(messages)
	c.counters.Done += uint64(messages)
	c.counters.Transmitted++
	c.counters.BytesOut += uint64(n)
	c.pool.lastID += uint64(messages)
	m.Payload = nil
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
	for _, expect := range p.expect {
		if !expect(&c.x, m) {
			return false
		}
	}
	for _, take := range p.take {
		take(&c.x, m)
	}
	m.Payload = nil
	c.counters.Inputs++
	c.counters.SegmentsIn++
	c.counters.Done++
	c.pool.lastID++
	f.Release()
	return true
}
