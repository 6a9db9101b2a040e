package microproto

// TransmitWith is Transmit for a micro-protocol that changes outgoing payloads. It calls
// write for each segment of m, in order, with the segment's header and payload. write fills
// dst, which has the payload's length and tail bytes more; it must read and write nothing
// else, and cannot fail. A method value that is kept costs no allocation.
func (x *Exec) TransmitWith(m *Message, tail int, write func(i int, dst, header, payload []byte)) error {
	c := x.c
	if m.ended || m.state != stateLive {
		return x.ownershipViolation("transmit", m)
	}
	k, h := m.Segments(), len(m.header)
	unit := m.Unit() + tail
	if h+unit > c.config.MTU {
		return c.tooLong(unit)
	}
	n := k*(h+tail) + m.Length()
	if len(c.outputs) >= c.limits.Outputs {
		c.counters.TransmitsRefused++
		return ErrBusy
	}
	f := c.config.Frames.Acquire(n)
	if len(f.Data) < n {
		f.Release()
		c.counters.TransmitsRefused++
		return ErrBusy
	}
	f.Data, f.Peer = f.Data[:n], 0
	for i, at := 0, 0; i < k; i++ {
		p, header := m.Piece(i), f.Data[at:at+h:at+h]
		copy(header, m.header)
		if i > 0 {
			c.stepHeader(header, i, m.Unit())
		}
		at += h + len(p) + tail
		write(i, f.Data[at-len(p)-tail:at:at], header, p)
	}
	if k > 1 {
		f.Segment = h + unit
	}
	c.counters.Transmitted += uint64(k)
	c.counters.BytesOut += uint64(n)
	c.outputs = append(c.outputs, Output{Kind: OutFrame, Frame: f})
	if x.tracer != nil {
		x.trace(TraceRecord{Kind: TraceTransmit, Protocol: x.cur.name(), Message: m.id, Length: n, Header: m.header})
	}
	return nil
}

// Rewrite replaces the payload of an incoming message. It calls write for each segment, in
// order, with the segment's header and payload. write fills the front of dst, which has the
// payload's length, and returns the number of bytes; it must be the same for all segments
// but the last. A negative result drops the segment; the caller counts it. Rewrite returns
// the number of segments kept, or -1 if no frame was available (m is then unchanged).
func (x *Exec) Rewrite(m *Message, write func(i int, dst, header, payload []byte) int) (left int) {
	c := x.c
	k := m.Segments()
	f := c.config.Frames.Acquire(m.Length())
	if len(f.Data) < m.Length() {
		f.Release()
		return -1
	}
	header := c.predicted[:len(m.header)]
	copy(header, m.header)
	at, unit := 0, 0
	for i := range k {
		p := m.Piece(i)
		if n := write(i, f.Data[at:at+len(p):at+len(p)], header, p); n >= 0 {
			if left == 0 {
				unit = n
			}
			at += n
			left++
		}
		c.stepHeader(header, 1, m.Unit())
	}
	f.Peer, f.Data = m.frame.Peer, f.Data[:at:at]
	m.frame.Release()
	m.frame, m.Payload = f, f.Data
	if m.segments > 1 && left <= 1 {
		c.trainsLive--
		m.segments = 0
	}
	if left > 1 {
		m.setTrain(left, unit)
	}
	return left
}
