package ctp

import (
	"fmt"

	"github.com/p2pdc/p2pdc/microproto"
)

// Asynchronous is the endpoint of the asynchronous columns. A session has slots: a tag and a
// fixed length each. Every segment carries the label of its value, and the newest one wins for
// each segment, so a lost segment costs that segment only. Send never blocks: a segment that
// finds no room below is dropped and counted. A segment that another micro-protocol holds, in memory
// of its own, is replaced by the newer value at its place in the queue: at the end of the queue, a value
// that never fits a window completely would never send its last segments. While the link is busy the
// node replaces waiting segments by newer ones.
type Asynchronous struct {
	named
	tag           microproto.Attr[uint32]
	label         microproto.Attr[uint64]
	offset, total microproto.Attr[uint32]
	segment       *int
	atOnce        *bool
	buffers       *buffers

	sendTag     uint32
	sendLabel   uint64
	sent        uint64
	arrivals    uint64
	overwritten *uint64
	slots       []*slot
}

// slot is the memory of a tag.
type slot struct {
	tag             uint32
	data            []byte
	parts           []part
	absent          int // parts that have not arrived yet
	fresh           int // parts that arrived since the last Receive
	last            uint64
	sent            bool         // a value with label last was sent
	importedSegment int          // segment size of imported parts, 0: none
	outgoing        []messageRef // the last segment sent of each part; nil before the first, if none is held
	// A View has taken the last value, and data holds an older one: a part is valid only while it is fresh.
	stale bool
	// whole is the last value while it is fresh, in the memory of the link, if it is a single long segment; else nil.
	whole *microproto.Message
}

type part struct {
	label uint64
	have  bool
	fresh bool
}

func newAsynchronous(s *settings) microproto.MicroProtocol { return &Asynchronous{named: s.named} }

// Attach implements microproto.MicroProtocol.
func (a *Asynchronous) Attach(b *microproto.Binder) error {
	b.TakesTrains()
	lookupAttr(b, attrOffset, &a.offset)
	lookupAttr(b, attrTotal, &a.total)
	lookupCell(b, microproto.CellSegmentBytes, &a.segment)
	lookupCell(b, cellAtOnce, &a.atOnce)
	lookupCell(b, cellBuffers, &a.buffers)
	declareCell(b, microproto.CellOverwritten, &a.overwritten, 0)
	wireAttr(b, "asynchronous.tag", &a.tag)
	wireAttr(b, "asynchronous.label", &a.label)
	bind(b, microproto.OpenSession, func(x *microproto.Exec, _ struct{}) {
		*a.atOnce = true
		for _, s := range a.slots {
			a.partition(s)
		}
		if !x.Holds() {
			return
		}
		// The header is complete, and the windows do not have the segment yet.
		if _, err := microproto.BindNow(x, microproto.SegmentFromUser, microproto.Last-1, a.replace); err != nil {
			x.Fail(err)
		}
	})
	microproto.Bind(b, microproto.SegmentFromUser, microproto.Early, a.fillHeader)
	microproto.Bind(b, microproto.SegmentToUser, microproto.Early, a.store)
	return nil
}

const maxSlots = 1024

// Slot implements microproto.Endpoint. The length is a multiple of 8.
func (a *Asynchronous) Slot(tag uint32, length int) error {
	if length <= 0 || length%8 != 0 || length > defaultMessageMax {
		return fmt.Errorf("%w: tag %d with %d bytes; want a multiple of 8, at most %d", ErrSlot, tag, length,
			defaultMessageMax)
	}
	if a.find(tag) != nil {
		return fmt.Errorf("%w: tag %d is declared already", ErrSlot, tag)
	}
	if len(a.slots) == maxSlots {
		return fmt.Errorf("%w: %d slots are declared already", ErrSlot, maxSlots)
	}
	s := &slot{tag: tag, data: make([]byte, length)}
	a.slots = append(a.slots, s)
	if *a.segment > 0 {
		a.partition(s)
	}
	return nil
}

func (a *Asynchronous) partition(s *slot) {
	if *a.segment <= 0 {
		return // Resize has failed the composite
	}
	if s.importedSegment > 0 {
		if s.importedSegment != *a.segment {
			s.repartition(*a.segment)
		}
		s.importedSegment = 0
		return
	}
	n := (len(s.data) + *a.segment - 1) / *a.segment
	s.parts = make([]part, n)
	s.absent, s.fresh = n, 0
}

