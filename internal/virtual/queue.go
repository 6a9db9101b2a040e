package virtual

import "github.com/p2pdc/p2pdc/microproto"

// event is something that will happen. Events of one instant happen in the order in
// which they were planned.
type event struct {
	at   microproto.Instant
	seq  uint64
	kind eventKind
	on   int32 // rank, flight, message, dial or index of a model's event: by kind
}

type eventKind uint8

const (
	evStart   eventKind = iota // rank connects
	evTurn                     // rank's peer goes on
	evAlarm                    // rank's node has something due
	evWide                     // flight reaches the line between two sites
	evPort                     // flight reaches its receiver's port of the switch
	evArrive                   // flight's first frame reaches the receiver
	evInput                    // flight is handed to the receiver's node
	evRoom                     // rank's line can take frames again
	evDial                     // dial comes to an end
	evMessage                  // control message arrives
	evChange                   // an event of the model begins, or ends
	evKinds
)

// queue is a heap of four children a node: events come out by (instant, sequence).
type queue struct {
	heap []event
	seq  uint64
}

func (a *event) before(b *event) bool { return a.at < b.at || a.at == b.at && a.seq < b.seq }

// push plans an event.
func (q *queue) push(at microproto.Instant, kind eventKind, on int32) {
	q.seq++
	e := event{at, q.seq, kind, on}
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
func (q *queue) pop() event {
	h := q.heap
	first, e := h[0], h[len(h)-1]
	h = h[:len(h)-1]
	q.heap = h
	if len(h) == 0 {
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
