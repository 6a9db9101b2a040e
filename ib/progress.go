package ib

import (
	"errors"
	"time"

	"github.com/p2pdc/p2pdc/ib/internal/verbs"
)

// What waits is normally set free by whoever receives. Where nobody does, and where
// credit was lost with the frame that it would have come for, a timer looks after it;
// it runs only while something waits.
const (
	progressInterval = time.Millisecond
	probeInterval    = 20 * time.Millisecond
	// patience is for how many of Config.Timeout a peer may leave the question for
	// credit unanswered that reaches it: it may have stopped for a while.
	maxUnanswered = 5
)

var errUnanswered = errors.New("the other end does not answer when it is asked for credit")

// tendSoon has tend run. From anywhere.
func (l *Link) armProgress() {
	if !l.closed.Load() && l.progressArmed.CompareAndSwap(false, true) {
		l.progressTimer.Reset(progressInterval)
	}
}

func (l *Link) progress() {
	l.count.progressTicks.Add(1)
	l.rx.Lock()
	if !l.closed.Load() && l.receivers.Load() == 0 {
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

// tendPeer asks a peer for credit that may have been lost, and whether it is there.
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
		p.answeredAt = now // the reliable pair finds out first
	}
	if p.sendKeepalive(); now.Sub(p.answeredAt) > maxUnanswered*l.config.Timeout {
		p.fail(errUnanswered)
		return
	}
	if uc.hasWork() && !uc.hasCredit() && int(uc.outstanding()) < l.config.sendDepth() && p.state == peerUp {
		r := uc.newRequest(0, sendEntry{block: -1})
		r.Operation, r.Immediate = verbs.SendImmediate, uc.immediate()
		l.count.probes.Add(1)
		l.postAll(uc, 1)
	}
}

// prove asks the reliable pair whether the other end is there: if it is not, its retries
// run out and the connection is down. mu is held.
func (p *peer) sendKeepalive() {
	if !p.keepalive && p.sendCredit(forKeepalive) {
		p.keepalive = true
		p.link.armProgress() // to see the answer
	}
}

// tell sends credit alone. false: there is no room for it now. mu is held.
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
		r.Signaled, q.unsignaled = true, 0
	}
	p.link.count.creditsAlone.Add(1)
	p.link.postAll(q, 1)
	return true
}

// oweCredit has a peer told its credit, by who comes by next or by tend. From anywhere,
// also under Link.mu.
func (l *Link) oweCredit(p *peer) {
	if !p.creditOwed.Swap(true) {
		l.anyCreditOwed.Store(true)
	}
}

// payCredit tells the peers that are owed.
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
		if asked := p.creditAsked.Swap(false); !asked && !p.rc.owesCredit() && !p.uc.owesCredit() || p.state != peerUp {
			continue // a frame has told since
		}
		if !p.sendCredit(forFrame) && p.state == peerUp {
			l.oweCredit(p)
			l.armProgress()
		}
	}
}

// help polls where nobody receives.
func (l *Link) pollIfIdle() {
	if l.rx.TryLock() {
		if !l.closed.Load() {
			l.poll()
		}
		l.rx.Unlock()
		l.payCredit()
	}
}

// Writable calls f when Send takes frames again.
func (l *Link) Writable(f func()) {
	l.writableMu.Lock()
	l.writableCallbacks = append(l.writableCallbacks, f)
	l.writableMu.Unlock()
	l.callWritableIfRoom()
}

// callWriters calls those who wait for room, if there is some.
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
