package ctp

import (
	"github.com/p2pdc/p2pdc/internal/fifo"
	"github.com/p2pdc/p2pdc/microproto"
)

// valueQueue is the queue of segments of values that wait to be sent. A newer value of a
// segment replaces the waiting one at its position. If it were appended instead, a value that
// never fits the window completely would never send its last segments.
type valueQueue struct {
	entries fifo.Queue[waitingSegment]
	popped  uint64 // number of entries popped
	slots   []waitingSlot
}

// waitingSegment is a segment of a value, with its slot's tag and its index in the slot.
type waitingSegment struct {
	m     *microproto.Message
	tag   uint32
	index int
}

// waitingSlot has the positions of a slot's segments in the queue, counted from 1 over all
// entries ever pushed; 0: the segment does not wait.
type waitingSlot struct {
	tag       uint32
	positions []uint64
}

// put adds a segment and returns the one that it replaces, nil if none. ok is false if the
// queue is at its limit.
func (q *valueQueue) put(s waitingSegment, limit int) (old *microproto.Message, ok bool) {
	place := q.position(s.tag, s.index)
	if *place != 0 {
		e := q.entries.At(int(*place - q.popped - 1))
		old, e.m = e.m, s.m
		return old, true
	}
	if q.entries.Len() >= limit {
		return nil, false
	}
	q.entries.Push(s)
	*place = q.popped + uint64(q.entries.Len())
	return nil, true
}

func (q *valueQueue) pop() *microproto.Message {
	e := *q.entries.Front()
	q.entries.Drop()
	*q.position(e.tag, e.index) = 0
	q.popped++
	return e.m
}

// position returns the variable that holds the position of a segment.
func (q *valueQueue) position(tag uint32, index int) *uint64 {
	i := 0
	for i < len(q.slots) && q.slots[i].tag != tag {
		i++
	}
	if i == len(q.slots) {
		q.slots = append(q.slots, waitingSlot{tag: tag})
	}
	s := &q.slots[i]
	for index >= len(s.positions) {
		s.positions = append(s.positions, 0)
	}
	return &s.positions[index]
}