func (a *Asynchronous) find(tag uint32) *slot {
	for _, s := range a.slots {
		if s.tag == tag {
			return s
		}
	}
	return nil
}

// Send implements microproto.Endpoint. data has the slot's length. The label must not be below
// that of the last Send of the tag.
func (a *Asynchronous) Send(x *microproto.Exec, tag uint32, label uint64, data []byte) (uint64, error) {
	s := a.find(tag)
	if s == nil || len(data) != len(s.data) {
		return 0, fmt.Errorf("%w: tag %d with %d bytes", ErrSlot, tag, len(data))
	}
	if s.sent && label < s.last {
		return 0, fmt.Errorf("ctp: label %d of tag %d after %d: labels must not decrease", label, tag, s.last)
	}
	m, err := x.NewMessage(microproto.Down)
	if err != nil {
		return 0, microproto.ErrBusy
	}
	s.sent, s.last = true, label
	m.Payload = data
	a.sendTag, a.sendLabel = tag, label
	microproto.Raise(x, microproto.MessageFromUser, m)
	a.sent++
	return a.sent, nil
}

func (a *Asynchronous) fillHeader(_ *microproto.Exec, m *microproto.Message) {
	a.tag.Set(m, a.sendTag)
	a.label.Set(m, a.sendLabel)
}

// replace lets a segment replace the last one of the same part, if that is held.
func (a *Asynchronous) replace(x *microproto.Exec, m *microproto.Message) {
	s := a.find(a.tag.Get(m))
	if s == nil {
		return // not submitted by Send
	}
	if len(s.outgoing) != len(s.parts) {
		s.outgoing = make([]messageRef, len(s.parts))
	}
	if last := &s.outgoing[int(a.offset.Get(m)) / *a.segment]; !last.held(x) || !x.Replace(last.m, m) {
		*last = refTo(m)
	}
}

// messageRef refers to a message that may have ended.
type messageRef struct {
	m  *microproto.Message
	id uint64
}

func refTo(m *microproto.Message) messageRef { return messageRef{m, m.ID()} }

// held reports whether the message waits in the queue of a micro-protocol.
func (r messageRef) held(x *microproto.Exec) bool {
	return r.m != nil && r.m.ID() == r.id && x.Held(r.m) != 0
}

// Accepted implements microproto.Endpoint: a transfer is complete when Send returns.
func (a *Asynchronous) Accepted() uint64 { return a.sent }

// Arrivals implements microproto.Endpoint: it counts the segments that were newer than those
// of the slot.
func (a *Asynchronous) Arrivals() uint64 { return a.arrivals }

func (a *Asynchronous) store(x *microproto.Exec, m *microproto.Message) {
	s := a.find(a.tag.Get(m))
	if s == nil {
		x.Drop(m, "no such slot")
		return
	}
	o, label, newer := int(a.offset.Get(m)), a.label.Get(m), false
	if int(a.total.Get(m)) != len(s.data) || m.Length() == 0 {
		x.Drop(m, "not the slot's length")
		return
	}
	if keep := len(s.parts) == 1 && m.Segments() == 1 && a.buffers.mayKeep(m, len(s.data), 0); keep || s.whole != nil {
		newer = a.putWhole(x, s, label, m, keep)
	} else {
		for i := range m.Segments() {
			newer = a.put(s, o+i*m.Unit(), label, m.Piece(i)) || newer
		}
	}
	switch {
	case !newer:
		x.Drop(m, "not newer")
	case m == s.whole:
		x.Halt() // Resize must not keep it, too
	default:
		x.Done(m)
	}
}

// putWhole stores a value that is one segment, which it keeps or copies, if it is newer, and reports whether it was.
func (a *Asynchronous) putWhole(x *microproto.Exec, s *slot, label uint64, m *microproto.Message, keep bool) bool {
	if !a.advance(s, &s.parts[0], label) {
		return false
	}
	a.forget(x, s)
	if keep {
		s.whole = m
		a.buffers.kept++
	} else {
		copy(s.data, m.Payload)
	}
	return true
}

