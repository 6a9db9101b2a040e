package microproto

import (
	"bytes"
	"encoding/binary"
	"slices"
)

// A train is a message that stands for consecutive segments of one message of the
// layer above: handlers run once for all of them. On the wire nothing tells a train
// from segments that went one by one, and the two ends may form different ones.
//
// The header is that of the first segment. The others have the same but for stepped
// attributes (see SteppedAttr), which the kernel counts on. All segments but the last
// have payloads of the same length, and none is empty.

// MaxTrain bounds the segments of a train.
const MaxTrain = 64

// Step says how an attribute differs from one segment of a train to the next.
type Step uint8

// An attribute grows by one, or by the length of the segment's payload.
const (
	StepSegments Step = iota + 1
	StepBytes
)

// Segments is the number of segments that m stands for: 1 but for trains.
func (m *Message) Segments() int { return max(1, int(m.segments)) }

// Length is the number of payload bytes, of all segments.
func (m *Message) Length() int {
	if m.segments <= 1 {
		return len(m.Payload)
	}
	return len(m.Payload) - int(m.segments-1)*int(m.gap)
}

// Unit is the length of the first segment's payload: of all but the last.
func (m *Message) Unit() int {
	if m.segments <= 1 {
		return len(m.Payload)
	}
	return int(m.unit)
}

// Piece is the payload of segment i, from 0.
func (m *Message) Piece(i int) []byte {
	if m.segments <= 1 {
		return m.Payload
	}
	from := i * int(m.unit+m.gap)
	to := min(from+int(m.unit), len(m.Payload))
	return m.Payload[from:to:to]
}

// CopyTo copies the payloads of all segments, one behind the other.
func (m *Message) CopyTo(dst []byte) int {
	if m.segments <= 1 || m.gap == 0 {
		return copy(dst, m.Payload)
	}
	n := 0
	for i := range int(m.segments) {
		n += copy(dst[n:], m.Piece(i))
	}
	return n
}

// TrainSegments is how many segments with payloads of unit bytes a train may have
// now: 1 when the composite forms none.
func (x *Exec) TrainSegments(unit int) int {
	c := x.c
	if !c.trains || unit <= 0 {
		return 1
	}
	return max(1, min(MaxTrain, c.config.Train/(c.pool.hdrSize+unit)))
}

// FormTrain makes m, whose payload is set, a train of segments of unit bytes; the last
// may be shorter. It does nothing to what fits one segment.
func (x *Exec) FormTrain(m *Message, unit int) {
	n := (len(m.Payload) + unit - 1) / unit
	if n > 1 && m.segments <= 1 {
		x.c.trainsLive++
		m.segments, m.unit, m.gap = int32(n), int32(unit), 0
	}
}

// Part makes a message of its own of segment i of a train: same header, stepped, same
// local attributes, a share in the same memory. ErrPool when the bound is reached.
func (x *Exec) Part(m *Message, i int) (*Message, error) {
	p, err := x.NewMessage(m.dir)
	if err != nil {
		return nil, err
	}
	copy(p.header, m.header)
	x.c.stepHeader(p.header, i, m.Unit())
	x.Share(p, m, m.Piece(i))
	p.has, p.local = m.has, m.local
	if m.stage == stageGone {
		p.stage = stageGone
	}
	return p, nil
}

// stride is a wire attribute that grows within a train.
type stride struct {
	offset, size int
	bytes        bool // by the bytes of a payload, else by one
}

// stepHeader turns the header of a train's first segment into that of segment i.
func (c *Composite) stepHeader(h []byte, i, unit int) {
	for _, p := range c.stepped {
		n := uint64(i)
		if p.bytes {
			n *= uint64(unit)
		}
		b := h[p.offset:]
		if p.size == 4 { // as those of nearly every segment
			binary.BigEndian.PutUint32(b, binary.BigEndian.Uint32(b)+uint32(n))
			continue
		}
		p.step(b, n)
	}
}

func (p *stride) step(b []byte, n uint64) {
	switch p.size {
	case 1:
		b[0] += byte(n)
	case 2:
		binary.BigEndian.PutUint16(b, binary.BigEndian.Uint16(b)+uint16(n))
	case 8:
		binary.BigEndian.PutUint64(b, binary.BigEndian.Uint64(b)+n)
	}
}

// couple writes the frames of a train, one behind the other; only their headers when f
// has a Body.
func (c *Composite) couple(f *Frame, m *Message) {
	// The header is stepped here, and not in the frame: that may be in no cache, and to read
	// what was just written there has to wait for it.
	h, at := len(m.header), 0
	next := c.predicted[:h]
	copy(next, m.header)
	for i := range int(m.segments) {
		if i > 0 {
			c.stepHeader(next, 1, int(m.unit))
		}
		at += copy(f.Data[at:], next)
		if f.Body == nil {
			at += copy(f.Data[at:], m.Piece(i))
		}
	}
	f.Segment = h + int(m.unit)
}

// run is how many frames at the start of data, each of unit bytes but the last, are a
// train.
func (c *Composite) run(data []byte, unit int) int {
	h := c.pool.hdrSize
	if !c.trains || len(data) <= unit || unit <= h {
		return 1
	}
	next := c.predicted[:h]
	copy(next, data)
	n := 1
	for ; n < MaxTrain && n*unit+h < len(data); n++ {
		c.stepHeader(next, 1, unit-h)
		if !bytes.Equal(next, data[n*unit:n*unit+h]) {
			break
		}
	}
	return n
}

// inputTrain takes frames that came as one: each run of them that is a train is one
// message.
func (c *Composite) inputTrain(f Frame) {
	unit, data := f.Segment, f.Data
	for len(data) > 0 && c.err == nil {
		n := c.run(data, unit)
		took := min(n*unit, len(data))
		g := f.Retain()
		g.Data, g.Segment = data[:took], 0
		if n > 1 {
			g.Segment = unit
		}
		c.input(g)
		c.runQueue() // what it set free goes before the next
		data = data[took:]
	}
	if len(data) > 0 {
		c.counts.FramesIn++
		c.refuseFrame(&f, "failed")
		return
	}
	f.Release()
}

// planTrains notes what trains need of the attached micro-protocols.
func (c *Composite) planTrains() {
	c.trains = c.config.Train > 0 && !slices.ContainsFunc(c.attached, func(a *attachment) bool { return !a.trains })
	for _, f := range c.fields {
		if f.step != 0 {
			c.stepped = append(c.stepped, stride{f.offset, f.size, f.step == StepBytes})
		}
	}
}

// FormsTrains reports whether the composite forms and takes trains: the layer below takes
// them, and so does every micro-protocol (see Binder.TakesTrains).
func (c *Composite) FormsTrains() bool { return c.trains }
