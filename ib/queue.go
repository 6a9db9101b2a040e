package ib

import "github.com/p2pdc/p2pdc/microproto"

// maxQueued bounds the queued frames of a pair.
const maxQueued = 4096

// queue holds the frames of a pair that wait for credit or room, oldest first. A newer frame
// of a value replaces a queued one.
type queue struct {
	entries     []queueEntry
	first, last int32 // entries of the queue; -1: empty
	free        int32 // first unused entry; -1: none
	n           int
	heads       [64]int32 // first entries of the hash chains of values; -1: none
}

type queueEntry struct {
	frame microproto.Frame
	next  int32 // in the queue, or among the unused entries
	chain int32 // next entry in the same hash chain
}

func (q *queue) init() {
	q.first, q.last, q.free = -1, -1, -1
	for i := range q.heads {
		q.heads[i] = -1
	}
}

func (q *queue) chain(value uint64) *int32 { return &q.heads[value*0x9e3779b97f4a7c15>>58] }

// replace replaces the queued frame of the same value by f, if there is one.
func (q *queue) replace(f microproto.Frame) bool {
	if q.n == 0 {
		return false
	}
	for i := *q.chain(f.Value); i >= 0; i = q.entries[i].chain {
		if e := &q.entries[i]; e.frame.Value == f.Value {
			e.frame.Release()
			e.frame = f
			return true
		}
	}
	return false
}

func (q *queue) full() bool { return q.n >= maxQueued }

func (q *queue) push(f microproto.Frame) {
	i := q.free
	if i >= 0 {
		q.free = q.entries[i].next
	} else {
		i = int32(len(q.entries))
		q.entries = append(q.entries, queueEntry{})
	}
	e := &q.entries[i]
	e.frame, e.next = f, -1
	e.chain = -1
	if f.Value != 0 {
		c := q.chain(f.Value)
		e.chain, *c = *c, i
	}
	if q.last >= 0 {
		q.entries[q.last].next = i
	} else {
		q.first = i
	}
	q.last = i
	q.n++
}

func (q *queue) front() *microproto.Frame { return &q.entries[q.first].frame }

func (q *queue) pop() microproto.Frame {
	i := q.first
	e := &q.entries[i]
	f := e.frame
	if f.Value != 0 {
		c := q.chain(f.Value)
		for *c != i {
			c = &q.entries[*c].chain
		}
		*c = e.chain
	}
	if q.first = e.next; q.first < 0 {
		q.last = -1
	}
	e.frame, e.next = microproto.Frame{}, q.free
	q.free = i
	q.n--
	return f
}
