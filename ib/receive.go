package ib

import (
	"fmt"
	"runtime"
	"time"

	"github.com/p2pdc/p2pdc/ib/internal/verbs"
	"github.com/p2pdc/p2pdc/microproto"
)

// arrival is a received frame or notice that was not delivered yet.
type arrival struct {
	pair  *pair
	key   uint32
	block int32
	bytes int32
	slot  int32 // of the window; -1: the frame is in the block
}

// TryRecv fills a prefix of batch with received frames and never waits.
func (l *Link) TryRecv(batch []microproto.Frame) (int, error) { return l.receive(batch, false) }

// receive returns frames, or with peek only the number of arrivals.
func (l *Link) receive(batch []microproto.Frame, peek bool) (int, error) {
	l.rx.Lock()
	if l.arrivals.Len() == 0 {
		l.poll()
	}
	n := l.arrivals.Len()
	if !peek {
		n = l.takeArrivals(batch)
	}
	l.rx.Unlock()
	l.payCredit()
	l.callWritableIfRoom()
	if n == 0 && l.closed.Load() {
		return 0, errClosed
	}
	return n, nil
}

// Recv waits for frames as Config.Completion says. After Wake it may return no frame.
func (l *Link) Recv(batch []microproto.Frame) (int, error) { return l.AwaitRecv(batch) }

// AwaitRecv is Recv: it waits for a frame or for Wake.
func (l *Link) AwaitRecv(batch []microproto.Frame) (int, error) {
	if len(batch) == 0 {
		return 0, nil
	}
	return l.await(batch, false)
}

// Await waits as AwaitRecv does, and leaves the frames to the next TryRecv. Several goroutines
// may so receive in turn without changing the order of frames.
func (l *Link) Await() error {
	_, err := l.await(nil, true)
	return err
}

func (l *Link) await(batch []microproto.Frame, peek bool) (int, error) {
	l.receivers.Add(1)
	defer l.receivers.Add(-1)
	l.waitMu.Lock()
	defer l.waitMu.Unlock()
	var pollingSince time.Time
	for {
		n, err := l.receive(batch, peek)
		if n > 0 || err != nil || l.wakeRequested.Swap(false) {
			return n, err
		}
		if l.keepPolling(&pollingSince) {
			continue
		}
		if err := l.receives.Arm(); err != nil {
			l.waitAfterFailure(err)
			continue
		}
		// A completion from before the arming raises no event.
		if n, err := l.receive(batch, peek); n > 0 || err != nil || l.wakeRequested.Swap(false) {
			return n, err
		}
		l.count.Waits.Add(1)
		if _, err := l.channel.Wait(); err != nil && !l.closed.Load() {
			l.waitAfterFailure(err)
		}
		pollingSince = time.Time{}
	}
}

// waitAfterFailure waits for Wake or Close after the device has failed.
func (l *Link) waitAfterFailure(err error) {
	l.mu.Lock()
	l.markDown(err)
	l.mu.Unlock()
	select {
	case <-l.wakeup:
	case <-l.done:
	}
}

// keepPolling reports whether a receiver that has found nothing since then should poll again.
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
	runtime.Gosched() // lets the goroutines of software adapters run
	return true
}

// Wake makes the waiting Recv or AwaitRecv, or else the next one, return without a frame.
func (l *Link) Wake() {
	l.wakeRequested.Store(true)
	select {
	case l.wakeup <- struct{}{}:
	default:
	}
	l.wakeReceiver()
}

// wakeReceiver makes the goroutine that waits at the channel poll again.
func (l *Link) wakeReceiver() {
	if !l.closed.Load() {
		l.channel.Wake()
	}
}

// takeArrivals fills a prefix of batch. rx is held.
func (l *Link) takeArrivals(batch []microproto.Frame) int {
	n := 0
	for left := l.arrivals.Len(); left > 0 && n < len(batch); left-- {
		a := l.arrivals.Pop()
		if a.pair.key.Load() != a.key {
			l.count.Discarded.Add(1)
			continue // its connection has ended, and its block was posted again
		}
		if f, ok := l.frameOf(&a); ok {
			l.count.FramesReceived.Add(1)
			l.count.BytesReceived.Add(uint64(len(f.Data)))
			batch[n] = f
			n++
		}
	}
	return n
}

// frameOf returns the frame of an arrival. Its bytes are copied out and its block is posted at
// once (POP). The frame stays in its block until released if there is no buffer, and in message
// mode while enough receives are posted.
func (l *Link) frameOf(a *arrival) (microproto.Frame, bool) {
	q := a.pair
	if a.slot >= 0 {
		return l.readSlot(q, int(a.slot))
	}
	stay := l.config.MessageBytes > 0 && q.held.Load() < int64(l.memory.receivesPerPair/2)
	var b *microproto.Buffer
	if !stay {
		b = l.buffers.Get(l.config.BlockBytes, true)
	}
	if b == nil {
		q.lendBlock(a.block)
		return l.memory.frameOver(a.block, q.peer.addr, int(a.bytes)), true
	}
	f := b.Frame(q.peer.addr, 0, int(a.bytes))
	copy(f.Data, l.memory.blockAt(int(a.block)))
	_ = q.repost(a.block) // a completion reports an error
	q.held.Add(-1)
	q.checkCredit()
	return f, true
}

// poll polls completions of receives. rx is held.
func (l *Link) poll() {
	for !l.closed.Load() {
		n, err := l.receives.Poll(l.receiveCompletions[:])
		if err != nil || n == 0 {
			return
		}
		for i := range l.receiveCompletions[:n] {
			l.handleReceive(&l.receiveCompletions[i])
		}
		if l.arrivals.Len() >= len(l.receiveCompletions) {
			return // deliver these first
		}
	}
}

// handleReceive handles one completion.
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
		q.checkCredit()
	case !c.HasImmediate:
		l.count.Malformed.Add(1)
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

// advanceArrived takes the lower 16 bits of the count of frames that the unreliable pair has
// sent. Of the new ones so many have come; the others are lost.
func (q *pair) advanceArrived(low uint16, come uint64) {
	old := q.arrived.Load()
	now := advance(old, low)
	q.arrived.Store(now)
	if now > old+come {
		q.link.count.Lost.Add(now - old - come)
	}
}

// queueArrival queues an arrival. Their number is bounded by that of receives and slots.
func (l *Link) queueArrival(a arrival) {
	l.arrivals.Push(a)
}

// handleControl handles a message without a frame. On the reliable pair it carries credit. On
// the unreliable pair it is a probe of an end without credit, with its count of frames sent.
func (l *Link) handleControl(q *pair, immediate uint32) {
	if q.transport == verbs.UC {
		q.advanceArrived(uint16(immediate>>16), 0)
		q.peer.creditAsked.Store(true)
		l.oweCredit(q.peer)
	}
	l.handleCredit(q, immediate)
}

// handleCredit takes credit from the other end, and posts the frames that waited for it.
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

// receiveFailed takes a connection down. The send queue often has the better reason.
func (l *Link) receiveFailed(q *pair, c *verbs.Completion) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.reap()
	err := fmt.Errorf("cannot receive from the %v queue pair: %v", q.transport, c.Status)
	if c.Status == verbs.StatusFlushed {
		err = fmt.Errorf("the %v queue pair went to the error state", q.transport)
	}
	q.peer.fail(err)
	l.pump()
}
