package driver

import "github.com/p2pdc/p2pdc/microproto"

// pumpBatch is how many frames Pump takes from a link at a time, pumpRounds how often it asks, so that it
// returns also under a flood.
const (
	pumpBatch  = 64
	pumpRounds = 8
)

// Pump receives what has arrived over the links and runs timers that are due, on the caller's goroutine. It is
// optional. Compute loops call it so that arrivals are handled without waiting for the receiver's goroutine to
// be scheduled, which can take a time slice on a machine whose cores are all busy. Pump never blocks. It is for
// one goroutine at a time.
func (n *Node) Pump() {
	for _, r := range n.rails[1:] {
		r.pump()
	}
	if n.poll.link == nil || !n.polling.CompareAndSwap(false, true) {
		return // another call receives
	}
	defer n.polling.Store(false)
	for range pumpRounds {
		if k, err := n.receivePending(nil, n.now(), false); err != nil || k < pumpBatch {
			return
		}
	}
}

// receivePending receives what has arrived by the base rail and runs timers that are due, but not if that has
// woken w. An error means that the link is closed; the receiver's goroutine reports others. The caller has set
// polling; now is the time of the call. With wait it may wait until a frame arrives or Wake is called.
func (n *Node) receivePending(w *waiter, now microproto.Instant, wait bool) (k int, err error) {
	if wait {
		k, err = n.poll.link.AwaitRecv(n.polled[:])
		w.atLink.Store(false) // the frames may wake w itself
		now = n.now()
	} else {
		k, err = n.poll.link.TryRecv(n.polled[:])
	}
	if err != nil {
		return 0, err
	}
	if k == 0 && n.dueAt.Load() > int64(now) {
		return 0, nil
	}
	n.mu.Lock()
	now = n.now()
	n.input(now, 0, n.polled[:k])
	if k > 0 && w != nil {
		n.settle()
	}
	if w == nil || len(w.wake) == 0 {
		n.runDue(now)
		n.settle()
	}
	n.mu.Unlock()
	return k, nil
}
