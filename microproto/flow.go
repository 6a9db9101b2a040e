package microproto

import "fmt"

// Transmit writes header and payload into a frame and appends the frame to the outputs. m
// stays with the caller, which may transmit it again and ends it with Done.
//
// Usually Transmit copies into a frame of Config.Frames. If m has the only reference to a
// frame with room in front of the payload (a frame of an upper composite), it writes the
// header there. If the layer below gathers, it leaves long payloads in the user's memory.
//
// ErrBusy: Limits.Outputs is reached, or there is no frame now. ErrTooLong: header and
// payload exceed the MTU.
func (x *Exec) Transmit(m *Message) error {
	if err := x.transmittable(m, 0); err != nil {
		return err
	}
	c, k := x.c, m.Segments()
	n := k*len(m.header) + m.Length()
	f := c.nextOutput()
	if k == 1 && m.frame.hasRoom(m.Payload, len(m.header), 0) {
		*f = m.frame.buf.Frame(0, m.frame.off-len(m.header), n)
		copy(f.Data, m.header)
	} else {
		flat := n
		gathers := c.gathers(m)
		if gathers {
			flat = k * len(m.header)
		}
		if !acquireTo(f, c.config.Frames, flat) {
			c.outputs = c.outputs[:len(c.outputs)-1]
			c.counters.TransmitsRefused++
			return ErrBusy
		}
		if gathers {
			f.Body, f.Header = m.Payload, len(m.header)
		}
		switch {
		case k > 1:
			c.writeTrain(f, m)
		case gathers:
			f.Segment = copy(f.Data, m.header) + len(m.Payload)
		default:
			copy(f.Data[copy(f.Data, m.header):], m.Payload)
		}
	}
	x.countOutput(m, f, n)
	return nil
}

// transmittable reports whether a frame of m, with tail more bytes, can be output.
func (x *Exec) transmittable(m *Message, tail int) error {
	if err := x.owned("transmit", m); err != nil {
		return err
	}
	c, unit := x.c, m.Unit()+tail
	if len(m.header)+unit > c.config.MTU {
		return c.tooLong(unit)
	}
	if len(c.outputs) >= c.limits.Outputs {
		c.counters.TransmitsRefused++
		return ErrBusy
	}
	return nil
}

// nextOutput appends a frame to the outputs, which the caller sets in place: frames are large. Drain
// clears the outputs, so the new one has no message.
func (c *Composite) nextOutput() *Frame {
	n := len(c.outputs)
	if n == cap(c.outputs) {
		c.outputs = append(c.outputs, Output{})
	}
	c.outputs = c.outputs[:n+1]
	o := &c.outputs[n]
	o.Kind = OutFrame
	return &o.Frame
}

func (x *Exec) countOutput(m *Message, f *Frame, n int) {
	c := x.c
	f.Peer = 0
	c.counters.Transmitted += uint64(m.Segments())
	c.counters.BytesOut += uint64(n)
	x.traceMessage(TraceTransmit, m, n, "")
}

// Own copies m's payload into a frame of Config.Frames, with room in front for the header,
// so that it lives as long as m; it does nothing if m has such memory already. Call it before
// holding a segment whose user may change the bytes after the call; Transmit then does not copy
// again. ErrBusy: there is no frame now, and m is unchanged. ErrTooLong: header and payload
// exceed the MTU.
func (x *Exec) Own(m *Message) error {
	if err := x.owned("own", m); err != nil {
		return err
	}
	h, n := len(m.header), len(m.header)+len(m.Payload)
	if m.frame.hasRoom(m.Payload, h, 0) {
		return nil
	}
	if n > x.c.config.MTU {
		return x.c.tooLong(len(m.Payload))
	}
	f, ok := acquire(x.c.config.Frames, n)
	if !ok {
		return ErrBusy
	}
	copy(f.Data[h:], m.Payload)
	f = f.Slice(h, n)
	m.frame.release()
	m.frame, m.Payload = f.memory(), f.Data
	return nil
}

// Extend returns m's payload with n more bytes at its end, for a trailer, if m has the only
// reference to the memory of both; nil otherwise. Set Message.Payload to the result to
// transmit the trailer.
func (x *Exec) Extend(m *Message, n int) []byte {
	if !m.frame.hasRoom(m.Payload, 0, n) {
		return nil
	}
	end := m.frame.off + len(m.Payload) + n
	return m.frame.buf.Bytes[m.frame.off:end:end]
}

// Deliver appends m to the outputs, for the layer above, which returns it with
// Composite.Recycle. Its payload must not change until then. Beyond Limits.Outputs m is
// dropped for the reason "outputs".
func (x *Exec) Deliver(m *Message) {
	c := x.c
	if x.owned("deliver", m) != nil {
		return
	}
	if len(c.outputs) >= c.limits.Outputs {
		x.Drop(m, "outputs")
		return
	}
	if m.waits() {
		c.held--
		m.stage = stageResumed
	}
	m.state = stateUser
	c.counters.Delivered++
	c.outputs = append(c.outputs, Output{Kind: OutMessage, Message: m})
	x.traceMessage(TraceDeliver, m, len(m.Payload), "")
}

// Done ends a message that was transmitted, acknowledged or consumed. Running chains that
// carry it stop.
func (x *Exec) Done(m *Message) {
	if x.owned("done", m) != nil {
		return
	}
	x.c.counters.Done++
	x.traceMessage(TraceDone, m, 0, "")
	x.c.end(m)
}

// Drop ends a message without success and counts the reason, a constant string. Running
// chains that carry the message stop.
func (x *Exec) Drop(m *Message, reason string) {
	if x.owned("drop", m) != nil {
		return
	}
	x.c.counters.Dropped++
	x.c.countDrop(reason)
	x.recordDrop(m, reason)
	x.traceMessage(TraceDrop, m, 0, reason)
	x.c.end(m)
}

// owned fails the composite unless the running micro-protocol owns the message.
func (x *Exec) owned(what string, m *Message) error {
	if m.ended || m.state != stateLive {
		return x.ownershipViolation(what, m)
	}
	return nil
}

func (x *Exec) ownershipViolation(what string, m *Message) error {
	err := fmt.Errorf("%w: %s of message %d by %s", ErrMessage, what, m.id, x.cur.name)
	x.Fail(err)
	return err
}

// end counts m as ended and releases its frame.
func (c *Composite) end(m *Message) {
	if m.waits() {
		c.held--
	}
	m.ended = true
	m.frame.release()
	m.Payload = nil
	c.pool.live--
	c.reuse(m)
}

// reuse returns an ended message to the pool unless a chain carries it or, from SegmentReady on, a
// micro-protocol holds it.
func (c *Composite) reuse(m *Message) {
	if m.refs == 0 && (m.hold == 0 || m.stage != stageReady) {
		c.pool.put(m)
	}
}

func (c *Composite) tooLong(payload int) error {
	return fmt.Errorf("%w: composite %s: header %d + payload %d > %d bytes",
		ErrTooLong, c.config.Name, c.pool.hdrSize, payload, c.config.MTU)
}
