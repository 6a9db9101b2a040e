package simulate

import "github.com/p2pdc/p2pdc/microproto"

// event happens in a process. Events of one instant happen in the order in which they were
// scheduled.
type event struct {
	at   microproto.Instant
	seq  uint64
	what *flight // the flight concerned, if there is one
	kind eventKind
}

type eventKind uint8

const (
	evStart   eventKind = iota // the host connects
	evTurn                     // its peer goes on
	evAlarm                    // a timer of its node is due
	evPass                     // a flight reaches a shared link
	evPort                     // a flight reaches its receiver's port of the switch
	evArrive                   // its first frame reaches the receiver
	evBacklog                  // the receiver has time again for what has come
	evInput                    // the flight is passed to the receiver's node
	evHold                     // a full port holds the host's line until the flight's last
	evRoom                     // the host's line can accept frames again
	evDial                     // another host dials
	evUp                       // a dial of this host ends
	evMessage                  // a control message arrives
	evCopy                     // a copy of another host's block has arrived
	evStored                   // the copy of the host's block is stored
)

// eventHeap is a heap with four children per node. Events are taken in the order of (instant,
// sequence).
type eventHeap struct {
	heap []event
	seq  uint64
}

func (a *event) before(b *event) bool { return a.at < b.at || a.at == b.at && a.seq < b.seq }

// next returns the instant of the first event; Never if there is none.
func (q *eventHeap) next() microproto.Instant {
	if len(q.heap) == 0 {
		return microproto.Never
	}
	return q.heap[0].at
}

// push schedules an event.
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

// pop removes and returns the first event; there must be one.
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
