package software

import (
	"fmt"
	"net"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/p2pdc/p2pdc/ib/internal/verbs"
)

// queue is a completion queue.
type queue struct {
	device  *device
	channel *channel
	pending atomic.Int64 // completions: polling an empty queue takes no lock
	broken  atomic.Bool  // overrun or closed

	mu      sync.Mutex
	ring    []completion
	head    uint64
	tail    uint64
	armed   bool
	overrun bool
	closed  bool
	pairs   []*pair // that complete here, once per queue of a pair
}

// completion is a verbs.Completion with the number of requests of its queue that are done.
// Polling it frees their room.
type completion struct {
	verbs.Completion
	pair     *pair
	freed    uint64
	received bool // of a receive request
}

func (d *device) CreateQueue(depth int, c verbs.Channel) (verbs.CompletionQueue, error) {
	if err := d.check(); err != nil {
		return nil, err
	}
	if depth < 1 || depth > d.adapter.limits.QueueDepth {
		return nil, fmt.Errorf("%w: a completion queue of depth %d; %s allows 1 to %d",
			verbs.ErrLimit, depth, d.adapter.name, d.adapter.limits.QueueDepth)
	}
	q := &queue{device: d, ring: make([]completion, depth)}
	if c != nil {
		ch, is := c.(*channel)
		if !is || ch.device != d {
			return nil, fmt.Errorf("%w: the channel is of another device", verbs.ErrAttributes)
		}
		q.channel = ch
	}
	f := d.adapter.fabric
	if n := d.adapter.queues.Add(1); n > int64(d.adapter.limits.Queues) {
		d.adapter.queues.Add(-1)
		return nil, fmt.Errorf("%w: %d completion queues", verbs.ErrLimit, d.adapter.limits.Queues)
	}
	f.countOpened(Queues)
	d.users.Add(1)
	if q.channel != nil {
		q.channel.users.Add(1)
	}
	return q, nil
}

func (q *queue) Poll(dst []verbs.Completion) (int, error) {
	if q.pending.Load() == 0 {
		if q.broken.Load() || q.device.adapter.removed.Load() {
			return 0, q.emptyError()
		}
		return 0, nil
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	n := 0
	for n < len(dst) && q.head != q.tail {
		c := &q.ring[q.head%uint64(len(q.ring))]
		dst[n] = c.Completion
		if c.received {
			c.pair.responder.freed.Store(c.freed)
		} else {
			c.pair.freed.Store(c.freed)
		}
		c.pair = nil
		q.head++
		n++
	}
	q.pending.Store(int64(q.tail - q.head))
	return n, nil
}

// emptyError returns the error that keeps an empty queue empty, if any.
func (q *queue) emptyError() error {
	q.mu.Lock()
	defer q.mu.Unlock()
	switch {
	case q.head != q.tail:
		return nil
	case q.device.adapter.removed.Load():
		return q.device.adapter.check()
	case q.overrun:
		return fmt.Errorf("%w: a completion queue of depth %d was overrun", verbs.ErrLimit, len(q.ring))
	case q.closed:
		return fmt.Errorf("software verbs: completion queue: %w", net.ErrClosed)
	}
	return nil
}

func (q *queue) Arm() error {
	if err := q.device.check(); err != nil {
		return err
	}
	if q.channel == nil {
		return fmt.Errorf("%w: the completion queue has no channel", verbs.ErrAttributes)
	}
	q.mu.Lock()
	q.armed = true
	q.mu.Unlock()
	return nil
}

// push adds a completion. If there is no room, the queue and all its pairs fail (IBTA
// 11.6.3.2). The caller has locked the pair, and calls processFailures later.
func (q *queue) push(c completion) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return
	}
	if q.tail-q.head == uint64(len(q.ring)) {
		if !q.overrun {
			q.overrun = true
			q.broken.Store(true)
			q.device.raise(verbs.Event{Kind: verbs.EventOther})
			for _, p := range q.pairs {
				q.device.adapter.fabric.queueFailure(p, p.epoch.Load())
			}
		}
	} else if !q.overrun {
		q.ring[q.tail%uint64(len(q.ring))] = c
		q.tail++
		q.pending.Store(int64(q.tail - q.head))
	}
	if q.armed {
		q.armed = false
		q.channel.signal()
	}
}

// removePair removes the completions of a pair that is closed or reset.
func (q *queue) removePair(p *pair) {
	q.mu.Lock()
	defer q.mu.Unlock()
	n := uint64(len(q.ring))
	to := q.head
	for at := q.head; at != q.tail; at++ {
		if c := q.ring[at%n]; c.pair != p {
			q.ring[to%n] = c
			to++
		}
	}
	for at := to; at != q.tail; at++ {
		q.ring[at%n] = completion{}
	}
	q.tail = to
	q.pending.Store(int64(q.tail - q.head))
}

func (q *queue) attach(p *pair) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return fmt.Errorf("software verbs: completion queue: %w", net.ErrClosed)
	}
	q.pairs = append(q.pairs, p)
	return nil
}

func (q *queue) detach(p *pair) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if i := slices.Index(q.pairs, p); i >= 0 {
		q.pairs = slices.Delete(q.pairs, i, i+1)
	}
}

func (q *queue) Close() error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.pairs) > 0 {
		return fmt.Errorf("%w: the completion queue serves %d queues of pairs", verbs.ErrBusy, len(q.pairs))
	}
	if q.closed {
		return nil
	}
	q.closed = true
	q.broken.Store(true)
	q.device.users.Add(-1)
	if q.channel != nil {
		q.channel.users.Add(-1)
	}
	q.device.adapter.queues.Add(-1)
	q.device.adapter.fabric.countClosed(Queues)
	return nil
}
