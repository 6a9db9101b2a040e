package ib

import (
	"fmt"

	"github.com/p2pdc/p2pdc/ib/internal/verbs"
	"github.com/p2pdc/p2pdc/microproto"
)

// Acquire returns a frame over a registered block, which Send does not copy. If no block is
// free, it returns a frame over unregistered memory, which Send copies. It panics if n is
// larger than Caps.MTU.
func (l *Link) Acquire(n int) microproto.Frame {
	if n > l.config.BlockBytes {
		panic(fmt.Sprintf("ib: frame of %d bytes: larger than Caps.MTU", n))
	}
	if f, ok := l.memory.acquire(n); ok {
		return f
	}
	l.count.PlainAcquires.Add(1)
	return microproto.NewBuffer(make([]byte, n), nil).Frame(0, 0, n)
}

// Send takes frames for accepted peers in the order given. A frame without credit or room waits
// in its pair's queue. If the queue is full, a frame of ModeAsynchronous is dropped and
// counted, and for others Send stops. Frames for a peer whose connection is down are dropped
// and counted; Watch has reported it.
func (l *Link) Send(batch []microproto.Frame) (int, error) {
	l.mu.Lock()
	n, err := l.enqueue(batch)
	l.pump()
	if n < len(batch) && err == nil {
		// The queue may be full only because of the frames of this call.
		l.reap()
		var more int
		more, err = l.enqueue(batch[n:])
		n += more
		l.pump()
	}
	starved := l.starvedPairs > 0
	l.mu.Unlock()
	if starved && l.receivers.Load() == 0 {
		l.pollIfIdle()
	}
	l.callWritableIfRoom()
	return n, err
}

// enqueue queues frames with their pairs. mu is held.
func (l *Link) enqueue(batch []microproto.Frame) (int, error) {
	for i := range batch {
		f := &batch[i]
		if l.closed.Load() {
			return i, errClosed
		}
		p := l.peer(f.Peer)
		switch {
		case p == nil || p.remoteOffer == nil:
			return i, fmt.Errorf("ib: frame to link address %d, which was never accepted or was forgotten", f.Peer)
		case len(f.Data) == 0 || f.Bytes() > l.config.BlockBytes || f.Count() > 1:
			return i, fmt.Errorf("ib: %d frames of %d bytes in all: a frame must be single, of 1 to %d bytes",
				f.Count(), f.Bytes(), l.config.BlockBytes)
		case f.Value != 0 && p.remote.state == unverified && p.remote.slots > 0 && p.state == peerUp:
			p.verifyWindow()
		}
		if p.state != peerUp {
			l.count.Discarded.Add(1)
			f.Release()
			continue
		}
		q := p.rc
		if f.Mode == microproto.ModeAsynchronous {
			q = p.uc
		}
		if f.Body != nil {
			*f = l.gatherOrFlatten(*f, q)
		}
		switch {
		case f.Value != 0 && q == p.uc && q.queue.replace(*f):
			l.count.Replaced.Add(1)
		case !q.queue.full():
			q.queue.push(*f)
		case q == p.uc:
			l.count.Dropped.Add(1)
			f.Release()
		default:
			l.count.SendFull.Add(1)
			l.fullPair = q
			return i, nil
		}
		l.markReady(q)
	}
	return len(batch), nil
}

// markReady adds a pair to those that may have requests to post.
func (l *Link) markReady(q *pair) {
	if !q.ready {
		q.ready = true
		l.readyPairs = append(l.readyPairs, q)
	}
}

// pump posts what the ready pairs can send. mu is held.
func (l *Link) pump() {
	for i := 0; i < len(l.readyPairs); i++ {
		q := l.readyPairs[i]
		q.ready = false
		if q.peer.state == peerUp {
			l.pumpPair(q)
		}
	}
	l.readyPairs = l.readyPairs[:0]
	if l.fullPair != nil && !l.fullPair.queue.full() {
		l.fullPair = nil
	}
}

