package software

import (
	"fmt"
	"net"
	"sync"
	"sync/atomic"

	"github.com/p2pdc/p2pdc/ib/internal/verbs"
)

// pair is a queue pair. mu guards the requester (the send queue), responderMu the responder (the
// receive queue). mu is locked first. No goroutine holds the mu of two pairs. A transmitting
// requester holds its own mu and, for each packet, the other end's responderMu.
type pair struct {
	domain      *domain
	adapter     *Adapter
	fabric      *Fabric
	number      uint32
	transport   verbs.Transport
	cfg         verbs.PairConfig
	sendQueue   *queue
	recvQueue   *queue
	state       atomic.Uint32 // verbs.PairState; written under responderMu
	epoch       atomic.Uint32 // counts resets
	freed       atomic.Uint64 // send requests whose room is free, counted by Poll
	closed      atomic.Bool
	destination atomic.Pointer[port]

	mu       sync.Mutex
	attr     verbs.Attributes // as set so far
	requests requester

	responderMu sync.Mutex
	responder   responder
}

func (d *domain) CreatePair(c verbs.PairConfig) (verbs.Pair, error) {
	if err := d.device.check(); err != nil {
		return nil, err
	}
	a := d.device.adapter
	if err := c.Check(a.limits); err != nil {
		return nil, err
	}
	s, is := c.Send.(*queue)
	r, are := c.Receive.(*queue)
	if !is || !are || s.device != d.device || r.device != d.device {
		return nil, fmt.Errorf("%w: the completion queues are of another device", verbs.ErrAttributes)
	}
	q := &pair{
		domain: d, adapter: a, fabric: a.fabric, transport: c.Transport, cfg: c, sendQueue: s, recvQueue: r,
	}
	q.requests.init(q)
	q.responder.init(q)
	if err := s.attach(q); err != nil {
		return nil, err
	}
	if err := r.attach(q); err != nil {
		s.detach(q)
		return nil, err
	}
	q.responderMu.Lock() // nothing may be received before the pair has its number
	defer q.responderMu.Unlock()
	number, err := a.pairs.put(q, "queue pairs")
	if err != nil {
		s.detach(q)
		r.detach(q)
		return nil, err
	}
	q.number = number
	d.users.Add(1)
	a.fabric.countOpened(Pairs)
	return q, nil
}

func (q *pair) Number() uint32 { return q.number }

func (q *pair) State() (verbs.PairState, error) { return q.currentState(), q.check() }

func (q *pair) currentState() verbs.PairState { return verbs.PairState(q.state.Load()) }

func (q *pair) check() error {
	if q.closed.Load() {
		return fmt.Errorf("software verbs: queue pair %#x: %w", q.number, net.ErrClosed)
	}
	return q.adapter.check()
}

// Close closes the pair. Like adapters, it drops outstanding requests without completions, and
// completions that were not polled.
func (q *pair) Close() error {
	if q.closed.Swap(true) {
		return nil
	}
	q.adapter.pairs.remove(q.number)
	q.mu.Lock()
	q.responderMu.Lock()
	q.reset()
	q.responderMu.Unlock()
	q.mu.Unlock()
	q.sendQueue.detach(q)
	q.recvQueue.detach(q)
	q.domain.users.Add(-1)
	q.fabric.countClosed(Pairs)
	q.fabric.processFailures()
	return nil
}

// reset empties both queues without completions. Both locks are held.
func (q *pair) reset() {
	q.state.Store(uint32(verbs.Reset))
	q.epoch.Add(1)
	q.requests.reset()
	q.responder.reset()
	q.sendQueue.removePair(q)
	q.recvQueue.removePair(q)
	q.attr = verbs.Attributes{}
	q.destination.Store(nil)
}

// fail moves the pair to Error and flushes both queues. mu is held, responderMu is not.
func (q *pair) fail() {
	q.responderMu.Lock()
	q.state.Store(uint32(verbs.Error))
	q.responder.flush()
	q.responderMu.Unlock()
	q.requests.flush()
}

// failAt fails the pair unless it was reset since that epoch.
func (q *pair) failAt(epoch uint32) {
	q.mu.Lock()
	if q.epoch.Load() == epoch && !q.closed.Load() && q.currentState() != verbs.Reset {
		q.fail()
		q.domain.device.raise(verbs.Event{Kind: verbs.EventPairFatal, Pair: q.number})
	}
	q.mu.Unlock()
	q.fabric.processFailures()
}
