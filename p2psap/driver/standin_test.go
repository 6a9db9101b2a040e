package driver

import (
	"fmt"

	"github.com/p2pdc/p2pdc/microproto"
)

// The stand-ins are the simplest micro-protocols that make an endpoint over a link that loses nothing and
// keeps the order: these tests are about the driver. They allocate nothing once their slots are declared.

const standInDepth = 8 // messages kept per tag; also the sender's grant

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
	granted  uint64
	arrived  uint64
	received uint64
	slots    map[uint32]*standInSlot
}

type standInSlot struct {
	length int
	first  int
	count  int
	data   [standInDepth][]byte
	sizes  [standInDepth]int
	labels [standInDepth]uint64
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
	slot := s.slots[s.tag.Get(m)]
	switch {
	case s.kind.Get(m) == 1:
		s.accepted = max(s.accepted, s.label.Get(m))
		return
	case s.kind.Get(m) == 2:
		s.granted = max(s.granted, s.label.Get(m))
		return
	case slot == nil || len(m.Payload) > slot.length:
		return
	case s.async:
		slot.count = 0
	case slot.count == standInDepth:
		return // cannot be: the sender's grant is as large
	}
	i := (slot.first + slot.count) % standInDepth
	slot.sizes[i], slot.labels[i] = copy(slot.data[i], m.Payload), s.label.Get(m)
	slot.count++
	s.arrived++
	if !s.async {
		s.put(x, 1, s.tag.Get(m), s.arrived, nil)
	}
}

func (s *standIn) put(x *microproto.Exec, kind uint8, tag uint32, label uint64, data []byte) {
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
	slot := &standInSlot{length: length}
	for i := range slot.data {
		slot.data[i] = make([]byte, length)
	}
	s.slots[tag] = slot
	return nil
}

func (s *standIn) Send(x *microproto.Exec, tag uint32, label uint64, data []byte) (uint64, error) {
	if slot := s.slots[tag]; slot == nil || slot.length < len(data) {
		return 0, fmt.Errorf("tag %d takes no %d bytes", tag, len(data))
	}
	if !s.async && s.sent-s.granted >= standInDepth {
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

func (s *standIn) Receive(x *microproto.Exec, tag uint32, dst []byte,
	_ *[]microproto.SegmentLabel) (microproto.Arrival, error) {
	slot := s.slots[tag]
	if slot == nil || slot.count == 0 {
		if s.async {
			return microproto.Arrival{}, nil
		}
		return microproto.Arrival{}, microproto.ErrNothing
	}
	i := slot.first
	n := copy(dst, slot.data[i][:slot.sizes[i]])
	slot.first = (slot.first + 1) % standInDepth
	slot.count--
	if !s.async {
		s.received++
		s.put(x, 2, tag, s.received, nil) // there is room again
	}
	return microproto.Arrival{Label: slot.labels[i], Newest: slot.labels[i], Length: n, Fresh: true, Complete: true}, nil
}

// standIns returns a catalog of what the InfiniBand columns need.
func standIns(extra ...string) *microproto.Catalog {
	c := microproto.NewCatalog()
	add := func(name string, f func() microproto.MicroProtocol) {
		if err := c.Add(name, func(microproto.Options) (microproto.MicroProtocol, error) { return f(), nil }); err != nil {
			panic(err)
		}
	}
	for _, name := range append([]string{"TransportDriver", "Resize"}, extra...) {
		add(name, func() microproto.MicroProtocol { return idle(name) })
	}
	add("Synchronous", func() microproto.MicroProtocol {
		return &standIn{name: "Synchronous", slots: map[uint32]*standInSlot{}}
	})
	add("Asynchronous", func() microproto.MicroProtocol {
		return &standIn{name: "Asynchronous", async: true, slots: map[uint32]*standInSlot{}}
	})
	return c
}
