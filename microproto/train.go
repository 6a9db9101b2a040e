package microproto

import (
	"bytes"
	"encoding/binary"
	"slices"
)

// A train is a message that stands for consecutive segments of one message of the layer
// above (a GSO super-segment): handlers run once for all of them. On the wire a train
// does not differ from segments that were sent one by one, and the two ends may form
// different trains of the same segments.
//
// A train has the header of its first segment. The headers of the others differ in the
// stepped attributes only (see SteppedAttr). All segments but the last have payloads of
// the same length, and none is empty.

// MaxTrain bounds the segments of a train.
const MaxTrain = 64

// Step is how an attribute changes from one segment of a train to the next.
type Step uint8

// StepSegments adds one, StepBytes the length of the segment's payload.
const (
	StepSegments Step = iota + 1
	StepBytes
)

// Segments returns the number of segments that m stands for; 1 unless m is a train.
func (m *Message) Segments() int { return max(1, int(m.segments)) }

// Length returns the payload bytes of all segments.
func (m *Message) Length() int {
	if m.segments <= 1 {
		return len(m.Payload)
	}
	return len(m.Payload) - int(m.segments-1)*int(m.stride-m.unit)
}

// Unit returns the payload bytes of every segment but the last.
func (m *Message) Unit() int {
	if m.segments <= 1 {
		return len(m.Payload)
	}
	return int(m.unit)
}

// Piece returns the payload of segment i, counted from 0.
func (m *Message) Piece(i int) []byte {
	if m.segments <= 1 {
		return m.Payload
	}
	from := i * int(m.stride)
	to := min(from+int(m.unit), len(m.Payload))
	return m.Payload[from:to:to]
}

// CopyTo copies the payloads of all segments to dst, in order, and returns their length.
func (m *Message) CopyTo(dst []byte) int {
	if m.segments <= 1 || m.stride == m.unit {
		return copy(dst, m.Payload)
	}
	n := 0
	for i := range int(m.segments) {
		n += copy(dst[n:], m.Piece(i))
	}
	return n
}

// TrainSegments returns how many segments with payloads of unit bytes a train may have;
// 1 if the composite forms no trains.
func (x *Exec) TrainSegments(unit int) int {
	c := x.c
	if !c.trains || unit <= 0 {
		return 1
	}
	return max(1, min(MaxTrain, c.config.Train/(c.pool.hdrSize+unit)))
}

// FormTrain makes m, whose payload is set, a train of segments of unit bytes; the last
// may be shorter. A payload that fits one segment is left as it is.
func (x *Exec) FormTrain(m *Message, unit int) {
	if len(m.Payload) > unit && m.segments <= 1 {
		m.setTrain((len(m.Payload)+unit-1)/unit, unit)
	}
}

// setTrain makes m a train of n segments whose payloads of unit bytes are contiguous.
func (m *Message) setTrain(n, unit int) {
	m.segments = int32(n)
	m.unit = int32(unit)
	m.stride = int32(unit)
}

// Part returns a new message for segment i of a train. It has the stepped header, the same
// local attributes and shares the memory. ErrPool: Limits.Messages are live.
func (x *Exec) Part(m *Message, i int) (*Message, error) {
	p, err := x.part(m, i, m.Piece(i))
	if err == nil && m.stage == stageResumed {
		p.stage = stageResumed
	}
	return p, err
}

// part returns a new message with a payload of m, whose first segment is segment i of m.
func (x *Exec) part(m *Message, i int, payload []byte) (*Message, error) {
	p, err := x.NewMessage(m.dir)
	if err != nil {
		return nil, err
	}
	copy(p.header, m.header)
	x.c.stepHeader(p.header, i, m.Unit())
	x.Share(p, m, payload)
	p.localSet, p.local = m.localSet, m.local
	return p, nil
}

type steppedField struct {
	offset, size int
	bytes        bool // it grows by the bytes of a payload, otherwise by one
}

// stepHeader changes the header of a train's first segment into that of segment i.
func (c *Composite) stepHeader(h []byte, i, unit int) {
	for _, p := range c.stepped {
		n := uint64(i)
		if p.bytes {
			n *= uint64(unit)
		}
		b := h[p.offset:]
		if p.size == 4 { // the most frequent size
			binary.BigEndian.PutUint32(b, binary.BigEndian.Uint32(b)+uint32(n))
			continue
		}
		for k := p.size - 1; n > 0 && k >= 0; k-- { // add with carry, from the lowest byte
			n += uint64(b[k])
			b[k] = byte(n)
			n >>= 8
		}
	}
}

// writeTrain writes the frames of a train to f, in order; only the headers if f has a Body.
func (c *Composite) writeTrain(f *Frame, m *Message) {
	// The header is stepped in a copy: the frame may be in no cache, and reading back what
	// was just written there would wait for it.
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

// trainLength returns how many frames at the start of data, each of unit bytes but the
// last, form a train.
func (c *Composite) trainLength(data []byte, unit int) int {
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

// inputTrain takes a frame that holds several. Each sequence of them that forms a train
// becomes one message.
func (c *Composite) inputTrain(f Frame) {
	unit, data := f.Segment, f.Data
	for len(data) > 0 && c.err == nil {
		n := c.trainLength(data, unit)
		took := min(n*unit, len(data))
		g := f.Retain()
		g.Data, g.Segment = data[:took], 0
		if n > 1 {
			g.Segment = unit
		}
		c.input(&g)
		c.runQueue() // the messages that it released go before the next
		data = data[took:]
	}
	if len(data) > 0 {
		c.counters.FramesIn++
		c.refuseFrame(&f, "failed")
		return
	}
	f.Release()
}

// planTrains decides whether the composite forms trains, and collects the stepped fields.
func (c *Composite) planTrains() {
	c.trains = c.config.Train > 0 && !slices.ContainsFunc(c.attached, func(a *attachment) bool { return !a.trains })
	for _, f := range c.fields {
		if f.step != 0 {
			c.stepped = append(c.stepped, steppedField{f.offset, f.size, f.step == StepBytes})
		}
	}
}

// FormsTrains reports whether the composite forms and takes trains: the layer below takes
// them, and so does every micro-protocol (see Binder.TakesTrains).
func (c *Composite) FormsTrains() bool { return c.trains }
