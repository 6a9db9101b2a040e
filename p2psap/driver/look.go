package driver

import (
	"runtime"
	"sync/atomic"
	"time"

	"github.com/p2pdc/p2pdc/microproto"
)

// A call that has to wait looks for news itself for a while before it blocks: it takes
// in what comes and runs the handlers on its own thread, which saves the hand-over from
// the receiver's goroutine, several microseconds. The receiver's goroutine stands aside
// meanwhile, so that no datagram wakes a thread for nothing, and for a little longer,
// since who waited once is likely to wait again soon. It goes back to its work when a
// look finds nothing, when somebody else waits, or after grace. Nobody looks before it
// has stepped aside: two who take in would turn the order of frames round.

const (
	// lookTime is the default of Config.Look where there is more than one processor.
	lookTime = 30 * time.Microsecond
	// grace is how long the receiver stands aside while nobody looks: less than an
	// acknowledgement may take by the shortest retransmission time-out.
	grace = 500 * time.Microsecond
)

// prompt is a link that can be asked without waiting, and whose waiting receiver can
// be called. See ether.Link.
type prompt interface {
	TryRecv(batch []microproto.Frame) (int, error)
	Wake()
}

// looker says who takes in what comes. Guarded by the node's lock.
type looker struct {
	link    prompt // nil: the link is not one
	time    time.Duration
	ours    bool        // callers look; the receiver stands aside, or will
	called  bool        // the receiver has been told
	aside   atomic.Bool // it does; changed under the lock
	blocked int         // calls that wait without looking
	last    microproto.Instant
	resume  chan struct{} // of capacity 1
}

func (n *Node) initLook() {
	n.look.resume = make(chan struct{}, 1)
	n.look.link, _ = n.config.Link.(prompt)
	n.look.time = n.config.Look
	if n.look.time == 0 && runtime.NumCPU() > 1 {
		n.look.time = lookTime
	}
}

// beginLook makes the caller the one who takes in what comes, if nobody is. call tells
// that the receiver waits and must be called. The lock is held.
func (n *Node) beginLook() (looks, call bool) {
	l := &n.look
	if l.link == nil || l.time <= 0 || n.closed || !n.looking.CompareAndSwap(false, true) {
		return false, false
	}
	l.ours, l.last = true, n.now()
	call = !l.aside.Load() && !l.called
	l.called = l.called || call
	return true, call
}

// lookFor takes in what comes until the waiter is woken, or nothing has come for a
// while.
func (n *Node) lookFor(w *waiter) {
	for until := n.now().Add(n.look.time); len(w.wake) == 0; {
		k, err := 0, error(nil)
		if n.look.aside.Load() {
			k, err = n.takeIn()
		}
		now := n.now()
		if k > 0 {
			until = now.Add(n.look.time)
		}
		if err != nil || now >= until {
			return
		}
	}
}

// endLook lets others look. Without news, or with others who wait, the receiver goes
// back to its work. The lock is held.
func (n *Node) endLook(news bool) {
	n.looking.Store(false)
	n.look.last = n.now()
	if !news || n.look.blocked > 0 {
		n.handBack()
	}
}

// handBack gives the work back to the receiver. The lock is held.
func (n *Node) handBack() {
	l := &n.look
	l.ours, l.called = false, false
	if l.aside.Swap(false) {
		l.resume <- struct{}{}
	}
}

// standAside tells whether the receiver is to wait for resume. The lock is held.
func (n *Node) standAside() bool {
	l := &n.look
	aside := l.ours && !n.closed
	l.aside.Store(aside)
	l.called = false
	return aside
}

// handBackAt is when the receiver goes back to its work if nobody looks until then.
func (n *Node) handBackAt() microproto.Instant {
	if !n.look.ours {
		return microproto.Never
	}
	return n.look.last.Add(grace)
}

// expireLook hands back when nobody has looked for a while. The lock is held.
func (n *Node) expireLook(now microproto.Instant) {
	if now < n.handBackAt() {
		return
	}
	if n.looking.Load() {
		n.look.last = now
		return
	}
	n.handBack()
}
