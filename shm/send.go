package shm

import (
	"fmt"

	"github.com/p2pdc/p2pdc/microproto"
)

// Acquire returns a frame over private memory. It panics if n is larger than any frame.
func (l *Link) Acquire(n int) microproto.Frame {
	if n > l.layout.largest() {
		panic(fmt.Sprintf("shm: frame of %d bytes: larger than Caps.MTU", n))
	}
	b := l.buffers.Get(n, false)
	if b == nil { // beyond the bound: a frame of a synchronous session must not be lost
		b = microproto.NewBuffer(make([]byte, n), nil)
	}
	return b.Frame(0, 0, n)
}

// Send copies frames into this end's outbox. When a lane is full, a frame of ModeAsynchronous is dropped
// and counted, and for others Send stops. A frame with a Value goes to a slot and always fits. Frames for
// a peer whose connection is down are dropped and counted; Watch has reported it.
func (l *Link) Send(batch []microproto.Frame) (n int, err error) {
	l.tx.Lock()
	defer l.tx.Unlock()
	for n < len(batch) {
		taken, err := l.sendFrame(&batch[n])
		if !taken {
			return n, err
		}
		batch[n].Release()
		n++
	}
	return n, nil
}

// sendFrame sends a frame or drops it; false: the link does not take it. tx is held.
func (l *Link) sendFrame(f *microproto.Frame) (taken bool, err error) {
	if l.closed.Load() {
		return false, errClosed
	}
	p := l.peer(f.Peer)
	if p == nil || p.remote == nil && p.state != peerDown {
		return false, fmt.Errorf("shm: frame to link address %d, which was never accepted or was forgotten", f.Peer)
	}
	most := int(l.layout.FrameBytes)
	if f.Mode == microproto.ModeAsynchronous {
		most = int(l.layout.ValueBytes)
	}
	switch {
	case f.Bytes() == 0 || f.Bytes() > most || f.Count() > 1:
		return false, fmt.Errorf("shm: %d frames of %d bytes in all: a frame must be single, of 1 to %d bytes",
			f.Count(), f.Bytes(), most)
	case p.state == peerDown:
		l.count.Discarded.Add(1)
		return true, nil
	case f.Value != 0 && f.Mode == microproto.ModeAsynchronous:
		if slot := p.slots.slotFor(f.Value, l.config.Values); slot >= 0 {
			l.count.Written.Add(1)
			notify, inPlace := p.slots.write(&p.lane, slot, f.Data, f.Body)
			l.countInPlace(inPlace)
			if notify {
				err = p.lane.pushNotice(slot)
			}
			p.wake(err)
			return true, nil
		}
	}
	need := p.lane.need(f.Data, f.Body)
	fits, err := p.lane.mayPush(need)
	switch {
	case err != nil:
	case fits:
		l.countInPlace(p.lane.push(f.Data, f.Body))
	case f.Mode == microproto.ModeAsynchronous:
		l.count.Dropped.Add(1)
	default:
		l.count.SendFull.Add(1)
		l.full, l.stopped = p, need
		return false, nil
	}
	p.wake(err)
	return true, nil
}

func (l *Link) countInPlace(inPlace bool) {
	if inPlace {
		l.count.InPlace.Add(1)
	}
}

// wake wakes the other end if it sleeps. An error takes the connection down instead. tx is held.
func (p *peer) wake(err error) {
	if err != nil {
		go p.link.failRound(p, p.round, err) // it takes all locks
		return
	}
	if p.bell == nil {
		return
	}
	if asleep := word(p.in.bytes, asleepAt).Load(); asleep != 0 && asleep != p.rung {
		p.rung = asleep
		p.link.count.Bells.Add(1)
		p.bell.ring()
	}
}

// Writable calls f once Send may take frames again.
func (l *Link) Writable(f func()) {
	l.writableMu.Lock()
	l.writable = append(l.writable, f)
	l.waiting.Store(true)
	l.writableMu.Unlock()
	l.callWritableIfRoom()
}

// callWritableIfRoom calls the callbacks of Writable unless the lane that stopped Send is still full.
func (l *Link) callWritableIfRoom() {
	if !l.waiting.Load() {
		return
	}
	l.tx.Lock()
	if p := l.full; p != nil {
		fits, err := p.lane.mayPush(l.stopped)
		if !fits && err == nil {
			l.tx.Unlock()
			return
		}
		l.full = nil
	}
	l.tx.Unlock()
	l.callWritable()
}

func (l *Link) callWritable() {
	l.writableMu.Lock()
	all := l.writable
	l.writable = nil
	l.waiting.Store(false)
	l.writableMu.Unlock()
	for _, f := range all {
		f()
	}
}
