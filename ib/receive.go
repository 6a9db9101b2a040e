package ib

import (
	"fmt"
	"runtime"
	"time"

	"github.com/p2pdc/p2pdc/ib/internal/verbs"
	"github.com/p2pdc/p2pdc/microproto"
)

// arrival is what has come and was not handed up yet.
type arrival struct {
	pair  *pair
	key   uint32
	block int32
	bytes int32
	slot  int32 // of the window; -1: the block has the frame
}

// TryRecv fills a prefix of batch with what has come, and never waits.
func (l *Link) TryRecv(batch []microproto.Frame) (int, error) {
	l.rx.Lock()
	n := l.takeArrivals(batch)
	l.rx.Unlock()
	l.payCredit()
	l.callWritableIfRoom()
	if n == 0 && l.closed.Load() {
		return 0, errClosed
	}
	return n, nil
}

// Recv waits as Config.Completion says. It may return no frame after Wake.
func (l *Link) Recv(batch []microproto.Frame) (int, error) { return l.AwaitRecv(batch) }

// AwaitRecv is Recv: it waits until something has come, or Wake is called.
func (l *Link) AwaitRecv(batch []microproto.Frame) (int, error) {
	if len(batch) == 0 {
		return 0, nil
	}
	return l.await(batch)
}

// Await waits as AwaitRecv does, and leaves what has come to the next TryRecv. So
// several may take in what comes, one after the other, and keep its order.
func (l *Link) Await() error {
	_, err := l.await(nil)
	return err
}

// attempt is TryRecv; without a batch it tells only how much is there.
func (l *Link) tryReceive(batch []microproto.Frame) (int, error) {
	if batch != nil {
		return l.TryRecv(batch)
	}
	l.rx.Lock()
	if l.arrivals.n == 0 {
		l.poll()
	}
	n := l.arrivals.n
	l.rx.Unlock()
	l.payCredit()
	l.callWritableIfRoom()
	if n == 0 && l.closed.Load() {
		return 0, errClosed
	}
	return n, nil
}

func (l *Link) await(batch []microproto.Frame) (int, error) {
	l.receivers.Add(1)
	defer l.receivers.Add(-1)
	l.waitMu.Lock()
	defer l.waitMu.Unlock()
	var spun time.Time
	for {
		n, err := l.tryReceive(batch)
		if n > 0 || err != nil || l.wakeRequested.Swap(false) {
			return n, err
		}
		if l.keepPolling(&spun) {
			continue
		}
		if err := l.receives.Arm(); err != nil {
			l.waitAfterFailure(err)
			continue
		}
		// What came before it was armed raises no event.
		if n, err := l.tryReceive(batch); n > 0 || err != nil || l.wakeRequested.Swap(false) {
			return n, err
		}
		l.count.waits.Add(1)
		if _, err := l.channel.Wait(-1); err != nil && !l.closed.Load() {
			l.waitAfterFailure(err)
		}
		spun = time.Time{}
	}
}

// outlast waits at a device that works no more, until Wake or Close.
func (l *Link) waitAfterFailure(err error) {
	l.mu.Lock()
	l.markDown(err)
	l.mu.Unlock()
	select {
	case <-l.wakeup:
	case <-l.done:
	}
}

// looks tells a receiver that has found nothing to look again. since is when it began.
func (l *Link) keepPolling(since *time.Time) bool {
	switch l.config.Completion {
	case CompletionPolling:
	case CompletionChannel:
		return false
	default:
		now := time.Now()
		if since.IsZero() {
			*since = now
		}
		if now.Sub(*since) >= l.config.Spin {
			return false
		}
	}
	runtime.Gosched() // an adapter of software needs the processor
	return true
}

// Wake makes a Recv or AwaitRecv that waits, or else the next one, return without a
// frame.
func (l *Link) Wake() {
	l.wakeRequested.Store(true)
	select {
	case l.wakeup <- struct{}{}:
	default:
	}
	l.wakeReceiver()
}

// nudge makes who waits at the channel look again.
func (l *Link) wakeReceiver() {
	if !l.closed.Load() {
		l.channel.Wake()
	}
}

// collect polls, and hands up what has come. rx is held.
func (l *Link) takeArrivals(batch []microproto.Frame) int {
	if l.arrivals.n == 0 {
		l.poll()
	}
	n := 0
	for left := l.arrivals.n; left > 0 && n < len(batch); left-- {
		a := l.arrivals.pop()
		if a.pair.key.Load() != a.key {
			l.count.discarded.Add(1)
			continue // its connection is over, and the block posted again
		}
		if f, ok := l.frameOf(&a); ok {
			l.count.framesReceived.Add(1)
			l.count.bytesReceived.Add(uint64(len(f.Data)))
			batch[n] = f
			n++
		}
	}
	return n
}