// forget ends the segment that a slot keeps, if it keeps one.
func (a *Asynchronous) forget(x *microproto.Exec, s *slot) {
	if m := s.whole; m != nil {
		s.whole = nil
		a.buffers.kept--
		x.Done(m)
	}
}

// copyWhole moves the value that a slot keeps to the slot's memory.
func (a *Asynchronous) copyWhole(x *microproto.Exec, s *slot) {
	if s.whole != nil {
		copy(s.data, s.whole.Payload)
		a.forget(x, s)
	}
}

// put stores one segment if it is newer, and reports whether it was.
func (a *Asynchronous) put(s *slot, o int, label uint64, data []byte) bool {
	p := &s.parts[o / *a.segment] // Resize has checked the shape
	if !a.advance(s, p, label) {
		return false
	}
	copy(s.data[o:], data)
	return true
}

// advance notes that a part has arrived, and reports whether it is newer than the one before.
func (a *Asynchronous) advance(s *slot, p *part, label uint64) bool {
	if p.have && label <= p.label {
		return false
	}
	if !p.have {
		p.have = true
		s.absent--
	}
	if p.fresh {
		*a.overwritten++
	} else {
		p.fresh = true
		s.fresh++
		s.stale = s.stale && s.fresh < len(s.parts)
	}
	p.label = label
	a.arrivals++
	return true
}

// Receive implements microproto.Endpoint.
func (a *Asynchronous) Receive(x *microproto.Exec, tag uint32, dst []byte,
	labels *[]microproto.SegmentLabel) (microproto.Arrival, error) {
	s := a.find(tag)
	if s == nil {
		return microproto.Arrival{}, fmt.Errorf("%w: tag %d", ErrSlot, tag)
	}
	if len(dst) < len(s.data) {
		return microproto.Arrival{Length: len(s.data)}, microproto.ErrShort
	}
	a.copyWhole(x, s)
	r := microproto.Arrival{Length: len(s.data), Fresh: s.fresh > 0, Complete: s.absent == 0}
	first := true
	if labels != nil {
		*labels = (*labels)[:0]
	}
	for i := range s.parts {
		p, from := &s.parts[i], i**a.segment
		if !p.have {
			continue
		}
		l := microproto.SegmentLabel{Offset: from, Length: min(*a.segment, len(s.data)-from), Label: p.label}
		if p.fresh {
			copy(dst[from:], s.data[from:from+l.Length])
			p.fresh = false
		}
		if first || p.label < r.Label {
			r.Label = p.label
		}
		r.Newest = max(r.Newest, p.label)
		first = false
		if labels != nil && len(*labels) < cap(*labels) {
			*labels = append(*labels, l)
		}
	}
	s.fresh = 0
	return r, nil
}

// View implements microproto.Endpoint.
func (a *Asynchronous) View(x *microproto.Exec, tag uint32, v *microproto.View) (microproto.Arrival, error) {
	s := a.find(tag)
	switch {
	case s == nil:
		return microproto.Arrival{}, fmt.Errorf("%w: tag %d", ErrSlot, tag)
	case s.fresh == 0: // most calls
		return microproto.Arrival{Length: len(s.data), Complete: s.absent == 0}, nil
	case s.whole != nil:
		v.Keep([]*microproto.Message{s.whole})
		a.forget(x, s)
		s.stale = true
		return s.taken(), nil
	case s.fresh == len(s.parts):
		return s.exchange(v), nil
	}
	r, err := a.Receive(x, tag, v.Memory(len(s.data)), nil)
	if err == nil && r.Complete {
		v.Show()
	}
	return r, err
}

// exchange gives the data, all of which are fresh, to the view, for memory that the view does not need any more.
func (s *slot) exchange(v *microproto.View) microproto.Arrival {
	free := v.Swap(s.data)
	if len(free) != len(s.data) {
		free = make([]byte, len(s.data))
	}
	s.data, s.stale = free, true
	return s.taken()
}

// taken describes the value, all parts of which are fresh, and makes none of them fresh.
func (s *slot) taken() microproto.Arrival {
	r := microproto.Arrival{Label: s.parts[0].label, Length: len(s.data), Fresh: true, Complete: true}
	for i := range s.parts {
		p := &s.parts[i]
		r.Label, r.Newest = min(r.Label, p.label), max(r.Newest, p.label)
		p.fresh = false
	}
	s.fresh = 0
	return r
}
