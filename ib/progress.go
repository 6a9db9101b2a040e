package ib

import (
	"errors"
	"time"

	"github.com/p2pdc/p2pdc/ib/internal/verbs"
)

// Receiving normally makes progress for frames that wait. A timer makes progress while nobody
// receives and where credit was lost together with its frame. It runs only while something
// waits.
const (
	progressInterval = time.Millisecond
	probeInterval    = 20 * time.Millisecond
	// maxUnanswered is the time for which a peer that is reachable may leave probes for credit
	// unanswered, in units of Config.Timeout. It is generous since a process may be stopped.
	maxUnanswered = 5
)

var errUnanswered = errors.New("the other end does not answer requests for credit")

// armProgress lets progress run soon. It may be called from any goroutine.
func (l *Link) armProgress() {
	if !l.closed.Load() && l.progressArmed.CompareAndSwap(false, true) {
		l.progressTimer.Reset(progressInterval)
	}
}

func (l *Link) progress() {
	l.count.ProgressTicks.Add(1)
	l.rx.Lock()
	if l.receivers.Load() == 0 {
		l.poll()
	}
	l.rx.Unlock()
	l.mu.Lock()
	l.progressArmed.Store(false)
	if !l.closed.Load() {
		l.reap()
		now, waiting := time.Now(), false
		for _, p := range l.peers {
			if p != nil && p.state == peerUp {
				l.progressPeer(p, now)
				waiting = waiting || p.keepalive
			}
		}
		l.pump()
		if l.starvedPairs > 0 || waiting {
			l.armProgress()
		}
	}
	l.mu.Unlock()
	l.payCredit()
	l.callWritableIfRoom()
}

// progressPeer posts what waits, probes for credit that may be lost, and sends keepalives.
func (l *Link) progressPeer(p *peer, now time.Time) {
	for _, q := range [...]*pair{p.rc, p.uc} {
		if q.hasWork() {
			l.markReady(q)
		}
	}
	uc := p.uc
	if !p.rc.hasWork() && (!uc.hasWork() || uc.hasCredit()) {
		p.probedAt = time.Time{}
		return
	}
	if p.probedAt.IsZero() || p.answered.Swap(false) {
		p.answeredAt = now
	}
	if p.probedAt.IsZero() {
		p.probedAt = now
	}
	if now.Sub(p.probedAt) < probeInterval {
		return
	}
	p.probedAt = now
	if p.keepalive {
		p.answeredAt = now // the reliable pair detects a failure earlier
	}
	if p.sendKeepalive(); now.Sub(p.answeredAt) > maxUnanswered*l.config.Timeout {
		p.fail(errUnanswered)
		return
	}
	if uc.hasWork() && !uc.hasCredit() && int(uc.outstanding()) < l.config.sendDepth() && p.state == peerUp {
		r := uc.newRequest(0, sendEntry{block: -1})
		r.Operation, r.Immediate = verbs.SendImmediate, uc.immediate()
		l.count.Probes.Add(1)
		l.postAll(uc, 1)
	}
}

// sendKeepalive sends a message on the reliable pair. If the other end is gone, the retries
// run out and the connection goes down. mu is held.
func (p *peer) sendKeepalive() {
	if !p.keepalive && p.sendCredit(forKeepalive) {
		p.keepalive = true
		p.link.armProgress() // to handle the completion
	}
}

// sendCredit sends credit without a frame. It returns false if there is no room. mu is held.
func (p *peer) sendCredit(what purpose) bool {
	q := p.rc
	if p.state != peerUp {
		return false
	}
	if int(q.outstanding()) >= p.link.config.sendDepth() {
		if p.link.reap(); p.state != peerUp || int(q.outstanding()) >= p.link.config.sendDepth() {
			return false
		}
	}
	r := q.newRequest(0, sendEntry{block: -1, purpose: what})
	r.Operation, r.Immediate = verbs.SendImmediate, q.immediate()
	if what != forFrame {
		q.signal(r)
	}
	p.link.count.CreditsAlone.Add(1)
	p.link.postAll(q, 1)
	return true
}

// oweCredit notes that a peer is to receive its credit: the next receive or progress sends it.
// It may be called from any goroutine, also under Link.mu.
func (l *Link) oweCredit(p *peer) {
	if !p.creditOwed.Swap(true) {
		l.anyCreditOwed.Store(true)
	}
}

// payCredit sends credit to the peers that are owed some.
func (l *Link) payCredit() {
	if !l.anyCreditOwed.Load() {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed.Load() || !l.anyCreditOwed.Swap(false) {
		return
	}
	for _, p := range l.peers {
		if p == nil || !p.creditOwed.Swap(false) {
			continue
		}
		asked := p.creditAsked.Swap(false)
		if p.state != peerUp || !asked && !p.rc.owesCredit() && !p.uc.owesCredit() {
			continue // a frame has carried it since
		}
		if !p.sendCredit(forFrame) && p.state == peerUp {
			l.oweCredit(p)
			l.armProgress()
		}
	}
}

// pollIfIdle polls unless another goroutine receives.
func (l *Link) pollIfIdle() {
	if l.rx.TryLock() {
		l.poll()
		l.rx.Unlock()
		l.payCredit()
	}
}

// Writable calls f once Send may take frames again.
func (l *Link) Writable(f func()) {
	l.writableMu.Lock()
	l.writableCallbacks = append(l.writableCallbacks, f)
	l.writableMu.Unlock()
	l.callWritableIfRoom()
}

// callWritableIfRoom calls the callbacks of Writable unless a queue is still full.
func (l *Link) callWritableIfRoom() {
	l.writableMu.Lock()
	wanted := len(l.writableCallbacks) > 0
	l.writableMu.Unlock()
	if !wanted {
		return
	}
	l.mu.Lock()
	full := l.fullPair != nil && l.fullPair.queue.full() && l.fullPair.peer.state == peerUp && !l.closed.Load()
	l.mu.Unlock()
	if !full {
		l.callWritable()
	}
}

func (l *Link) callWritable() {
	l.writableMu.Lock()
	fs := l.writableCallbacks
	l.writableCallbacks = nil
	l.writableMu.Unlock()
	for _, f := range fs {
		f()
	}
}
