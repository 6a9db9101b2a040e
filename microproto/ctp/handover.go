package ctp

import (
	"fmt"
	"time"

	"github.com/p2pdc/p2pdc/microproto"
)

// What the endpoints hand on when a session changes its composition. Messages that
// are not accepted are not their business: the session keeps them and sends them again.

// Export implements microproto.Migratable: the queues, tag by tag.
func (s *Synchronous) Export(l *microproto.HandoverState) {
	s.Withdraw() // nothing is written to a user's memory any more
	for i := range s.queues {
		q := &s.queues[i]
		for q.messages.n > 0 {
			m := q.messages.front()
			l.Unread = append(l.Unread, microproto.Unread{Tag: q.tag, Label: m.label, Data: m.data, Cost: cost(len(m.data))})
			q.messages.pop()
		}
	}
	l.Stored, l.Consumed, l.Credit = s.stored, *s.consumed, *s.consumed+s.limit
}

// Import implements microproto.Migratable.
func (s *Synchronous) Import(l *microproto.HandoverState) error {
	if l.Stored-l.Consumed > s.limit {
		return fmt.Errorf("%w: %d bytes are unread and the receive queue has %d", ErrQueueFull, l.Stored-l.Consumed, s.limit)
	}
	s.stored, *s.taken, *s.consumed = l.Stored, l.Stored, l.Consumed
	for _, u := range l.Unread {
		q := s.queue(u.Tag)
		if q == nil {
			return fmt.Errorf("%w: unread messages of more than %d tags", ErrSlot, maxTags)
		}
		q.messages.push(stored{label: u.Label, data: u.Data})
	}
	l.Unread, l.Superseded = nil, true
	return nil
}

// SetCredit implements microproto.Migratable.
func (s *Synchronous) SetCredit(sent, granted uint64) {
	*s.sent, *s.grant = sent, max(*s.grant, granted)
}

// Granted implements microproto.Migratable.
func (s *Synchronous) Granted() uint64 { return *s.grant }

// Export implements microproto.Migratable: the slots.
func (a *Asynchronous) Export(l *microproto.HandoverState) {
	l.Slots = slotsState{a.slots, *a.segment}
	a.slots = nil
}

type slotsState struct {
	slots   []*slot
	segment int
}

// Import implements microproto.Migratable. A slot keeps what it held, also when the new
// composition has segments of another size, unless messages have come since.
func (a *Asynchronous) Import(l *microproto.HandoverState) error {
	if l.Slots == nil {
		return nil
	}
	t, ok := l.Slots.(slotsState)
	if !ok {
		return fmt.Errorf("ctp: Asynchronous cannot go on from %T", l.Slots)
	}
	defer func() { l.Slots, l.Superseded = nil, false }()
	for i, s := range a.slots {
		for _, old := range t.slots {
			if old.tag == s.tag && len(old.data) == len(s.data) {
				old.cut = t.segment
				if l.Superseded {
					old.empty()
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

// empty forgets what has come. Labels that were sent are remembered.
func (s *slot) empty() {
	clear(s.parts)
	s.absent, s.fresh = len(s.parts), 0
}

// recut gives an inherited slot its parts for segments of another size. A new part is
// there when all that it covers is there, as old as the oldest of that, and fresh when
// any of it is.
func (s *slot) recut(segment int) {
	old, size := s.parts, s.cut
	s.parts = make([]part, (len(s.data)+segment-1)/segment)
	s.absent, s.fresh = 0, 0
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
	s, ok := state.(rttState)
	if !ok {
		return fmt.Errorf("ctp: RTTEstimation cannot import %T", state)
	}
	r.rttState = s
	*r.rtt = s.srtt
	return nil
}

// drainFloor takes the place of the time-out's floor and granularity while a channel drains.
const drainFloor = time.Millisecond

// drain makes the time-out follow the round trip alone.
func (r *RTTEstimation) drain(*microproto.Exec, struct{}) {
	r.floor, r.granularity = min(r.floor, drainFloor), min(r.granularity, drainFloor)
	if r.sampled {
		*r.rto = r.timeout()
	}
}

// drain sets the timer anew.
func (r *Retransmit) drain(x *microproto.Exec, _ struct{}) {
	if r.inCount > 0 {
		r.arm(x, true)
	}
}
