package microproto

// A frame may stand for several, which lie one behind the other; and it may have its
// payloads elsewhere, as a Body: then the link gathers them from the memory of the user
// who sends, and nobody has to copy them into a frame first.

// Bytes is how many bytes a frame has, of headers and payloads.
func (f *Frame) Bytes() int { return len(f.Data) + len(f.Body) }

// Count is how many frames a frame stands for.
func (f *Frame) Count() int {
	if f.Body != nil {
		return len(f.Data) / f.Header
	}
	if f.Segment <= 0 || f.Segment >= len(f.Data) {
		return 1
	}
	return (len(f.Data) + f.Segment - 1) / f.Segment
}

// Piece is the header and the payload of frame i of one with a Body, from 0.
func (f *Frame) Piece(i int) (header, payload []byte) {
	unit := f.Segment - f.Header
	to := min((i+1)*unit, len(f.Body))
	return f.Data[i*f.Header : (i+1)*f.Header : (i+1)*f.Header], f.Body[min(i*unit, to):to:to]
}

// Flatten returns the frame without a Body, in memory of from: what the link does not
// take at once must not refer to the user's. The reference goes over to the frame
// returned; it has no Data when there is no memory.
func (f Frame) Flatten(from FrameSource) Frame {
	if f.Body == nil {
		return f
	}
	g := from.Acquire(f.Bytes())
	if len(g.Data) < f.Bytes() {
		g.Release()
		f.Release()
		return Frame{}
	}
	g.Data = g.Data[:f.Bytes()]
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

// Pieces calls each with each of the frames that a frame stands for: with itself unless
// Segment says that there are more. The reference goes over to each.
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

// gathers tells whether the frames of a train leave its payloads where they are: in
// plain memory of the user, which stays as it is until the outputs are drained and sent
// or flattened. Of a link without trains it is so for single segments.
func (c *Composite) gathers(m *Message) bool {
	least := c.config.Gather
	return least > 0 && (m.segments > 1 || c.config.Train == 0) && m.gap == 0 && m.frame.buf == nil && len(m.Payload) >= least
}

// Flatten makes the outputs that are not drained yet independent of the memory of users.
func (c *Composite) Flatten() {
	left := c.outputs[:0]
	for _, o := range c.outputs {
		if o.Kind == OutFrame && o.Frame.Body != nil {
			if o.Frame = o.Frame.Flatten(c.config.Frames); o.Frame.Data == nil {
				c.counts.TransmitsRefused++
				continue // as lost on the way
			}
		}
		left = append(left, o)
	}
	clear(c.outputs[len(left):])
	c.outputs = left
}
