package microproto

import "errors"

// SubmitFrame submits a frame of the composite above: it becomes the payload of a message
// of this composite. SubmitFrame takes the frame even if it returns an error. Without a
// message for it the frame is dropped and counted, as on any full network.
func (c *Composite) SubmitFrame(now Instant, f Frame) (err error) {
	if f.Count() > 1 && !c.trains {
		f.Pieces(func(p Frame) { err = errors.Join(err, c.SubmitFrame(now, p)) })
		return err
	}
	m, err := c.Message()
	if err != nil {
		c.counters.FramesIn++
		c.refuseFrame(&f, "pool")
		return nil
	}
	m.frame, m.Payload = f.memory(), f.Data
	if n := f.Count(); n > 1 {
		m.setTrain(n, f.Segment)
	}
	return c.Submit(now, m)
}

// RecycleFrame recycles a delivered message and returns its payload as a frame for the
// composite above. The caller releases the frame.
func (c *Composite) RecycleFrame(m *Message) Frame {
	r := m.frame.retain()
	f := Frame{Peer: r.peer, Data: m.Payload, buf: r.buf}
	if m.segments > 1 {
		f.Segment = m.Unit()
		if m.stride > m.unit { // header bytes lie between the payloads
			f.Release()
			f.buf, f.Data = nil, make([]byte, m.Length())
			m.CopyTo(f.Data)
		}
	}
	f.off = -1 // the payload may lie anywhere in the buffer
	c.Recycle(m)
	return f
}
