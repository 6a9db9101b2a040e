package microproto

// TransmitWith is Transmit for a micro-protocol that changes outgoing payloads. It calls
// write for each segment of m, in order, with the segment's header and payload. write fills
// dst, which has the payload's length and tail bytes more; it must read and write nothing
// else, and cannot fail. A method value that is kept costs no allocation.
func (x *Exec) TransmitWith(m *Message, tail int, write func(i int, dst, header, payload []byte)) error {
	if err := x.transmittable(m, tail); err != nil {
		return err
	}
	c, k, h := x.c, m.Segments(), len(m.header)
	n := k*(h+tail) + m.Length()
	f, ok := acquire(c.config.Frames, n)
	if !ok {
		c.counters.TransmitsRefused++
		return ErrBusy
	}
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
		f.Segment = h + m.Unit() + tail
	}
	*c.nextOutput() = f
	x.countOutput(m, &f, n)
	return nil
}

// Rewrite replaces the payload of an incoming message. It calls write for each segment, in
// order, with the segment's header and payload. write fills the front of dst, which has the
// payload's length, and returns the number of bytes; it must be the same for all segments
// but the last. A negative result drops the segment; the caller counts it. Rewrite returns
// the number of segments kept, or -1 if no frame was available (m is then unchanged).
func (x *Exec) Rewrite(m *Message, write func(i int, dst, header, payload []byte) int) (left int) {
	c := x.c
	f, ok := acquire(c.config.Frames, m.Length())
	if !ok {
		return -1
	}
	header := c.predicted[:len(m.header)]
	copy(header, m.header)
	at, unit := 0, 0
	for i := range m.Segments() {
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
	f.Peer, f.Data = m.frame.peer, f.Data[:at:at]
	m.frame.release()
	m.frame, m.Payload = f.memory(), f.Data
	if m.segments = 0; left > 1 {
		m.setTrain(left, unit)
	}
	return left
}
