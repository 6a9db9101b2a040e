package driver

import (
	"runtime"
	"slices"
	"time"

	"github.com/p2pdc/p2pdc/microproto"
	"github.com/p2pdc/p2pdc/p2psap"
)

// A call that has to wait receives frames and runs the handlers on its own thread, which saves the switch
// from a receiver's goroutine, several microseconds. It takes over the rail by which frames come lately:
// first it polls its link without pause, then it waits at the link. The goroutine of that rail is parked
// meanwhile, so that no frame wakes a thread in vain, and for pollGrace longer, since a caller that waited
// once is likely to wait again soon. It parks itself after it has woken a call that waits often: two receivers
// at a time would reorder frames. It resumes when nothing has arrived for a while, when another call waits, or
// after pollGrace. The goroutines of the other rails go on, and wake the call when they receive.
//
// A polling call also runs the timers, once nothing more has arrived. An acknowledgement then travels with
// the answer of a user who answers at once.

const (
	// defaultBusyPoll is how long a call polls by default where there is more than one processor. While arrivals
	// usually come later, but in half of longestBusyPoll, it is twice as long as they take.
	defaultBusyPoll = 20 * time.Microsecond
	longestBusyPoll = 200 * time.Microsecond
	// pollTimeout is how long a call waits at the link, without arrivals, before it leaves receiving to
	// the receiver's goroutine.
	pollTimeout = time.Millisecond
	// pollGrace is how long the receiver stays parked while no call polls: less than the delay of an
	// acknowledgement that the shortest retransmission time-out allows. While calls go on to poll it doubles, up
	// to pollTimeout, so that they set the timer less often.
	pollGrace = 200 * time.Microsecond
	// oftenAsleep is how many waits within pollGrace of each other make the goroutine park where calls do not poll.
	oftenAsleep = 16
	// maxSkip bounds the calls that do not poll after some that polled in vain: the other end may need
	// the processor for its answer.
	maxSkip = 63
)

// poller is the state of calls that receive. Guarded by the node's lock, but for misses, skip and usual, which
// belong to the call that polls.
type poller struct {
	rail     *railPort          // from which calls receive; its goroutine is parked; nil: none
	next     *railPort          // whose goroutine parks when it has woken the calls that sleep; nil: none
	recent   *railPort          // by which the last frames came
	busy     time.Duration      // how long a call polls before it waits at the link; 0 or less: not at all
	adapts   bool               // busy is the default: see busyFor
	usual    time.Duration      // from the beginning of a wait to the first arrival, on average
	sleeping int                // calls that wait without polling and were not woken
	often    int                // waits in succession that began within pollGrace of the one before
	misses   int                // polls in vain since the last that was not
	skip     int                // calls that shall not poll
	last     microproto.Instant // end of the last poll
	grace    time.Duration      // see pollGrace
	crowded  bool               // calls leave receiving to the goroutines; see DisableBusyPoll
}

func (n *Node) initPoll() {
	n.poll.recent = n.rails[0]
	n.poll.busy = n.config.BusyPoll
	if n.poll.busy == 0 && runtime.NumCPU() > 1 {
		n.poll.busy, n.poll.adapts = defaultBusyPoll, true
	}
}

// busyFor returns how long the next wait polls.
func (p *poller) busyFor() time.Duration {
	if p.skip > 0 {
		p.skip--
		return 0
	}
	if p.adapts && 2*p.usual <= longestBusyPoll {
		return max(p.busy, 2*p.usual)
	}
	return max(p.busy, 0)
}

// oftenAt reports whether calls, of which one begins to wait now, wait so often that it pays to park the goroutine.
// Where they do not poll there is less to gain, and the goroutine soon resumes if they wait for a few messages at a
// time and then compute.
func (p *poller) oftenAt(now microproto.Instant) bool {
	if now.Sub(p.last) > pollGrace {
		p.often = 0
		return false
	}
	p.often++
	return p.busy > 0 || p.often >= oftenAsleep
}

// polled records whether a frame arrived while a call polled. Polls in vain make the next calls wait at the
// link at once.
func (p *poller) polled(arrived bool) {
	if arrived {
		p.misses = 0
		return
	}
	p.skip = min(1<<min(p.misses, 6)-1, maxSkip)
	p.misses++
}

// waited records how long a wait lasted until something arrived or it gave up. One late answer changes little.
func (p *poller) waited(d time.Duration) {
	p.usual += (min(d, longestBusyPoll) - p.usual) / 8
}

