package microproto

import "fmt"

// forwardOn is how a released message goes on after the current chain.
var forwardOn = NewEvent[*Message]("message.released")

// Hold sets hold bits: m stops before SegmentToNet (going down) or SegmentToUser
// (going up) until they are released. A message that has gone on already is not
// called back.
func (x *Exec) Hold(m *Message, h HoldBit) {
	m.hold |= h
	if x.tracer != nil {
		x.trace(TraceRecord{Kind: TraceHold, Protocol: x.cur.name(), Message: m.id, Detail: x.c.holdNames(h)})
	}
}

// Release clears hold bits. A message that was forwarded goes on when all bits
// are clear: once, and after the current chain.
func (x *Exec) Release(m *Message, h HoldBit) {
	had := m.hold
	m.hold &^= h
	if x.tracer != nil {
		x.trace(TraceRecord{Kind: TraceRelease, Protocol: x.cur.name(), Message: m.id, Detail: x.c.holdNames(h)})
	}
	if had != 0 && m.hold == 0 && m.stage == stageWaiting {
		Enqueue(x, forwardOn, m)
	}
}

// Held returns the hold bits that are set.
func (x *Exec) Held(m *Message) HoldBit { return m.hold }

// Forward lets a segment continue. Without hold bits SegmentToNet or
// SegmentToUser is raised now; otherwise it waits for Release. Forwarding a
// message again does nothing: it goes on exactly once. A message that nobody
// handles there is dropped ("unhandled").
func (x *Exec) Forward(m *Message) {
	if m.stage != stageNone || m.ended {
		return
	}
	if x.tracer != nil {
		x.trace(TraceRecord{Kind: TraceForward, Protocol: x.cur.name(), Message: m.id, Detail: x.c.holdNames(m.hold)})
	}
	m.stage = stageWaiting
	x.c.held++
	if m.hold == 0 {
		x.goOn(m)
	}
}

func (x *Exec) goOn(m *Message) {
	// Held again between its release and its turn: it goes on waiting.
	if m.hold != 0 || m.stage != stageWaiting {
		return
	}
	m.stage = stageGone
	x.c.held--
	e := SegmentToNet
	if m.dir == Up {
		e = SegmentToUser
	}
	if ch := x.c.chains.find(e.id); ch == nil || len(ch.entries) == 0 {
		x.Drop(m, "unhandled")
		return
	}
	Raise(x, e, m)
}

// Transmit writes header and payload into a frame and appends it to the outputs.
// It copies into a frame of Config.Frames; or, when m alone owns a frame with
// room in front of its payload (the frame of an upper composite), it writes the
// header there; or, where the layer below gathers, it leaves the payloads of a long
// train in the user's memory. m stays the caller's, who may transmit it again; Done ends it.
// ErrBusy: no room in the outputs, or no frame now. ErrTooLong: past the MTU.
func (x *Exec) Transmit(m *Message) error {
	c := x.c
	if m.ended || m.state != stateLive {
		return x.misuse("transmit", m)
	}
	k := m.Segments()
	if one := len(m.header) + m.Unit(); one > c.config.MTU {
		return fmt.Errorf("%w: header %d + payload %d > %d (composite %s)", ErrTooLong, len(m.header), m.Unit(), c.config.MTU, c.config.Name)
	}
	n := k*len(m.header) + m.Length()
	if len(c.outputs) >= c.limits.Outputs {
		c.counts.TransmitsRefused++
		return ErrBusy
	}
	f, ok := Frame{}, false
	if k == 1 {
		f, ok = m.frame.prepend(m.Payload, len(m.header))
	}
	if ok {
		copy(f.Data, m.header)
	} else {
		flat := n
		gathers := c.gathers(m)
		if gathers {
			flat = k * len(m.header)
		}
		f = c.config.Frames.Acquire(flat)
		if len(f.Data) < flat {
			f.Release()
			c.counts.TransmitsRefused++
			return ErrBusy
		}
		f.Data = f.Data[:flat]
		if gathers {
			f.Body, f.Header = m.Payload, len(m.header)
		}
		switch {
		case k > 1:
			c.couple(&f, m)
		case gathers:
			f.Segment = copy(f.Data, m.header) + len(m.Payload)
		default:
			copy(f.Data[copy(f.Data, m.header):], m.Payload)
		}
	}
	f.Peer = 0
	c.counts.Transmitted += uint64(k)
	c.counts.BytesOut += uint64(n)
	c.outputs = append(c.outputs, Output{Kind: OutFrame, Frame: f})
	if x.tracer != nil {
		x.trace(TraceRecord{Kind: TraceTransmit, Protocol: x.cur.name(), Message: m.id, Length: n, Header: m.header})
	}
	return nil
}

