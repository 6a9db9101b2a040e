package microproto

import "errors"

// SubmitFrame makes a frame of the composite above a message of this one, whose
// payload it becomes, and submits it; it takes the frame. Without a message for it, it
// is dropped and counted, as on any full network.
func (c *Composite) SubmitFrame(now Instant, f Frame) (err error) {
	if f.Count() > 1 && !c.trains {
		f.Pieces(func(p Frame) { err = errors.Join(err, c.SubmitFrame(now, p)) })
		return err
	}
	m, err := c.Message()
	if err != nil {
		c.counts.FramesIn++
		c.refuseFrame(&f, "pool")
		return nil
	}
	m.frame, m.Payload = f, f.Data
	if n := f.Count(); n > 1 {
		c.trainsLive++
		m.segments, m.unit, m.gap = int32(n), int32(f.Segment), 0
	}
	return c.Submit(now, m)
}

// RecycleFrame gives a delivered message back, as Recycle does, and returns its
// payload as a frame for the composite above, who releases it.
func (c *Composite) RecycleFrame(m *Message) Frame {
	f := m.frame.Retain()
	f.Data, f.Segment = m.Payload, 0
	if m.segments > 1 {
		f.Segment = m.Unit()
		if m.gap > 0 { // what lies between the segments has to go
			f.Release()
			f.buf, f.Data = nil, make([]byte, m.Length())
			m.CopyTo(f.Data)
		}
	}
	f.off = -1 // it may lie anywhere in the buffer
	c.Recycle(m)
	return f
}
