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
	tendEvery  = time.Millisecond
	probeEvery = 20 * time.Millisecond
	// patience is for how many of Config.Timeout a peer may leave the question for
	// credit unanswered that reaches it: it may have stopped for a while.
	patience = 5
)

var errQuiet = errors.New("the other end does not answer when it is asked for credit")

// tendSoon has tend run. From anywhere.
func (l *Link) tendSoon() {
	if !l.closed.Load() && l.tending.CompareAndSwap(false, true) {
		l.tender.Reset(tendEvery)
	}
}

func (l *Link) tend() {
	l.count.tended.Add(1)
	l.rx.Lock()
	if !l.closed.Load() && l.receivers.Load() == 0 {
		l.poll()
	}
	l.rx.Unlock()
	l.mu.Lock()
	l.tending.Store(false)
	if !l.closed.Load() {
		l.reap()
		now, waiting := time.Now(), false
		for _, p := range l.peers {
			if p != nil && p.state == peerUp {
				l.tendPeer(p, now)
				waiting = waiting || p.proof
			}
		}
		l.pump()
		if l.starvedPairs > 0 || waiting {
			l.tendSoon()
		}
	}
	l.mu.Unlock()
	l.payCredit()
	l.callWriters()
}

// tendPeer asks a peer for credit that may have been lost, and whether it is there.
func (l *Link) tendPeer(p *peer, now time.Time) {
	for _, q := range [...]*pair{p.rc, p.uc} {
		if q.hasWork() {
			l.touch(q)
		}
	}
	uc := p.uc
	if !p.rc.hasWork() && (!uc.hasWork() || uc.hasCredit()) {
		p.probe = time.Time{}
		return
	}
	if p.probe.IsZero() || p.heard.Swap(false) {
		p.quiet = now
	}
	if p.probe.IsZero() {
		p.probe = now
	}
	if now.Sub(p.probe) < probeEvery {
		return
	}
	p.probe = now
	if p.proof {
		p.quiet = now // the reliable pair finds out first
	}
	if p.prove(); now.Sub(p.quiet) > patience*l.config.Timeout {
		p.fail(errQuiet)
		return
	}
	if uc.hasWork() && !uc.hasCredit() && int(uc.outstanding()) < l.config.depth() && p.state == peerUp {
		r := uc.begin(0, posted{block: -1})
		r.Operation, r.Immediate = verbs.SendImmediate, uc.immediate()
		l.count.probes.Add(1)
		l.postAll(uc, 1)
	}
}

// prove asks the reliable pair whether the other end is there: if it is not, its retries
// run out and the connection is down. mu is held.
func (p *peer) prove() {
	if !p.proof && p.tell(forProof) {
		p.proof = true
		p.link.tendSoon() // to see the answer
	}
}

// tell sends credit alone. false: there is no room for it now. mu is held.
func (p *peer) tell(what request) bool {
	q := p.rc
	if p.state != peerUp {
		return false
	}
	if int(q.outstanding()) >= p.link.config.depth() {
		if p.link.reap(); p.state != peerUp || int(q.outstanding()) >= p.link.config.depth() {
			return false
		}
	}
	r := q.begin(0, posted{block: -1, what: what})
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
	if !p.owed.Swap(true) {
		l.owing.Store(true)
	}
}

// payCredit tells the peers that are owed.
func (l *Link) payCredit() {
	if !l.owing.Load() {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed.Load() || !l.owing.Swap(false) {
		return
	}
	for _, p := range l.peers {
		if p == nil || !p.owed.Swap(false) {
			continue
		}
		if asked := p.asked.Swap(false); !asked && !p.rc.owes() && !p.uc.owes() || p.state != peerUp {
			continue // a frame has told since
		}
		if !p.tell(forFrame) && p.state == peerUp {
			l.oweCredit(p)
			l.tendSoon()
		}
	}
}

// help polls where nobody receives.
func (l *Link) help() {
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
	l.writersMu.Lock()
	l.writers = append(l.writers, f)
	l.writersMu.Unlock()
	l.callWriters()
}

// callWriters calls those who wait for room, if there is some.
func (l *Link) callWriters() {
	l.writersMu.Lock()
	wanted := len(l.writers) > 0
	l.writersMu.Unlock()
	if !wanted {
		return
	}
	l.mu.Lock()
	full := l.refused != nil && l.refused.queue.full() && l.refused.peer.state == peerUp && !l.closed.Load()
	l.mu.Unlock()
	if !full {
		l.fireWriters()
	}
}

func (l *Link) fireWriters() {
	l.writersMu.Lock()
	fs := l.writers
	l.writers = nil
	l.writersMu.Unlock()
	for _, f := range fs {
		f()
	}
}
