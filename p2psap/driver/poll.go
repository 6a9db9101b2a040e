package driver

import (
	"runtime"
	"sync/atomic"
	"time"

	"github.com/p2pdc/p2pdc/microproto"
	"github.com/p2pdc/p2pdc/p2psap"
)

// A call that has to wait receives frames and runs the handlers on its own thread, which saves the switch
// from the receiver's goroutine, several microseconds. First it polls the base rail's link without pause,
// then it waits at the link. The receiver's goroutine is parked meanwhile, so that no datagram wakes a
// thread in vain, and for pollGrace longer, since a caller that waited once is likely to wait again soon.
// It resumes when nothing has arrived for a while, when another call waits, or after pollGrace. Nobody
// polls before the receiver is parked: two receivers would reorder frames.
//
// A polling call also runs the timers, once nothing more has arrived. An acknowledgement then travels with
// the answer of a user who answers at once.

const (
	// defaultBusyPoll is the default of Config.BusyPoll where there is more than one processor.
	defaultBusyPoll = 20 * time.Microsecond
	// pollTimeout is how long a call waits at the link, without arrivals, before it leaves receiving to
	// the receiver's goroutine.
	pollTimeout = time.Millisecond
	// pollGrace is how long the receiver stays parked while no call polls: less than the delay of an
	// acknowledgement that the shortest retransmission time-out allows.
	pollGrace = 200 * time.Microsecond
	// maxSkip bounds the calls that do not poll after some that polled in vain: the other end may need
	// the processor for its answer.
	maxSkip = 63
)

// poller is the state of receiving from the base rail. Guarded by the node's lock, but for misses and skip, which
// belong to the call that polls.
type poller struct {
	link      microproto.PollableLink // nil: the link is not one
	busy      time.Duration           // how long a call polls before it waits at the link; 0 or less: not at all
	owned     bool                    // calls receive; the receiver is parked, or will be
	unparking bool                    // the receiver was woken so that it parks
	parked    atomic.Bool             // the receiver is; changed under the lock
	sleeping  int                     // calls that wait without polling
	misses    int                     // polls in vain since the last that was not
	skip      int                     // calls that shall not poll
	last      microproto.Instant      // end of the last poll
	resume    chan struct{}           // unparks the receiver; of capacity 1
}

func (n *Node) initPoll() {
	n.poll.resume = make(chan struct{}, 1)
	n.poll.link, _ = n.rails[0].link.(microproto.PollableLink)
	n.poll.busy = n.config.BusyPoll
	if n.poll.busy == 0 && runtime.NumCPU() > 1 {
		n.poll.busy = defaultBusyPoll
	}
}

// DisableBusyPoll makes calls that have to wait sleep at once, as a negative Config.BusyPoll does. It is for
// machines with more work than processors, where polling keeps the other peers from sending. It has to be
// called before the first call that waits.
func (n *Node) DisableBusyPoll() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.poll.busy = -1
}

// acquirePoll makes the caller the one that receives, unless another is. wake reports that the receiver
// waits at the link and must be woken. The lock is held.
func (n *Node) acquirePoll() (acquired, wake bool) {
	p := &n.poll
	if p.link == nil || p.busy <= 0 || n.closed || p.sleeping > 0 || n.lastByRail {
		return false, false
	}
	if !n.polling.CompareAndSwap(false, true) {
		return false, false
	}
	now := n.now()
	if !p.owned && now.Sub(p.last) > pollGrace {
		n.polling.Store(false) // parking the receiver pays only for callers that wait often
		return false, false
	}
	p.owned, p.last = true, now
	wake = !p.parked.Load() && !p.unparking
	p.unparking = p.unparking || wake
	return true, wake
}

// pollFor receives until the waiter is woken or nothing has arrived for a while. It returns when that was.
func (n *Node) pollFor(w *waiter) microproto.Instant {
	begin, busy := n.now(), n.poll.busy
	now := begin
	if n.poll.skip > 0 {
		n.poll.skip--
		busy = 0
	}
	for len(w.wake) == 0 {
		parked, k, err := n.poll.parked.Load(), 0, error(nil)
		switch {
		case !parked: // not yet
		case busy == 0 && n.dueAt.Load() > int64(now):
			k, err = n.awaitFrames(w, now)
		default:
			k, err = n.receivePending(w, now, false)
		}
		now = n.now()
		switch waited := now.Sub(begin); {
		case err != nil:
			return now
		case k > 0:
			begin = now
			if busy > 0 {
				n.poll.misses = 0
			}
		case waited >= pollTimeout || waited >= n.poll.busy && !parked:
			return now
		case waited >= busy && busy > 0:
			n.poll.skip = min(1<<min(n.poll.misses, 6)-1, maxSkip)
			n.poll.misses++
			busy = 0
		}
	}
	return now
}

