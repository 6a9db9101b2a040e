package driver

import (
	"context"
	"sync/atomic"

	"github.com/p2pdc/p2pdc/microproto"
)

// waiter is one blocked call. Waiters are used again, so that blocking allocates
// nothing.
type waiter struct {
	wake  chan struct{} // capacity 1
	until microproto.Instant
	// link is where it waits while atLink says so.
	link   prompt
	atLink atomic.Bool
}

// ring wakes the waiter.
func (w *waiter) ring() {
	select {
	case w.wake <- struct{}{}:
	default:
	}
	if w.atLink.Load() {
		w.link.Wake()
	}
}

// waiters are the calls that wait for one thing. Guarded by the node's lock.
type waiters struct{ list []*waiter }

// all wakes everyone; they look for themselves whether it was for them.
func (w *waiters) all() {
	for _, x := range w.list {
		x.ring()
	}
}

// expire wakes those whose time is over, once: one that does not get a processor yet
// must not make the timer ring without pause, and so keep it from getting one.
func (w *waiters) expire(now microproto.Instant) {
	for _, x := range w.list {
		if x.until <= now {
			x.until = microproto.Never
			x.ring()
		}
	}
}

func (w *waiters) deadline() microproto.Instant {
	d := microproto.Never
	for _, x := range w.list {
		d = min(d, x.until)
	}
	return d
}

func (w *waiters) remove(x *waiter) {
	for i, y := range w.list {
		if x == y {
			last := len(w.list) - 1
			w.list[i], w.list[last] = w.list[last], nil
			w.list = w.list[:last]
			return
		}
	}
}

// block gives the lock up until someone wakes the list, the instant has come
// (lists whose deadlines settle looks at), or ctx ends, which is the error. The
// lock is held again when it returns.
func (n *Node) block(ctx context.Context, on *waiters, until microproto.Instant) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	var w *waiter
	if k := len(n.free); k > 0 {
		w, n.free = n.free[k-1], n.free[:k-1]
	} else {
		w = &waiter{wake: make(chan struct{}, 1), link: n.look.link}
	}
	w.until = until
	on.list = append(on.list, w)
	looks, call := n.beginLook()
	n.leave()
	if call {
		n.look.link.Wake()
	}
	var err error
	news := false
	if looks {
		now := n.lookFor(w)
		n.mu.Lock()
		news = len(w.wake) > 0
		n.endLook(now, news)
	}
	if !news {
		if looks {
			n.leave()
		}
		err = n.sleep(ctx, w)
		n.mu.Lock()
	}
	on.remove(w)
	select {
	case <-w.wake:
	default:
	}
	n.free = append(n.free, w)
	return err
}

// sleep blocks until the waiter is woken or ctx ends. Somebody else takes in what
// comes meanwhile.
func (n *Node) sleep(ctx context.Context, w *waiter) error {
	if len(w.wake) > 0 {
		return nil
	}
	n.mu.Lock()
	n.look.blocked++
	if n.look.ours && !n.looking.Load() {
		n.handBack()
	}
	n.leave()
	var err error
	select {
	case <-w.wake:
	case <-ctx.Done():
		err = ctx.Err()
	}
	n.mu.Lock()
	n.look.blocked--
	n.look.last = n.now()
	n.mu.Unlock()
	return err
}