// DisableBusyPoll makes calls that have to wait sleep at once, and leave receiving to the goroutines. It is for
// machines with more work than processors, where polling keeps the other peers from sending, and waiting at the
// link made eight peers on two processors 3 % slower. It has to be called before the first call that waits.
func (n *Node) DisableBusyPoll() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.poll.busy, n.poll.crowded = -1, true
}

// acquirePoll makes the caller the one that receives from the rail that it returns. It returns nil while another
// call does, and while the rail's goroutine receives; if calls wait often, that goroutine then parks after it has
// woken them. The lock is held.
func (n *Node) acquirePoll() *railPort {
	p, now := &n.poll, n.now()
	r := p.recent
	if p.rail != nil && now.Sub(p.rail.arrived) <= pollTimeout {
		r = p.rail // with neighbours on two networks, every change would cost two switches of goroutines
	}
	if r.pollable == nil || n.closed || p.crowded || p.sleeping > 0 || n.polling.Load() {
		return nil
	}
	if p.rail != r {
		n.resumeReceiver()
		p.next = nil
		if p.oftenAt(now) {
			p.next = r
		}
		return nil
	}
	n.polling.Store(true)
	p.last = now
	n.postponeAlarm(now)
	return r
}

// postponeAlarm sets the alarm again before it fires, while calls go on to poll: the timer's goroutine would take the
// processor of a thread that polls. It runs the timers in its place.
func (n *Node) postponeAlarm(now microproto.Instant) {
	p := &n.poll
	if n.flushBy != microproto.Never || n.armed.Sub(now) >= pollGrace/2 {
		return
	}
	n.runDue(now)
	p.grace = min(2*p.grace, pollTimeout)
	n.armed = now.Add(p.grace)
	n.alarm.set(p.grace)
}

// pollFor receives from a rail until the waiter is woken or nothing has arrived for a while. It returns when
// that was.
func (n *Node) pollFor(w *waiter, r *railPort) microproto.Instant {
	p, begin := &n.poll, n.now()
	now, busy, arrived := begin, p.busyFor(), false
	for len(w.wake) == 0 {
		k, err := 0, error(nil)
		if busy == 0 && n.dueAt.Load() > int64(now) {
			k, now, err = r.awaitFrames(w, now)
		} else {
			k, now, err = r.receivePending(w, now, false)
		}
		if k == 0 {
			now = n.now()
		}
		waited := now.Sub(begin)
		if busy > 0 && (k > 0 || waited >= busy) {
			p.polled(waited < busy)
		}
		switch {
		case err != nil:
			return now
		case k > 0:
			if !arrived {
				arrived = true
				p.waited(waited)
			}
			begin = now
		case waited >= pollTimeout:
			if !arrived {
				p.waited(waited)
			}
			return now
		case waited >= busy:
			busy = 0
		}
	}
	return now
}

// awaitFrames waits at the link, unless the waiter was woken, until a frame has arrived, the waiter is woken,
// or the timer's goroutine wakes the link.
func (r *railPort) awaitFrames(w *waiter, now microproto.Instant) (int, microproto.Instant, error) {
	n := r.node
	n.awaitingSince.Store(int64(now))
	defer n.awaitingSince.Store(0)
	w.atLink.Store(true)
	defer w.atLink.Store(false)
	if len(w.wake) > 0 {
		return 0, now, nil
	}
	return r.receivePending(w, now, !n.writable())
}

// writable reports whether a full link has room again.
func (n *Node) writable() bool {
	return slices.ContainsFunc(n.rails, func(r *railPort) bool { return r.writable.Load() })
}

// releasePoll lets others poll. After a poll in vain, and while other calls sleep, the rail's goroutine resumes.
// The lock is held.
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

// resumeReceiver gives receiving back to the goroutine of the rail that calls receive from. The lock is held,
// and given up with unlock.
func (n *Node) resumeReceiver() {
	if r := n.poll.rail; r != nil {
		n.runDue(n.now())
		n.poll.rail = nil
		r.resume <- struct{}{}
	}
}

// mustPark reports whether the rail's goroutine has to wait for resume: it has woken the calls that slept. The node's
// lock is held.
func (r *railPort) mustPark(slept int) bool {
	n := r.node
	p := &n.poll
	if p.next != r || slept == 0 || p.sleeping > 0 || n.closed {
		return false
	}
	p.rail, p.next, p.last, p.grace = r, nil, n.now(), pollGrace
	return true
}

