package p2psap

import (
	"fmt"

	"github.com/p2pdc/p2pdc/microproto"
)

// The stand-ins are the simplest micro-protocols that make an endpoint over a link that loses nothing.
// Sessions are tested with them, so that a failure is the session's; package ctp has tests of its own.

type idle string

func (i idle) Name() string                    { return string(i) }
func (i idle) Attach(*microproto.Binder) error { return nil }

type standIn struct {
	name     string
	async    bool
	kind     microproto.Attr[uint8]
	tag      microproto.Attr[uint32]
	label    microproto.Attr[uint64]
	sent     uint64
	accepted uint64
	arrived  uint64
	credit   int
	slots    map[uint32]int
	queue    map[uint32][]standInMessage
}

type standInMessage struct {
	label uint64
	data  []byte
}

func (s *standIn) Name() string { return s.name }

func (s *standIn) Attach(b *microproto.Binder) error {
	s.kind = microproto.WireAttr[uint8](b, s.name+".kind")
	s.tag = microproto.WireAttr[uint32](b, s.name+".tag")
	s.label = microproto.WireAttr[uint64](b, s.name+".label")
	microproto.Bind(b, microproto.SegmentFromNet, microproto.Normal, s.take)
	return nil
}

func (s *standIn) take(x *microproto.Exec, m *microproto.Message) {
	defer x.Halt()
	defer x.Done(m)
	tag := s.tag.Get(m)
	if s.kind.Get(m) == 1 {
		s.accepted = max(s.accepted, s.label.Get(m))
		return
	}
	if s.async {
		s.queue[tag] = nil
	}
	s.queue[tag] = append(s.queue[tag], standInMessage{s.label.Get(m), append([]byte(nil), m.Payload...)})
	s.arrived++
	if !s.async {
		s.put(x, 1, tag, s.arrived, nil)
	}
}

func (s *standIn) put(x *microproto.Exec, kind uint8, tag uint32, label uint64, data []byte) {
	// Longer values leave in several frames; only the stand-in's length is short of
	// real segmentation, so all but the last are fillers.
	for room := x.MaxPayload(); len(data) > room; data = data[room:] {
		s.one(x, 2, tag, label, data[:room])
	}
	s.one(x, kind, tag, label, data)
}

func (s *standIn) one(x *microproto.Exec, kind uint8, tag uint32, label uint64, data []byte) {
	m, err := x.NewMessage(microproto.Down)
	if err != nil {
		x.Fail(err)
		return
	}
	m.Payload = data
	s.kind.Set(m, kind)
	s.tag.Set(m, tag)
	s.label.Set(m, label)
	if err := x.Transmit(m); err != nil {
		x.Fail(err)
	}
	x.Done(m)
}

func (s *standIn) Slot(tag uint32, length int) error {
	s.slots[tag] = length
	return nil
}

func (s *standIn) Send(x *microproto.Exec, tag uint32, label uint64, data []byte) (uint64, error) {
	if n, ok := s.slots[tag]; !ok || n < len(data) {
		return 0, fmt.Errorf("tag %d takes no %d bytes", tag, len(data))
	}
	if !s.async && int(s.sent-s.accepted) >= s.credit {
		return 0, microproto.ErrBusy
	}
	s.sent++
	s.put(x, 0, tag, label, data)
	return s.sent, nil
}

func (s *standIn) Accepted() uint64 {
	if s.async {
		return s.sent
	}
	return s.accepted
}

func (s *standIn) Arrivals() uint64 { return s.arrived }

func (s *standIn) View(x *microproto.Exec, tag uint32, v *microproto.View) (microproto.Arrival, error) {
	dst := make([]byte, 1<<16)
	a, err := s.Receive(x, tag, dst, nil)
	if a.Fresh {
		v.Swap(dst[:a.Length])
	}
	return a, err
}

func (s *standIn) Receive(_ *microproto.Exec, tag uint32, dst []byte,
	_ *[]microproto.SegmentLabel) (microproto.Arrival, error) {
	q := s.queue[tag]
	if len(q) == 0 {
		if s.async {
			return microproto.Arrival{}, nil
		}
		return microproto.Arrival{}, microproto.ErrNothing
	}
	s.queue[tag] = q[1:]
	n := copy(dst, q[0].data)
	return microproto.Arrival{Label: q[0].label, Newest: q[0].label, Length: n, Fresh: true, Complete: true}, nil
}

// standIns lists what the InfiniBand columns need. version goes into the names'
// fingerprint when it is not empty.
func standIns(extra ...string) *microproto.Catalog {
	c := microproto.NewCatalog()
	add := func(name string, f func() microproto.MicroProtocol) {
		err := c.Add(name, func(microproto.Options) (microproto.MicroProtocol, error) { return f(), nil })
		if err != nil {
			panic(err)
		}
	}
	for _, name := range append([]string{"TransportDriver", "Resize"}, extra...) {
		add(name, func() microproto.MicroProtocol { return idle(name) })
	}
	for _, async := range []bool{false, true} {
		name := map[bool]string{false: "Synchronous", true: "Asynchronous"}[async]
		add(name, func() microproto.MicroProtocol {
			return &standIn{name: name, async: async, credit: 4, slots: map[uint32]int{}, queue: map[uint32][]standInMessage{}}
		})
	}
	return c
}