// pop makes a frame of an arrival. POP: the bytes are copied out and the block is posted
// at once; in message mode they stay, while enough receives are posted, until the frame
// is released. They stay too where there is no memory to copy into.
func (l *Link) frameOf(a *arrival) (microproto.Frame, bool) {
	q := a.pair
	if a.slot >= 0 {
		return l.readSlot(q, int(a.slot))
	}
	stay := l.config.MessageBytes > 0 && q.held.Load() < int64(l.memory.receivesPerPair/2)
	var b *microproto.Buffer
	if !stay {
		b = l.buffers.get()
	}
	if b == nil {
		q.lendBlock(a.block)
		return l.memory.frameOver(a.block, q.peer.addr, int(a.bytes)), true
	}
	f := b.Frame(q.peer.addr, 0, int(a.bytes))
	copy(f.Data, l.memory.blockAt(int(a.block)))
	_ = q.repost(a.block) // if that fails, a completion tells
	q.held.Add(-1)
	if q.owesCredit() {
		l.oweCredit(q.peer)
	}
	return f, true
}

// poll takes completions of receives in, as many as are there. rx is held.
func (l *Link) poll() {
	for {
		n, err := l.receives.Poll(l.receiveCompletions[:])
		if err != nil || n == 0 {
			return
		}
		for i := range l.receiveCompletions[:n] {
			l.handleReceive(&l.receiveCompletions[i])
		}
		if l.arrivals.n >= len(l.receiveCompletions) {
			return // enough to hand up first
		}
	}
}

// received acts on one completion.
func (l *Link) handleReceive(c *verbs.Completion) {
	q := l.pairOf(c.ID)
	if q == nil {
		return
	}
	block := int32(uint32(c.ID))
	switch {
	case c.Status != verbs.StatusOK:
		l.receiveFailed(q, c)
	case c.Kind == verbs.ReceivedImmediate:
		q.advanceArrived(uint16(c.Immediate>>16), 1)
		_ = q.repost(block)
		l.queueNotice(q, int(c.Immediate&0xffff))
		if q.owesCredit() {
			l.oweCredit(q.peer)
		}
	case !c.HasImmediate:
		l.count.malformed.Add(1)
		_ = q.repost(block)
	case c.Bytes == 0:
		l.handleControl(q, c.Immediate)
		_ = q.repost(block)
	default:
		if q.transport == verbs.UC {
			q.advanceArrived(uint16(c.Immediate>>16), 1)
		} else {
			q.arrived.Add(1)
		}
		q.held.Add(1)
		l.queueArrival(arrival{q, q.key.Load(), block, int32(c.Bytes), -1})
		l.handleCredit(q, c.Immediate)
	}
}

// number16 takes the number of a frame of the unreliable pair; came of those up
// to it have come, the others are lost.
func (q *pair) advanceArrived(low uint16, came uint64) {
	old := q.arrived.Load()
	now := advance(old, low)
	q.arrived.Store(now)
	if now > old+came {
		q.link.count.lost.Add(now - old - came)
	}
}

// keep queues an arrival. Each has a receive of its own, or a slot, which bounds them.
func (l *Link) queueArrival(a arrival) {
	if l.arrivals.n == len(l.arrivals.slots) {
		l.arrivals.grow(2 * l.arrivals.n)
	}
	l.arrivals.push(a)
}

// control is a message without a frame: credit on the reliable pair, on the unreliable
// one how many frames were sent, asked by who has no credit left.
func (l *Link) handleControl(q *pair, immediate uint32) {
	if q.transport == verbs.UC {
		q.advanceArrived(uint16(immediate>>16), 0)
		q.peer.creditAsked.Store(true)
		l.oweCredit(q.peer)
	}
	l.handleCredit(q, immediate)
}

// credit takes in what the other end tells, and has what waits for it posted.
func (l *Link) handleCredit(q *pair, immediate uint32) {
	p := q.peer
	p.answered.Store(true)
	l.raiseLimit(p.uc, uint16(immediate))
	if q.transport == verbs.RC {
		l.raiseLimit(p.rc, uint16(immediate>>16))
	}
}

func (l *Link) raiseLimit(q *pair, low uint16) {
	old := q.limit.Load()
	now := advance(old, low)
	if now == old {
		return
	}
	q.limit.Store(now)
	if q.starved.Load() {
		l.mu.Lock()
		l.markReady(q)
		l.pump()
		l.mu.Unlock()
	}
}

// receiveFailed takes a connection down, by the reason that the send queue knows if it
// does.
func (l *Link) receiveFailed(q *pair, c *verbs.Completion) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.reap()
	switch {
	case c.Status == verbs.StatusFlushed:
		q.peer.fail(fmt.Errorf("the %v queue pair went to error", q.transport))
	default:
		q.peer.fail(fmt.Errorf("receiving by the %v queue pair: %v", q.transport, c.Status))
	}
	l.pump()
}
