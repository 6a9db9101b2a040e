package ctp

import (
	"fmt"
	"time"

	"github.com/p2pdc/p2pdc/microproto"
)

// When a session changes its composition, the endpoints hand over what has arrived. The
// session itself keeps the messages that are not accepted, and sends them again.

// Export implements microproto.Migratable: it moves the queues, tag by tag.
func (s *Synchronous) Export(h *microproto.HandoverState) {
	s.Withdraw() // the user's memory must not be written to any more
	for i := range s.queues {
		q := &s.queues[i]
		for q.messages.Len() > 0 {
			m := *q.messages.Front()
			q.messages.Drop()
			s.buffers.flatten(&m.contents) // the parts end with the composite
			u := microproto.Unread{Tag: q.tag, Label: m.label, Data: m.data, Cost: cost(m.length)}
			h.Unread = append(h.Unread, u)
		}
	}
	h.Stored, h.Consumed = s.stored, *s.consumed
	h.Credit = *s.consumed + s.limit
}

// Import implements microproto.Migratable.
func (s *Synchronous) Import(h *microproto.HandoverState) error {
	if unread := h.Stored - h.Consumed; unread > s.limit {
		return fmt.Errorf("%w: %d bytes are unread, the receive queue has %d", ErrQueueFull, unread, s.limit)
	}
	s.stored, *s.taken = h.Stored, h.Stored
	*s.consumed = h.Consumed
	for _, u := range h.Unread {
		q := s.queue(u.Tag)
		if q == nil {
			return fmt.Errorf("%w: unread messages of more than %d tags", ErrSlot, maxTags)
		}
		q.messages.Push(storedMessage{u.Label, contents{length: len(u.Data), data: u.Data}})
	}
	h.Unread, h.Superseded = nil, true
	return nil
}

// SetCredit implements microproto.Migratable.
func (s *Synchronous) SetCredit(sent, granted uint64) {
	*s.sent, *s.grant = sent, max(*s.grant, granted)
}

// Granted implements microproto.Migratable.
func (s *Synchronous) Granted() uint64 { return *s.grant }

// Export implements microproto.Migratable: it moves the slots.
func (a *Asynchronous) Export(h *microproto.HandoverState) {
	for _, s := range a.slots {
		if m := s.whole; m != nil { // it ends with the composite
			copy(s.data, m.Payload)
			s.whole = nil
		}
	}
	h.Slots = slotsState{a.slots, *a.segment}
	a.slots = nil
}

type slotsState struct {
	slots   []*slot
	segment int
}

// Import implements microproto.Migratable. A slot keeps its value, even if the segments of the
// new composition have another size, unless synchronous messages have come since.
func (a *Asynchronous) Import(h *microproto.HandoverState) error {
	if h.Slots == nil {
		return nil
	}
	t, err := imported[slotsState](a.named, h.Slots)
	if err != nil {
		return err
	}
	defer func() { h.Slots, h.Superseded = nil, false }()
	for i, s := range a.slots {
		for _, old := range t.slots {
			if old.tag == s.tag && len(old.data) == len(s.data) {
				old.importedSegment = t.segment
				if h.Superseded {
					old.clear()
				}
				a.slots[i] = old
			}
		}
	}
	return nil
}

// SetCredit implements microproto.Migratable.
func (a *Asynchronous) SetCredit(_, _ uint64) {}

// Granted implements microproto.Migratable.
func (a *Asynchronous) Granted() uint64 { return 0 }

// clear discards the value that has arrived. The label last sent remains.
func (s *slot) clear() {
	clear(s.parts)
	s.absent, s.fresh = len(s.parts), 0
}

// repartition divides an imported slot into parts for segments of another size. A new part
// has arrived if all old parts that it overlaps have; it has the smallest of their labels,
// and is fresh if any of them is. If a View has taken the data away, the slot starts empty.
func (s *slot) repartition(segment int) {
	old, size := s.parts, s.importedSegment
	s.parts = make([]part, (len(s.data)+segment-1)/segment)
	if s.absent, s.fresh = 0, 0; s.stale {
		s.absent, s.stale = len(s.parts), false
		return
	}
	for i := range s.parts {
		p := &s.parts[i]
		p.have = true
		last := min((i+1)*segment, len(s.data)) - 1
		for k := i * segment / size; k <= last/size; k++ {
			o := &old[k]
			p.have = p.have && o.have
			p.fresh = p.fresh || o.fresh
			if k == i*segment/size || o.label < p.label {
				p.label = o.label
			}
		}
		p.fresh = p.fresh && p.have
		if !p.have {
			p.label = 0
			s.absent++
		}
		if p.fresh {
			s.fresh++
		}
	}
}

// ExportState implements microproto.StateExporter: the round trip of the path.
func (r *RTTEstimation) ExportState() microproto.State { return r.rttState }

// ImportState implements microproto.StateExporter.
func (r *RTTEstimation) ImportState(state microproto.State) error {
	s, err := imported[rttState]("RTTEstimation", state)
	if err == nil {
		r.rttState, *r.rtt = s, s.srtt
	}
	return err
}

// imported returns an exported state as the type of the micro-protocol that imports it.
func imported[T any](by named, state microproto.State) (T, error) {
	s, ok := state.(T)
	if !ok {
		return s, fmt.Errorf("ctp: %s cannot import %T", by, state)
	}
	return s, nil
}

// drainFloor bounds the floor and the granularity of the time-out while a channel drains.
const drainFloor = time.Millisecond

// drain shortens the time-out to little more than the round trip.
func (r *RTTEstimation) drain(*microproto.Exec, struct{}) {
	r.floor, r.granularity = min(r.floor, drainFloor), min(r.granularity, drainFloor)
	if r.sampled {
		*r.rto = r.timeout()
	}
}

func (r *Retransmit) drain(x *microproto.Exec, _ struct{}) {
	if r.inCount > 0 {
		r.arm(x, true)
	}
}
