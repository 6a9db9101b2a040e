package software

import (
	"fmt"

	"github.com/p2pdc/p2pdc/ib/internal/verbs"
)

// maxMessageBytes is the length of the longest message.
const maxMessageBytes = 1 << 30

// sendSlot holds a posted send request.
type sendSlot struct {
	verbs.SendRequest
	length  uint64
	first   uint32 // PSN of its first packet
	packets int
}

func (q *pair) PostSend(requests []verbs.SendRequest) (n int, err error) {
	if err := q.check(); err != nil {
		return 0, err
	}
	q.mu.Lock()
	for n < len(requests) {
		if err = q.enqueueSend(&requests[n]); err != nil {
			break
		}
		n++
	}
	if n > 0 {
		if q.currentState() == verbs.Error {
			q.requests.flush()
		} else {
			q.transmitPending()
		}
	}
	q.mu.Unlock()
	q.fabric.processFailures()
	return n, err
}

func (q *pair) enqueueSend(w *verbs.SendRequest) error {
	r := &q.requests
	switch s := q.currentState(); {
	case s != verbs.ReadyToSend && s != verbs.Error:
		return fmt.Errorf("%w: a send request in %v", verbs.ErrState, s)
	case w.Operation > verbs.SendImmediate:
		return fmt.Errorf("%w: operation %d", verbs.ErrAttributes, w.Operation)
	case len(w.Elements) > q.cfg.SendElements:
		return fmt.Errorf("%w: %d elements in a send request; the queue pair was made for %d",
			verbs.ErrLimit, len(w.Elements), q.cfg.SendElements)
	case r.posted-q.freed.Load() >= uint64(q.cfg.SendRequests):
		return fmt.Errorf("%w: %d send requests", verbs.ErrQueueFull, q.cfg.SendRequests)
	}
	s := &r.ring[r.posted%uint64(len(r.ring))]
	var length uint64
	for _, e := range w.Elements {
		length += uint64(e.Length)
	}
	elements := append(s.Elements[:0], w.Elements...)
	s.SendRequest, s.length = *w, length
	s.Elements = elements
	r.posted++
	return nil
}

// recvSlot holds a posted receive request.
type recvSlot struct {
	id       uint64
	elements []verbs.Element
	length   uint64
}

func (q *pair) PostReceive(requests []verbs.ReceiveRequest) (n int, err error) {
	if err := q.check(); err != nil {
		return 0, err
	}
	q.responderMu.Lock()
	for n < len(requests) {
		if err = q.enqueueReceive(&requests[n]); err != nil {
			break
		}
		n++
	}
	if n > 0 && q.currentState() == verbs.Error {
		q.responder.flush()
	}
	q.responderMu.Unlock()
	q.fabric.processFailures()
	return n, err
}

func (q *pair) enqueueReceive(w *verbs.ReceiveRequest) error {
	r := &q.responder
	switch {
	case q.currentState() == verbs.Reset:
		return fmt.Errorf("%w: a receive request in %v", verbs.ErrState, verbs.Reset)
	case len(w.Elements) > q.cfg.ReceiveElements:
		return fmt.Errorf("%w: %d elements in a receive request; the queue pair was made for %d",
			verbs.ErrLimit, len(w.Elements), q.cfg.ReceiveElements)
	case r.posted-r.freed.Load() >= uint64(q.cfg.ReceiveRequests):
		return fmt.Errorf("%w: %d receive requests", verbs.ErrQueueFull, q.cfg.ReceiveRequests)
	}
	s := &r.ring[r.posted%uint64(len(r.ring))]
	s.id, s.length = w.ID, 0
	for _, e := range w.Elements {
		s.length += uint64(e.Length)
	}
	s.elements = append(s.elements[:0], w.Elements...)
	r.posted++
	return nil
}
