package driver

import (
	"runtime"
	"sync/atomic"
	"time"

	"github.com/p2pdc/p2pdc/microproto"
)

// A call that has to wait takes in what comes itself and runs the handlers on its own
// thread, which saves the hand-over from the receiver's goroutine, several
// microseconds: first it looks without pause, then it waits at the link. The receiver's
// goroutine stands aside meanwhile, so that no datagram wakes a thread for nothing, and
// for a little longer, since who waited once is likely to wait again soon. It goes back
// to its work when nothing has come for a while, when somebody else waits, or after
// grace. Nobody takes in before it has stepped aside: two who do would turn the order
// of frames round.
//
// Timers wait with it: whoever looks runs them when there is no news. An acknowledgement so goes with the answer of a user who answers at once.

const (
	// lookTime is the default of Config.BusyPoll where there is more than one processor.
	lookTime = 20 * time.Microsecond
	// attention is how long a caller waits at the link, without news, before he
	// leaves that to the receiver.
	attention = time.Millisecond
	// grace is how long the receiver stands aside while nobody looks: less than an
	// acknowledgement may take by the shortest retransmission time-out.
	grace = 200 * time.Microsecond
	// maxSkip bounds the calls that wait at the link at once after some that had looked
	// in vain: the other end may need the processor for its answer.
	maxSkip = 63
)

// prompt is a link that can be asked without waiting, and whose waiting callers can be
// called. See ether.Link.
type prompt interface {
	TryRecv(batch []microproto.Frame) (int, error)
	AwaitRecv(batch []microproto.Frame) (int, error)
	Wake()
}

// looker says who takes in what comes. Guarded by the node's lock, but for misses and
// skip, which are of whoever looks.
type looker struct {
	link    prompt // nil: the link is not one
	time    time.Duration
	ours    bool        // callers look; the receiver stands aside, or will
	called  bool        // the receiver has been told
	aside   atomic.Bool // it does; changed under the lock
	blocked int         // calls that wait without looking
	misses  int         // looks in vain since the last that was not
	skip    int         // calls that shall wait at once
	last    microproto.Instant
	resume  chan struct{} // of capacity 1
}

func (n *Node) initLook() {
	n.look.resume = make(chan struct{}, 1)
	n.look.link, _ = n.config.Rails[0].Link.(prompt)
	n.look.time = n.config.BusyPoll
	if n.look.time == 0 && runtime.NumCPU() > 1 {
		n.look.time = lookTime
	}
}

// DisableBusyPoll makes calls that have to wait do so without looking for news first, as a
// negative Config.BusyPoll: for machines that have more to do than processors, where who
// looks keeps the others from sending what he looks for. It is for the time before the
// first call that waits.
func (n *Node) DisableBusyPoll() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.look.time = -1
}

// beginLook makes the caller the one who takes in what comes, if nobody is. call tells
// that the receiver waits and must be called. The lock is held.
func (n *Node) beginLook() (looks, call bool) {
	l := &n.look
	if l.link == nil || l.time <= 0 || n.closed || l.blocked > 0 || n.byRail {
		return false, false
	}
	if !n.looking.CompareAndSwap(false, true) {
		return false, false
	}
	now := n.now()
	if !l.ours && now.Sub(l.last) > grace {
		n.looking.Store(false) // to call the receiver off pays for those who wait often
		return false, false
	}
	l.ours, l.last = true, now
	call = !l.aside.Load() && !l.called
	l.called = l.called || call
	return true, call
}

// lookFor takes in what comes until the waiter is woken, or nothing has come for a
// while. It returns when that was.
func (n *Node) lookFor(w *waiter) microproto.Instant {
	begin, pause := n.now(), n.look.time
	now := begin
	if n.look.skip > 0 {
		n.look.skip--
		pause = 0
	}
	for len(w.wake) == 0 {
		aside, k, err := n.look.aside.Load(), 0, error(nil)
		switch {
		case !aside: // not yet
		case pause == 0 && n.dueAt.Load() > int64(now):
			k, err = n.await(w, now)
		default:
			k, err = n.takeIn(w, now, false)
		}
		now = n.now()
		switch waited := now.Sub(begin); {
		case err != nil:
			return now
		case k > 0:
			begin = now
			if pause > 0 {
				n.look.misses = 0
			}
		case waited >= attention || waited >= n.look.time && !aside:
			return now
		case waited >= pause && pause > 0:
			n.look.skip = min(1<<min(n.look.misses, 6)-1, maxSkip)
			n.look.misses++
			pause = 0
		}
	}
	return now
}

// await waits at the link, unless the waiter has been woken, until something has come or
// it is woken, or keepTime calls.
func (n *Node) await(w *waiter, now microproto.Instant) (int, error) {
	n.atLink.Store(int64(now))
	defer n.atLink.Store(0)
	w.atLink.Store(true)
	defer w.atLink.Store(false)
	if len(w.wake) > 0 {
		return 0, nil
	}
	return n.takeIn(w, now, true)
}

// endLook lets others look. Without news, or with others who wait, the receiver goes
// back to its work. The lock is held.
func (n *Node) endLook(now microproto.Instant, news bool) {
	l := &n.look
	n.looking.Store(false)
	l.last = now
	if !news || l.blocked > 0 {
		n.handBack()
	}
}

// runDue runs the core's timers that are due, and what those ask for at once: a long
// message is cut train by train, and each goes before the next is made. The lock is
// held.
func (n *Node) runDue(now microproto.Instant) {
	for range maxTurns {
		if n.closed || n.core.Deadline() > now {
			return
		}
		n.flush()
		n.core.Advance(now)
	}
}

// maxTurns bounds what is done in one go.
const maxTurns = 1024

// handBack gives the work back to the receiver. The lock is held, and given up with
// leave.
func (n *Node) handBack() {
	l := &n.look
	if l.ours {
		n.runDue(n.now())
	}
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

// alarmAt is when keepTime has something to do.
func (n *Node) alarmAt() microproto.Instant {
	due := n.core.Deadline()
	n.dueAt.Store(int64(due))
	if n.look.ours {
		return min(n.handBackAt(), n.flushBy)
	}
	return min(due, n.waiters.deadline(), n.flushBy)
}

// expireLook hands back when nobody has looked for a while. The lock is held.
func (n *Node) expireLook(now microproto.Instant) {
	if now < n.handBackAt() {
		return
	}
	if n.looking.Load() {
		n.look.last = now
		if since := n.atLink.Load(); since != 0 && now.Sub(microproto.Instant(since)) >= attention {
			n.look.link.Wake() // that he sees the time
		}
		return
	}
	n.handBack()
}
