package driver

import (
	"context"
	"slices"
	"sync/atomic"

	"github.com/p2pdc/p2pdc/microproto"
)

// waiter is one blocked call. Waiters are reused, so that blocking allocates nothing.
type waiter struct {
	node   *Node
	wake   chan struct{} // capacity 1
	until  microproto.Instant
	asleep bool                    // it is one of poller.sleeping; guarded by the node's lock
	link   microproto.PollableLink // at which the call waits while atLink is set
	atLink atomic.Bool
}

// signal wakes the call. The node's lock is held.
func (w *waiter) signal() {
	w.rouse()
	select {
	case w.wake <- struct{}{}:
	default:
	}
	if w.atLink.Load() {
		w.link.Wake()
	}
}

// rouse ends what sleep began. The node's lock is held.
func (w *waiter) rouse() {
	if w.asleep {
		w.asleep = false
		w.node.poll.sleeping--
	}
}

// waiters are the calls that wait for one thing. Guarded by the node's lock.
type waiters struct{ list []*waiter }

// signalAll wakes every call; each checks for itself whether to go on.
func (w *waiters) signalAll() {
	for _, x := range w.list {
		x.signal()
	}
}

// expire wakes those whose time is over, once. A call that does not get a processor yet must not make the
// timer fire without pause, and so keep the processor busy.
func (w *waiters) expire(now microproto.Instant) {
	for _, x := range w.list {
		if x.until <= now {
			x.until = microproto.Never
			x.signal()
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
	i, last := slices.Index(w.list, x), len(w.list)-1
	w.list[i], w.list[last] = w.list[last], nil
	w.list = w.list[:last]
}

// block gives the lock up until the list is signalled, the instant has come (for lists whose deadlines
// nextAlarm reads), or ctx ends, which is the error. The lock is held again when it returns.
func (n *Node) block(ctx context.Context, on *waiters, until microproto.Instant) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	var w *waiter
	if k := len(n.free); k > 0 {
		w, n.free = n.free[k-1], n.free[:k-1]
	} else {
		w = &waiter{node: n, wake: make(chan struct{}, 1)}
	}
	w.until = until
	on.list = append(on.list, w)
	var err error
	if !n.receiveFor(w) {
		err = n.sleep(ctx, w)
	}
	on.remove(w)
	select {
	case <-w.wake:
	default:
	}
	n.free = append(n.free, w)
	return err
}

// receiveFor receives on the caller's thread if it may. It reports whether the waiter was woken. The lock is held when
// it begins and when it returns.
func (n *Node) receiveFor(w *waiter) bool {
	r := n.acquirePoll()
	if r == nil {
		return false
	}
	w.link = r.pollable
	n.unlock()
	now := n.pollFor(w, r)
	n.mu.Lock()
	woken := len(w.wake) > 0
	n.releasePoll(now, woken)
	return woken
}

// sleep blocks until the waiter is signalled or ctx ends. The receiver, or another call, receives meanwhile. The lock
// is held when it begins and when it returns.
func (n *Node) sleep(ctx context.Context, w *waiter) error {
	w.asleep = true
	n.poll.sleeping++
	if !n.polling.Load() {
		n.resumeReceiver()
	}
	n.unlock()
	var err error
	select {
	case <-w.wake:
	case <-ctx.Done():
		err = ctx.Err()
	}
	n.mu.Lock()
	w.rouse()
	n.poll.last = n.now()
	return err
}
