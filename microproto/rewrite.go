package microproto

import "fmt"

// TransmitWith is Transmit for a micro-protocol that changes payloads on their way
// out: write is called for each segment of m, in order, with its header and payload,
// and fills dst, which has room for the payload and tail bytes more. It may read and
// write nothing else and must not fail; a method value that was made once costs no
// allocation.
func (x *Exec) TransmitWith(m *Message, tail int, write func(i int, dst, header, payload []byte)) error {
	c := x.c
	if m.ended || m.state != stateLive {
		return x.misuse("transmit", m)
	}
	k, h, unit := m.Segments(), len(m.header), m.Unit()+tail
	if h+unit > c.config.MTU {
		return fmt.Errorf("%w: header %d + payload %d > %d (composite %s)", ErrTooLong, h, unit, c.config.MTU, c.config.Name)
	}
	n := k*(h+tail) + m.Length()
	if len(c.outputs) >= c.limits.Outputs {
		c.counts.TransmitsRefused++
		return ErrBusy
	}
	f := c.config.Frames.Acquire(n)
	if len(f.Data) < n {
		f.Release()
		c.counts.TransmitsRefused++
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
	c.counts.Transmitted += uint64(k)
	c.counts.BytesOut += uint64(n)
	c.outputs = append(c.outputs, Output{Kind: OutFrame, Frame: f})
	if x.tracer != nil {
		x.trace(TraceRecord{Kind: TraceTransmit, Protocol: x.cur.name(), Message: m.id, Length: n, Header: m.header})
	}
	return nil
}

// Rewrite changes the payload of a message on its way up: write is called for each
// segment, in order, with its header and payload, fills the front of dst, which has the
// payload's length, and returns how many bytes that is; all but the last segment's must
// be the same. Less than 0 leaves the segment out: it is for the caller to count. It
// returns how many are left; less than 0: there is no memory, and nothing was changed.
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
		m.segments, m.unit, m.gap = int32(left), int32(unit), 0
	}
	return left
}
