package ctp

import "github.com/p2pdc/p2pdc/microproto"

// valueQueue holds segments of values that wait to go, oldest place first. A newer
// value of a segment takes the place of the one that waits: in its place and not
// behind, or a value that never fits whole would never send its last segments.
type valueQueue struct {
	entries fifo[waitingSegment]
	popped  uint64 // entries in all
	slots   []waitingSlot
}

// waitingSegment is a segment of a value: the slot's tag and the segment's index in it.
type waitingSegment struct {
	m     *microproto.Message
	tag   uint32
	index int
}

// waitingSlot finds the places of a slot's segments: entry popped+i has the number
// popped+i+1, 0 is none.
type waitingSlot struct {
	tag    uint32
	places []uint64
}

// put takes a segment and returns the one that gave way to it, if any. It refuses a
// new place past the limit.
func (q *valueQueue) put(s waitingSegment, limit int) (old *microproto.Message, ok bool) {
	place := q.place(s.tag, s.index)
	if *place != 0 {
		e := q.entries.at(int(*place - q.popped - 1))
		old, e.m = e.m, s.m
		return old, true
	}
	if q.entries.n >= limit {
		return nil, false
	}
	q.entries.push(s)
	*place = q.popped + uint64(q.entries.n)
	return nil, true
}

// pop takes the oldest.
func (q *valueQueue) pop() *microproto.Message {
	e := *q.entries.front()
	*q.place(e.tag, e.index) = 0
	q.entries.pop()
	q.popped++
	return e.m
}

// place finds where the place of a segment is noted.
func (q *valueQueue) place(tag uint32, index int) *uint64 {
	i := 0
	for i < len(q.slots) && q.slots[i].tag != tag {
		i++
	}
	if i == len(q.slots) {
		q.slots = append(q.slots, waitingSlot{tag: tag})
	}
	s := &q.slots[i]
	for index >= len(s.places) {
		s.places = append(s.places, 0)
	}
	return &s.places[index]
}