// pumpPair posts a pair's frames as long as there is credit, room and memory.
func (l *Link) pumpPair(q *pair) {
	for q.peer.state == peerUp && q.hasWork() {
		n := l.build(q)
		if n == 0 || int(q.outstanding()) >= q.sendRoom()/2 {
			l.reap() // may take the connection down, and discard what was built
		}
		if n == 0 {
			if n = l.build(q); n == 0 {
				break
			}
		}
		if q.peer.state == peerUp {
			l.postAll(q, n)
		}
	}
	starved := q.peer.state == peerUp && q.hasWork()
	if starved != q.starved.Load() {
		q.starved.Store(starved)
		if starved {
			l.starvedPairs++
			l.armProgress()
			// Credit that came before starved was set has not marked the pair ready.
			if q.canPost() {
				l.markReady(q)
			}
		} else {
			l.starvedPairs--
		}
	}
}

// build builds a batch of requests that can be posted now, and returns its length.
func (l *Link) build(q *pair) (n int) {
	for n < postBatch && int(q.outstanding()) < q.sendRoom() && q.peer.state == peerUp && q.hasWork() {
		if !l.buildNext(q, n) {
			break
		}
		n++
	}
	return n
}

// hasWork reports whether frames or notices of slots wait.
func (q *pair) hasWork() bool {
	return q.queue.n > 0 || q.transport == verbs.UC && q.peer.remote.unannounced.Len() > 0
}

func (q *pair) outstanding() uint32 { return q.head - q.tail }

// sendRoom returns the number of frames that may be outstanding. More requests carry credit.
func (q *pair) sendRoom() int { return q.link.config.sendDepth() - controlReceives }

func (q *pair) hasCredit() bool { return q.sent < q.limit.Load() }

// canPost reports whether the oldest waiting frame or notice could be posted.
func (q *pair) canPost() bool {
	return q.hasWork() && int(q.outstanding()) < q.sendRoom() &&
		(q.hasCredit() || q.queue.n > 0 && q.oneSided(q.queue.front()))
}

// buildNext builds request i of a batch, if the oldest waiting frame or notice can be sent now.
func (l *Link) buildNext(q *pair, i int) bool {
	if q.transport == verbs.UC && q.hasCredit() && q.peer.remote.unannounced.Len() > 0 {
		q.buildNotice(i)
		return true
	}
	if q.queue.n == 0 {
		return false
	}
	f := q.queue.front()
	if q.oneSided(f) {
		return l.buildWrite(q, i)
	}
	if !q.hasCredit() {
		return false
	}
	e, from, ok := l.locate(f)
	if !ok {
		return false
	}
	body := f.Body
	e.holdFrame(q.queue.pop())
	q.sent++
	r := q.newRequest(i, e)
	r.Operation, r.Immediate = verbs.SendImmediate, q.immediate()
	r.Elements = append(r.Elements, from)
	if body != nil {
		rest, _ := l.userMemory.element(body)
		r.Elements = append(r.Elements, rest)
		q.signal(r) // the user waits for its memory
	}
	return true
}

// locate returns the registered element of a frame's bytes, copying them into a block if
// necessary (PUSH). It returns false if no block is free.
func (l *Link) locate(f *microproto.Frame) (sendEntry, verbs.Element, bool) {
	m := l.memory
	if at, ok := m.offset(f.Data); ok {
		return sendEntry{block: -1}, m.element(at, len(f.Data)), true
	}
	if e, ok := l.userMemory.element(f.Data); ok {
		return sendEntry{block: -1}, e, true
	}
	b, ok := m.acquireForCopy()
	if !ok {
		return sendEntry{}, verbs.Element{}, false
	}
	n := copy(m.blockAt(int(b)), f.Data)
	l.count.Copied.Add(1)
	return sendEntry{block: b}, m.element(int(b)*m.blockBytes, n), true
}

// holdFrame keeps the frame until the request completes, unless its bytes were copied.
func (e *sendEntry) holdFrame(f microproto.Frame) {
	if e.block < 0 {
		e.frame = f
	} else {
		f.Release()
	}
}

