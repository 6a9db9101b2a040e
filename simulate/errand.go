package simulate

import (
	"sync/atomic"
	"time"

	"github.com/p2pdc/p2pdc/solver/iterate"
	"github.com/p2pdc/p2pdc/solver/problem"
)

// errand is a relaxation that a thread of the crew may do while the engine goes on: virtual time
// passes, many windows long, before anybody looks at what it gives. Where latencies are short
// windows are too small for several threads, but relaxations need not wait for windows.
type errand struct {
	stage atomic.Int32
	peer  problem.Peer
	op    iterate.Op
	over  chan struct{}
}

// The stages of an errand.
const (
	errandOver    int32 = iota // there is none
	errandPlanned              // whoever comes first does it
	errandTaken
	errandAwaited // taken, and somebody waits for its end
)

// errandPoints are the points from which a relaxation is worth the waking of a thread, some 10 µs.
const errandPoints = 1 << 14

// do does an errand that nobody has taken; false: somebody has.
func (r *errand) do() bool {
	if !r.stage.CompareAndSwap(errandPlanned, errandTaken) {
		return false
	}
	relaxAhead(r.peer, r.op)
	if !r.stage.CompareAndSwap(errandTaken, errandOver) {
		r.stage.Store(errandOver)
		r.over <- struct{}{}
	}
	return true
}

// farsighted is a peer that can relax a whole sweep when the first part of it is due. Parts of
// one sweep are many windows apart, in which the other hosts' blocks take the caches.
type farsighted interface{ RelaxAhead(op iterate.Op) }

func relaxAhead(p problem.Peer, op iterate.Op) {
	if f, ok := p.(farsighted); ok {
		f.RelaxAhead(op)
		return
	}
	p.Relax(op)
}

// deferring is a peer whose relaxations are errands. Whoever asks it for anything else waits until
// they are over, so nothing that can be seen of it is different. It is not embedded: no method of
// the peer may go by unnoticed.
type deferring struct {
	errand errand
	crew   *crew
	block  int // points that a sweep's first part relaxes, the others nothing; 0: each relaxes its own
}

// deferredBy has the relaxations of a peer done by a crew.
func deferredBy(c *crew, p problem.Peer) *deferring {
	d := &deferring{crew: c, errand: errand{peer: p, over: make(chan struct{}, 1)}}
	if _, ok := p.(farsighted); ok {
		d.block = p.Box().Points()
	}
	return d
}

// settled is the peer when its errand is over.
func (d *deferring) settled() problem.Peer {
	r := &d.errand
	for r.stage.Load() != errandOver && !r.do() {
		if d.crew.help() {
			continue // with another one meanwhile
		}
		if r.stage.CompareAndSwap(errandTaken, errandAwaited) {
			<-r.over
		}
	}
	return r.peer
}

// relax has an operation done; first tells that a sweep begins with it.
func (d *deferring) relax(op iterate.Op, first bool) {
	p := d.settled()
	points := op.Points
	switch {
	case d.block > 0 && first:
		points = d.block
	case d.block > 0:
		points = 0
	}
	if points < errandPoints {
		relaxAhead(p, op)
		return
	}
	d.errand.op = op
	d.errand.stage.Store(errandPlanned)
	d.crew.plan(&d.errand)
}

// Relax implements problem.Peer.
func (d *deferring) Relax(op iterate.Op) { d.relax(op, false) }

// Next implements problem.Peer.
func (d *deferring) Next(now time.Duration) iterate.Op { return d.settled().Next(now) }

// Pack implements problem.Peer.
func (d *deferring) Pack(op iterate.Op, dst []byte) { d.settled().Pack(op, dst) }

// Halo implements problem.Peer.
func (d *deferring) Halo(now time.Duration, q iterate.Rank, tag uint32, label uint64, data []byte) error {
	return d.settled().Halo(now, q, tag, label, data)
}

// Agree implements problem.Peer.
func (d *deferring) Agree(now time.Duration, q iterate.Rank, msg []byte) error {
	return d.settled().Agree(now, q, msg)
}

// Stop implements problem.Peer.
func (d *deferring) Stop(now time.Duration, why iterate.Reason) { d.settled().Stop(now, why) }

// Outcome implements problem.Peer.
func (d *deferring) Outcome() iterate.Outcome { return d.settled().Outcome() }

// Progress implements problem.Peer.
func (d *deferring) Progress() iterate.Progress { return d.settled().Progress() }

// Solution implements problem.Peer.
func (d *deferring) Solution(dst []float64) { d.settled().Solution(dst) }

// Box implements problem.Peer.
func (d *deferring) Box() problem.Box { return d.settled().Box() }

// Links implements problem.Peer.
func (d *deferring) Links() []iterate.Link { return d.settled().Links() }

// Describe implements problem.Peer.
func (d *deferring) Describe() string { return d.settled().Describe() }