// Own moves m's payload into a frame of Config.Frames, with room in front for the
// header, so that it lives as long as m. A micro-protocol that holds a segment
// whose bytes its user may change after the call does so; Transmit then copies no
// more. ErrBusy: no frame now, and m is as it was. ErrTooLong: past the MTU.
func (x *Exec) Own(m *Message) error {
	if m.ended || m.state != stateLive {
		return x.misuse("own", m)
	}
	h, n := len(m.header), len(m.header)+len(m.Payload)
	if n > x.c.config.MTU {
		return fmt.Errorf("%w: header %d + payload %d > %d (composite %s)", ErrTooLong, h, len(m.Payload), x.c.config.MTU, x.c.config.Name)
	}
	f := x.c.config.Frames.Acquire(n)
	if len(f.Data) < n {
		f.Release()
		return ErrBusy
	}
	copy(f.Data[h:], m.Payload)
	m.frame.Release()
	f.Data, f.off = f.Data[h:n], f.off+h
	m.frame, m.Payload = f, f.Data
	return nil
}

// Behind returns m's payload with n more bytes behind it, for a trailer, when m alone
// owns the memory of both; nil otherwise. What is written there goes out with the
// payload if Message.Payload is set to it.
func (x *Exec) Behind(m *Message, n int) []byte { return m.frame.behind(m.Payload, n) }

// Deliver hands m to the user (the layer above). It belongs to whoever drains,
// who gives it back with Composite.Recycle; its payload must stay as it is until
// then. Past the bound of outputs m is dropped ("outputs").
func (x *Exec) Deliver(m *Message) {
	c := x.c
	if m.ended || m.state != stateLive {
		_ = x.misuse("deliver", m)
		return
	}
	if len(c.outputs) >= c.limits.Outputs {
		x.Drop(m, "outputs")
		return
	}
	if m.stage == stageWaiting {
		c.held--
		m.stage = stageGone
	}
	m.state = stateUser
	c.counts.Delivered++
	c.outputs = append(c.outputs, Output{Kind: OutMessage, Message: m})
	if x.tracer != nil {
		x.trace(TraceRecord{Kind: TraceDeliver, Protocol: x.cur.name(), Message: m.id, Length: len(m.Payload)})
	}
}

// Done ends a message that was transmitted, acknowledged or consumed. Running
// chains that carry it stop.
func (x *Exec) Done(m *Message) {
	if m.ended || m.state != stateLive {
		_ = x.misuse("done", m)
		return
	}
	x.c.counts.Done++
	if x.tracer != nil {
		x.trace(TraceRecord{Kind: TraceDone, Protocol: x.cur.name(), Message: m.id})
	}
	x.c.end(m)
}

// Drop ends a message that came to nothing; the reason is counted. Use constant
// strings. Running chains that carry it stop.
func (x *Exec) Drop(m *Message, reason string) {
	if m.ended || m.state != stateLive {
		_ = x.misuse("drop", m)
		return
	}
	x.c.counts.Dropped++
	x.c.countDrop(reason)
	if x.tracer != nil {
		x.trace(TraceRecord{Kind: TraceDrop, Protocol: x.cur.name(), Message: m.id, Detail: reason})
	}
	x.c.end(m)
}

// misuse fails the composite: a micro-protocol used a message that is not its own.
func (x *Exec) misuse(what string, m *Message) error {
	err := fmt.Errorf("%w: %s of message %d by %s", ErrMessage, what, m.id, x.cur.name())
	x.Fail(err)
	return err
}

// end takes m out of the account and gives its frame back; the message itself is
// used again when no chain carries it any more.
func (c *Composite) end(m *Message) {
	if m.stage == stageWaiting {
		c.held--
	}
	m.ended = true
	if m.segments > 1 {
		c.trainsLive--
	}
	m.frame.Release()
	m.Payload = nil
	c.pool.live--
	if m.pins == 0 {
		c.free(m)
	}
}

func (c *Composite) free(m *Message) { c.pool.put(m) }
