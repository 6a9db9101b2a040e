package driver

import "github.com/p2pdc/p2pdc/microproto"

// joiner is a link that can leave frames together. See ether.Link.RecvTrains.
type joiner interface {
	RecvTrains(batch []microproto.Frame) (int, error)
}

// pumpBatch is how many frames Pump takes from the link at a time, pumpRounds how
// often it asks, so that it returns also under a flood.
const (
	pumpBatch  = 64
	pumpRounds = 8
)

// Pump takes in what has come over the links and runs timers that are due, on the
// caller's goroutine. Nothing has to call it. Whoever computes without pause does, so
// that news does not wait until the receiver's goroutine gets a processor: on a
// machine whose cores are all busy that may take a time slice. It never blocks; it is
// for one goroutine at a time.
func (n *Node) Pump() {
	for _, e := range n.rails[1:] {
		e.pump()
	}
	if n.look.link == nil || !n.looking.CompareAndSwap(false, true) {
		return // somebody else takes in what comes
	}
	defer n.looking.Store(false)
	for range pumpRounds {
		if k, err := n.takeIn(nil, n.now(), false); err != nil || k < pumpBatch {
			return
		}
	}
}

// takeIn takes in what has come and runs timers that are due; an error means that the
// link is closed, or the receiver's goroutine will find out. Timers wait when it has
// woken w. now is when it is called, by a caller who has set looking;
// waits tells that it may wait for something to come, or to be called.
func (n *Node) takeIn(w *waiter, now microproto.Instant, waits bool) (k int, err error) {
	if waits {
		k, err = n.look.link.AwaitRecv(n.pumped[:])
		w.atLink.Store(false) // what it takes in may wake itself
		now = n.now()
	} else {
		k, err = n.look.link.TryRecv(n.pumped[:])
	}
	if err != nil {
		return 0, err
	}
	if k == 0 && n.dueAt.Load() > int64(now) {
		return 0, nil
	}
	n.mu.Lock()
	now = n.now()
	for i := range n.pumped[:k] {
		if n.closed {
			n.pumped[i].Release()
		} else {
			n.core.Input(now, 0, n.pumped[i])
		}
		n.pumped[i] = microproto.Frame{}
	}
	if k > 0 {
		n.byRail = false
	}
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
