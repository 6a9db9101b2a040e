package microproto

// A Frame may hold several frames, one after the other. It may also keep their payloads
// apart, as a Body in the memory of the sending user; the link then gathers them, which
// saves a copy.

// Bytes returns the number of bytes of a frame, headers and payloads.
func (f *Frame) Bytes() int { return len(f.Data) + len(f.Body) }

// Count returns how many frames a Frame holds.
func (f *Frame) Count() int {
	if f.Body != nil {
		return len(f.Data) / f.Header
	}
	if f.Segment <= 0 || f.Segment >= len(f.Data) {
		return 1
	}
	return (len(f.Data) + f.Segment - 1) / f.Segment
}

// Piece returns the header and the payload of frame i, counted from 0, of a Frame with a Body.
func (f *Frame) Piece(i int) (header, payload []byte) {
	unit := f.Segment - f.Header
	to := min((i+1)*unit, len(f.Body))
	return f.Data[i*f.Header : (i+1)*f.Header : (i+1)*f.Header], f.Body[min(i*unit, to):to:to]
}

// Flatten returns the frame with its payloads copied behind their headers, in memory of
// from. A frame that the link does not take at once must not refer to the user's memory. The
// reference passes to the frame returned. It has no Data if from has no memory.
func (f Frame) Flatten(from FrameSource) Frame {
	if f.Body == nil {
		return f
	}
	g, ok := acquire(from, f.Bytes())
	if !ok {
		f.Release()
		return Frame{}
	}
	at := 0
	for i := range f.Count() {
		header, payload := f.Piece(i)
		at += copy(g.Data[at:], header)
		at += copy(g.Data[at:], payload)
	}
	g.Peer, g.Mode, g.Value = f.Peer, f.Mode, f.Value
	if f.Count() > 1 {
		g.Segment = f.Segment
	}
	f.Release()
	return g
}

// Pieces calls each for every frame that f holds. The callee releases the frame.
func (f Frame) Pieces(each func(Frame)) {
	n := f.Count()
	if n == 1 {
		if f.Body == nil {
			f.Segment = 0
		}
		each(f)
		return
	}
	for i := range n {
		p := f.Retain()
		at := i * f.Segment
		if f.Body != nil {
			at = i * f.Header
			p.Data, p.Body = f.Piece(i)
		} else {
			to := min(at+f.Segment, len(f.Data))
			p.Data, p.Segment = f.Data[at:to:to], 0
		}
		if p.off >= 0 {
			p.off += at
		}
		each(p)
	}
	f.Release()
}

// gathers reports whether the frames of m leave the payloads where they are, in the user's
// memory, which does not change until the outputs are drained and sent or flattened.
func (c *Composite) gathers(m *Message) bool {
	least := c.config.Gather
	return least > 0 && len(m.Payload) >= least && m.frame.buf == nil && (m.segments <= 1 || m.stride == m.unit)
}

// Flatten copies the payloads of all undrained frames out of the memory of users.
func (c *Composite) Flatten() {
	left := c.outputs[:0]
	for _, o := range c.outputs {
		if o.Kind == OutFrame && o.Frame.Body != nil {
			if o.Frame = o.Frame.Flatten(c.config.Frames); o.Frame.Data == nil {
				c.counters.TransmitsRefused++
				continue // it counts as lost on the way
			}
		}
		left = append(left, o)
	}
	clear(c.outputs[len(left):])
	c.outputs = left
}
