package shm

import (
	"math/bits"
	"slices"

	"github.com/p2pdc/p2pdc/microproto"
)

// TryRecv fills a prefix of batch with received frames and never waits. It makes no system call unless
// the other end has to be woken. A caller that polls learns by Writable that there is room again before the other
// end has told this one.
func (l *Link) TryRecv(batch []microproto.Frame) (int, error) {
	l.callWritableIfRoom()
	l.rx.Lock()
	n := 0
	for i := 0; i < len(l.active) && n < len(batch); i++ {
		at := (l.first + i) % len(l.active)
		p := l.active[at]
		k, err := p.receive(batch[n:])
		n += k
		if err != nil {
			l.active = slices.Delete(l.active, at, at+1)
			go l.failRound(p, p.round, err) // it takes all locks
			break
		}
	}
	l.first++
	l.rx.Unlock()
	if n == 0 && l.closed.Load() {
		return 0, errClosed
	}
	return n, nil
}

// recordsPerFrame bounds the records that are read in one call, also those without a frame.
const recordsPerFrame = 4

// receive fills a prefix of batch with frames of the peer. rx is held.
func (p *peer) receive(batch []microproto.Frame) (n int, err error) {
	for again := len(p.values.again); again > 0 && n < len(batch); again-- {
		slot := int(p.values.again[0])
		p.values.again = slices.Delete(p.values.again, 0, 1)
		if n, err = p.readSlot(slot, batch, n); err != nil {
			return n, err
		}
	}
	for range recordsPerFrame * len(batch) {
		r, err := p.incoming.peek()
		if err != nil || r.kind == nothing || n == len(batch) {
			return n, err
		}
		switch r.kind {
		case frameRecord, blockRecord:
			b, err := p.readFrame(r)
			if b == nil {
				return n, err // without an error the frame stays there until memory is released
			}
			batch[n] = b.Frame(p.addr, 0, r.value)
			n++
		case noticeRecord:
			p.values.take(&p.incoming, r.value)
			if n, err = p.readSlot(r.value, batch, n); err != nil {
				return n, err
			}
		}
		if p.incoming.advance(r.lines) {
			p.bell.ring()
		}
	}
	return n, nil
}

// readFrame lends or copies the frame of the next record; nil without an error: there is no memory for a copy.
func (p *peer) readFrame(r record) (*microproto.Buffer, error) {
	from := p.incoming.frame(r)
	if r.kind == blockRecord {
		return p.loans.lendBlock(from, r.block)
	}
	b := p.link.buffers.Get(r.value, true)
	if b != nil {
		copy(b.Bytes, from)
	}
	return b, nil
}

// readSlot adds the newest frame of a slot to the first n of batch. Without memory, while heldPerSlot older frames of the
// slot are lent, or if the frame is replaced in every attempt, the slot is read later.
func (p *peer) readSlot(slot int, batch []microproto.Frame, n int) (int, error) {
	b, length, ok, err := p.newestFrame(slot)
	if err != nil || ok && b == nil {
		return n, err
	}
	if ok {
		batch[n] = b.Frame(p.addr, 0, length)
		return n + 1, nil
	}
	if !slices.Contains(p.values.again, int32(slot)) {
		p.values.again = append(p.values.again, int32(slot))
	}
	return n, nil
}

// newestFrame lends or copies the newest frame of a slot; nil if it was delivered before. ok is false if it has to be
// read later.
func (p *peer) newestFrame(slot int) (b *microproto.Buffer, length int, ok bool, err error) {
	held := p.loans.held(slot) // later some of them may be returned; no others are lent
	if bits.OnesCount64(held) == heldPerSlot {
		return nil, 0, false, nil
	}
	frame, index, ok, err := p.values.newest(&p.incoming, slot, held)
	if err != nil || !ok || frame == nil {
		return nil, 0, ok, err
	}
	if len(frame) >= lendBytes {
		return p.loans.lendSlot(frame, slot, index), len(frame), true, nil
	}
	if b = p.link.buffers.Get(len(frame), true); b == nil {
		p.values.delivered[slot] = 0
		return nil, 0, false, nil
	}
	copy(b.Bytes, frame)
	return b, len(frame), true, nil
}

// ready reports whether TryRecv would find something and has memory for it. If only loans prevent that, the return
// of one wakes the receiver. rx is held.
func (l *Link) ready() bool {
	exhausted := l.buffers.Exhausted()
	for _, p := range l.active {
		if r, err := p.incoming.peek(); err != nil || r.kind == blockRecord || r.kind != nothing && !exhausted {
			return true
		}
		for _, slot := range p.values.again {
			if p.loans.mayLend(int(slot)) && !exhausted {
				return true
			}
		}
	}
	return false
}

// Recv waits for frames. After Wake it may return none.
func (l *Link) Recv(batch []microproto.Frame) (int, error) { return l.AwaitRecv(batch) }

// AwaitRecv is Recv: it waits for a frame or for Wake.
func (l *Link) AwaitRecv(batch []microproto.Frame) (int, error) {
	if len(batch) == 0 {
		return 0, nil
	}
	l.waitMu.Lock()
	defer l.waitMu.Unlock()
	for {
		n, err := l.TryRecv(batch)
		if n > 0 || err != nil || l.wakeRequested.Swap(false) {
			return n, err
		}
		l.wait()
	}
}

// Await waits as AwaitRecv does, and leaves the frames to the next TryRecv. Several goroutines may so
// receive in turn without changing the order of frames.
func (l *Link) Await() error {
	l.waitMu.Lock()
	defer l.waitMu.Unlock()
	for {
		l.rx.Lock()
		ready := l.ready()
		l.rx.Unlock()
		switch {
		case l.closed.Load():
			return errClosed
		case ready || l.wakeRequested.Swap(false):
			return nil
		}
		l.wait()
	}
}

// wait returns when there may be something to receive. waitMu is held.
func (l *Link) wait() {
	if l.setAsleep(true) {
		l.setAsleep(false)
		return
	}
	l.count.Waits.Add(1)
	select {
	case <-l.bell:
	case <-l.done:
	}
	l.setAsleep(false)
}

// setAsleep tells the other ends whether this one sleeps. It reports whether there is something to
// receive, which may have been written before its writer could see that.
func (l *Link) setAsleep(asleep bool) (ready bool) {
	l.rx.Lock()
	defer l.rx.Unlock()
	l.asleep = asleep
	generation := uint64(0)
	if asleep {
		l.sleep++
		generation = l.sleep
	}
	for _, p := range l.active {
		word(p.out.bytes, asleepAt).Store(generation)
	}
	return l.ready()
}

// Wake makes the waiting Recv, AwaitRecv or Await, or else the next one, return without a frame.
func (l *Link) Wake() {
	l.wakeRequested.Store(true)
	l.wakeReceiver()
}

// wakeReceiver makes the receiver look again.
func (l *Link) wakeReceiver() {
	select {
	case l.bell <- struct{}{}:
	default:
	}
}
