package simulate

import "github.com/p2pdc/p2pdc/microproto"

// event is something that will happen in a process. Events of one instant happen in the order
// in which they were planned.
type event struct {
	at   microproto.Instant
	seq  uint64
	what *flight // what it is about, where it is about something
	kind eventKind
}

type eventKind uint8

const (
	evStart   eventKind = iota // the host connects
	evTurn                     // its peer goes on
	evAlarm                    // its node has something due
	evPass                     // a flight reaches a trunk
	evPort                     // a flight reaches its receiver's port of the switch
	evArrive                   // its first frame reaches the receiver
	evBacklog                  // the receiver has time again for what has come
	evInput                    // it is handed to the receiver's node
	evHold                     // a full port holds the host's line until the flight's last
	evRoom                     // the host's line can take frames again
	evDial                     // somebody dials
	evUp                       // a dial of the host's comes to an end
	evMessage                  // a control message arrives
)

// queue is a heap of four children a node: events come out by (instant, sequence).
type eventHeap struct {
	heap []event
	seq  uint64
}

func (a *event) before(b *event) bool { return a.at < b.at || a.at == b.at && a.seq < b.seq }

// next is the instant of the first event, Never without one.
func (q *eventHeap) next() microproto.Instant {
	if len(q.heap) == 0 {
		return microproto.Never
	}
	return q.heap[0].at
}

// push plans an event.
func (q *eventHeap) push(at microproto.Instant, kind eventKind, what *flight) {
	q.seq++
	e := event{at, q.seq, what, kind}
	q.heap = append(q.heap, e)
	h, i := q.heap, len(q.heap)-1
	for i > 0 {
		parent := (i - 1) / 4
		if !e.before(&h[parent]) {
			break
		}
		h[i] = h[parent]
		i = parent
	}
	h[i] = e
}

// pop takes the first event; there must be one.
func (q *eventHeap) pop() event {
	h := q.heap
	last := len(h) - 1
	first, e := h[0], h[last]
	h[last] = event{}
	h = h[:last]
	q.heap = h
	if last == 0 {
		return first
	}
	i := 0
	for {
		child := 4*i + 1
		if child >= len(h) {
			break
		}
		least := child
		for c := child + 1; c < min(child+4, len(h)); c++ {
			if h[c].before(&h[least]) {
				least = c
			}
		}
		if !h[least].before(&e) {
			break
		}
		h[i] = h[least]
		i = least
	}
	h[i] = e
	return first
}