// awaitFrames waits at the link, unless the waiter was woken, until a frame has arrived, the waiter is woken,
// or the timer's goroutine wakes the link.
func (n *Node) awaitFrames(w *waiter, now microproto.Instant) (int, error) {
	n.awaitingSince.Store(int64(now))
	defer n.awaitingSince.Store(0)
	w.atLink.Store(true)
	defer w.atLink.Store(false)
	if len(w.wake) > 0 {
		return 0, nil
	}
	return n.receivePending(w, now, true)
}

// releasePoll lets others poll. After a poll in vain, and while other calls sleep, the receiver resumes. The
// lock is held.
func (n *Node) releasePoll(now microproto.Instant, woken bool) {
	n.polling.Store(false)
	n.poll.last = now
	if !woken || n.poll.sleeping > 0 {
		n.resumeReceiver()
	}
}

// runDue runs the core's timers that are due, and what those make due at once: a long message is cut train by
// train, and each train is sent before the next is made. The lock is held.
func (n *Node) runDue(now microproto.Instant) {
	for range maxTimerRuns {
		if n.closed || n.core.Deadline() > now {
			return
		}
		n.flush()
		n.core.Advance(now)
	}
}

// maxTimerRuns bounds what runDue does in one call.
const maxTimerRuns = 1024

// resumeReceiver gives receiving back to the receiver's goroutine. The lock is held, and given up with unlock.
func (n *Node) resumeReceiver() {
	p := &n.poll
	if p.owned {
		n.runDue(n.now())
	}
	p.owned, p.unparking = false, false
	if p.parked.Swap(false) {
		p.resume <- struct{}{}
	}
}

// mustPark reports whether the receiver has to wait for resume. The lock is held.
func (n *Node) mustPark() bool {
	park := n.poll.owned && !n.closed
	n.poll.parked.Store(park)
	n.poll.unparking = false
	return park
}

// resumeAt returns when the receiver resumes if no call polls until then.
func (n *Node) resumeAt() microproto.Instant {
	if !n.poll.owned {
		return microproto.Never
	}
	return n.poll.last.Add(pollGrace)
}

// nextAlarm returns when the timer's goroutine has something to do.
func (n *Node) nextAlarm() microproto.Instant {
	due := n.core.Deadline()
	n.dueAt.Store(int64(due))
	if n.poll.owned {
		return min(n.resumeAt(), n.flushBy)
	}
	return min(due, n.anyWaiters.deadline(), n.flushBy)
}

// expirePoll resumes the receiver when no call has polled for a while. The lock is held.
func (n *Node) expirePoll(now microproto.Instant) {
	if now < n.resumeAt() {
		return
	}
	if n.polling.Load() {
		n.poll.last = now
		if since := n.awaitingSince.Load(); since != 0 && now.Sub(microproto.Instant(since)) >= pollTimeout {
			n.poll.link.Wake() // the polling call then reads the clock
		}
		return
	}
	n.resumeReceiver()
}

// pumpBatch is how many frames Pump takes from a link at a time, pumpRounds how often it asks, so that it
// returns also under a flood.
const (
	pumpBatch  = 64
	pumpRounds = 8
)

// Pump receives what has arrived over the links and runs timers that are due, on the caller's goroutine. It is
// optional. Compute loops call it so that arrivals are handled without waiting for the receiver's goroutine to
// be scheduled, which can take a time slice on a machine whose cores are all busy. Pump never blocks. It returns
// p2psap.ErrClosed once Close has ended. It is for one goroutine at a time.
func (n *Node) Pump() error {
	select {
	case <-n.done:
		return p2psap.ErrClosed
	default:
	}
	for _, r := range n.rails[1:] {
		r.pump()
	}
	if n.poll.link == nil || !n.polling.CompareAndSwap(false, true) {
		return nil // another call receives
	}
	defer n.polling.Store(false)
	for range pumpRounds {
		if k, err := n.receivePending(nil, n.now(), false); err != nil || k < pumpBatch {
			return nil // after an error the link is closed, and Close about to end
		}
	}
	return nil
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