func (m *memory) element(at, n int) verbs.Element {
	return verbs.Element{Addr: m.addr + uint64(at), Length: uint32(n), Key: m.key}
}

// newRequest adds request i of a batch to the ring. Its ID holds the pair's key and its number.
func (q *pair) newRequest(i int, e sendEntry) *verbs.SendRequest {
	number := q.head
	q.head++
	q.ring[number&uint32(len(q.ring)-1)] = e
	r := &q.requests[i]
	*r = verbs.SendRequest{ID: uint64(q.key.Load())<<32 | uint64(number), Elements: q.elements[i][:0]}
	if q.unsignaled++; q.unsignaled >= q.link.signalEvery {
		q.signal(r)
	}
	return r
}

// signal requests a completion.
func (q *pair) signal(r *verbs.SendRequest) { r.Signaled, q.unsignaled = true, 0 }

// postAll posts the n requests built. The adapter refuses requests only after an error.
func (l *Link) postAll(q *pair, n int) {
	last := &q.requests[n-1]
	if !last.Signaled && (l.blocksScarce() || int(q.outstanding()) >= q.sendRoom()/2) {
		q.signal(last)
	}
	l.count.Posts.Add(1)
	l.count.Requests.Add(uint64(n))
	done, err := q.qp.PostSend(q.requests[:n])
	if err != nil || done < n {
		q.peer.fail(fmt.Errorf("cannot post to the %v queue pair: %w", q.transport, err))
	}
}

// blocksScarce reports whether so few send blocks are free that completions should free some.
func (l *Link) blocksScarce() bool { return l.memory.freeBlocks() < l.memory.sendBlocks/4 }

// immediate returns the immediate data of a frame. The upper half is the credit of the reliable
// pair, or on the unreliable pair the frame's number. The lower half is the credit of the
// unreliable pair.
func (q *pair) immediate() uint32 {
	uc := q.peer.uc
	ucGrant := uc.granted()
	uc.announced.Store(ucGrant)
	if q.transport == verbs.UC {
		return uint32(uint16(q.sent))<<16 | uint32(uint16(ucGrant))
	}
	grant := q.granted()
	q.announced.Store(grant)
	return uint32(uint16(grant))<<16 | uint32(uint16(ucGrant))
}

// reap polls completions of sends and releases their frames. mu is held.
func (l *Link) reap() {
	for !l.closed.Load() {
		n, err := l.sends.Poll(l.sendCompletions[:])
		if err != nil || n == 0 {
			return
		}
		for i := range l.sendCompletions[:n] {
			l.sendCompleted(&l.sendCompletions[i])
		}
	}
}

func (l *Link) sendCompleted(c *verbs.Completion) {
	q := l.pairOf(c.ID)
	if q == nil {
		return // from an earlier connection
	}
	if c.Status != verbs.StatusOK {
		q.peer.fail(fmt.Errorf("%v queue pair: %v", q.transport, c.Status))
		return
	}
	for number := uint32(c.ID); int32(number-q.tail) >= 0; q.tail++ {
		e := &q.ring[q.tail&uint32(len(q.ring)-1)]
		q.peer.completed(e.purpose)
		q.releaseEntry(e)
	}
	if q.hasWork() {
		l.markReady(q)
	}
}

// pairOf returns the pair of a work request, or nil if it was reconnected since.
func (l *Link) pairOf(id uint64) *pair {
	key := uint32(id >> 32)
	if i := int(key & keyIndex); i < len(l.pairs) {
		if q := l.pairs[i]; q != nil && q.key.Load() == key {
			return q
		}
	}
	return nil
}

// The lower bits of a pair's key are its index.
const (
	keyBits  = 12
	keyIndex = 1<<keyBits - 1
)

func (l *Link) newKey(index int) uint32 { return l.keyGeneration.Add(1)<<keyBits | uint32(index) }