// resumeAt returns when the rail's goroutine resumes if no call polls until then.
func (n *Node) resumeAt() microproto.Instant {
	if n.poll.rail == nil {
		return microproto.Never
	}
	return n.poll.last.Add(n.poll.grace)
}

// nextAlarm returns when the timer's goroutine has something to do.
func (n *Node) nextAlarm() microproto.Instant {
	due := n.core.Deadline()
	n.dueAt.Store(int64(due))
	if n.poll.rail != nil {
		return min(n.resumeAt(), n.flushBy)
	}
	return min(due, n.anyWaiters.deadline(), n.flushBy)
}

// expirePoll resumes the rail's goroutine when no call has polled for a while. The lock is held.
func (n *Node) expirePoll(now microproto.Instant) {
	p := &n.poll
	switch {
	case p.rail == nil:
	case n.polling.Load():
		p.last = now
		if since := n.awaitingSince.Load(); since != 0 && now.Sub(microproto.Instant(since)) >= pollTimeout {
			p.rail.pollable.Wake() // the polling call then reads the clock
		}
	case now.Sub(p.last) >= pollGrace:
		n.resumeReceiver()
	}
}

// pumpBatch is how many frames Pump takes from a link at a time, pumpRounds how often it asks, so that it
// returns also under a flood.
const (
	pumpBatch  = 64
	pumpRounds = 8
)

// Pump receives what has arrived over the links and runs timers that are due, on the caller's goroutine. It is
// optional. Compute loops call it so that arrivals are handled without waiting for the receiver's goroutine to
// be scheduled, which can take a time slice on a machine whose cores are all busy. A link that no session uses is asked
// once a millisecond. Pump never blocks. It returns p2psap.ErrClosed once Close has ended. It is for one goroutine at
// a time.
func (n *Node) Pump() error {
	select {
	case <-n.done:
		return p2psap.ErrClosed
	default:
	}
	now := n.now()
	all := now >= n.pumpAllAt
	if all {
		n.findUnused(now)
	}
	for _, r := range slices.Backward(n.rails) {
		if all || !r.unused {
			r.pump(now)
		}
	}
	return nil
}

// unusedEvery is the time between two calls of Pump that ask a link that no session uses.
const unusedEvery = time.Millisecond

// findUnused sets which links no session uses.
func (n *Node) findUnused(now microproto.Instant) {
	n.pumpAllAt = now.Add(unusedEvery)
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, r := range n.rails {
		r.unused = !n.core.Carries(r.number)
	}
}

// pump receives the frames that have arrived, unless another goroutine is receiving from the link. now is the time of
// the call.
func (r *railPort) pump(now microproto.Instant) {
	if r.pollable == nil || !r.receiving.TryLock() {
		return
	}
	defer r.receiving.Unlock()
	for range pumpRounds {
		if k, _, err := r.take(nil, now, false); err != nil || k < len(r.batch) {
			return // after an error the link is closed, or its goroutine reports it
		}
		now = r.node.now()
	}
}

// receivePending receives the frames that have arrived. Then it runs timers that are due, unless the frames have
// woken w. An error means that the link is closed; the rail's goroutine reports other errors. now is the time of
// the call. With wait it may wait until a frame arrives or Wake is called. at is when frames had arrived, or now.
func (r *railPort) receivePending(
	w *waiter, now microproto.Instant, wait bool,
) (k int, at microproto.Instant, err error) {
	r.receiving.Lock()
	defer r.receiving.Unlock()
	return r.take(w, now, wait)
}

// take is receivePending with receiving held.
func (r *railPort) take(
	w *waiter, now microproto.Instant, wait bool,
) (k int, at microproto.Instant, err error) {
	n := r.node
	if wait {
		k, err = r.pollable.AwaitRecv(r.batch)
		w.atLink.Store(false) // the frames may wake w itself
		now = n.now()
	} else {
		k, err = r.pollable.TryRecv(r.batch)
	}
	if err != nil {
		return 0, now, err
	}
	if k == 0 && n.dueAt.Load() > int64(now) && !n.writable() {
		return 0, now, nil
	}
	n.mu.Lock()
	now = n.now()
	n.input(now, r, r.batch[:k])
	if k > 0 && w != nil {
		n.settle()
	}
	if w == nil || len(w.wake) == 0 {
		n.runDue(now)
		n.settle()
	}
	n.mu.Unlock()
	return k, now, nil
}
