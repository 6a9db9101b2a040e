package simulate

import (
	"sync/atomic"
	"time"

	"github.com/p2pdc/p2pdc/solver/exchange"
	"github.com/p2pdc/p2pdc/solver/iterate"
)

// errand is a relaxation that a thread of the crew may do while the engine goes on: virtual time
// passes, many windows long, before anybody looks at what it gives. Where latencies are short
// windows are too small for several threads, but relaxations need not wait for windows.
type task struct {
	stage atomic.Int32
	peer  Peer
	op    iterate.Op
	over  chan struct{}
}

// The stages of an errand.
const (
	taskDone    int32 = iota // there is none
	taskPlanned              // whoever comes first does it
	taskTaken
	taskAwaited // taken, and somebody waits for its end
)

// errandPoints are the points from which a relaxation is worth the waking of a thread, some 10 µs.
const taskPoints = 1 << 14

// do does an errand that nobody has taken; false: somebody has.
func (r *task) do() bool {
	if !r.stage.CompareAndSwap(taskPlanned, taskTaken) {
		return false
	}
	relaxSweep(r.peer, r.op)
	if !r.stage.CompareAndSwap(taskTaken, taskDone) {
		r.stage.Store(taskDone)
		r.over <- struct{}{}
	}
	return true
}

// farsighted is a peer that can relax a whole sweep when the first part of it is due. Parts of
// one sweep are many windows apart, in which the other hosts' blocks take the caches.
type sweepRelaxer interface{ RelaxAhead(op iterate.Op) }

func relaxSweep(p Peer, op iterate.Op) {
	if f, ok := p.(sweepRelaxer); ok {
		f.RelaxAhead(op)
		return
	}
	p.Relax(op)
}

// deferring is a peer whose relaxations are errands. Whoever asks it for anything else waits until
// they are over, so nothing that can be seen of it is different. It is not embedded: no method of
// the peer may go by unnoticed.
type deferredPeer struct {
	errand task
	crew   *workerPool
	block  int // points that a sweep's first part relaxes, the others nothing; 0: each relaxes its own
}

// deferredBy has the relaxations of a peer done by a crew.
func deferRelaxations(c *workerPool, p Peer, block int) *deferredPeer {
	d := &deferredPeer{crew: c, errand: task{peer: p, over: make(chan struct{}, 1)}}
	if _, ok := p.(sweepRelaxer); ok {
		d.block = block
	}
	return d
}

// settled is the peer when its errand is over.
func (d *deferredPeer) settled() Peer {
	r := &d.errand
	for r.stage.Load() != taskDone && !r.do() {
		if d.crew.help() {
			continue // with another one meanwhile
		}
		if r.stage.CompareAndSwap(taskTaken, taskAwaited) {
			<-r.over
		}
	}
	return r.peer
}

// relax has an operation done; first tells that a sweep begins with it.
func (d *deferredPeer) relax(op iterate.Op, first bool) {
	p := d.settled()
	points := op.Points
	switch {
	case d.block > 0 && first:
		points = d.block
	case d.block > 0:
		points = 0
	}
	if points < taskPoints {
		relaxSweep(p, op)
		return
	}
	d.errand.op = op
	d.errand.stage.Store(taskPlanned)
	d.crew.plan(&d.errand)
}

// Relax implements problem.Peer.
func (d *deferredPeer) Relax(op iterate.Op) { d.relax(op, false) }

// Next implements problem.Peer.
func (d *deferredPeer) Next(now time.Duration) iterate.Op { return d.settled().Next(now) }

// Expects implements exchange.Expecter.
func (d *deferredPeer) Expects(q iterate.Rank) (tag uint32, ok bool) {
	if e, is := d.settled().(exchange.Expecter); is {
		return e.Expects(q)
	}
	return 0, false
}

// Pack implements problem.Peer.
func (d *deferredPeer) Pack(op iterate.Op, dst []byte) { d.settled().Pack(op, dst) }

// Halo implements problem.Peer.
func (d *deferredPeer) Halo(now time.Duration, q iterate.Rank, tag uint32, label uint64, data []byte) error {
	return d.settled().Halo(now, q, tag, label, data)
}

// Agree implements problem.Peer.
func (d *deferredPeer) Agree(now time.Duration, q iterate.Rank, msg []byte) error {
	return d.settled().Agree(now, q, msg)
}

// Outcome implements problem.Peer.
func (d *deferredPeer) Outcome() iterate.Outcome { return d.settled().Outcome() }

// Progress implements problem.Peer.
func (d *deferredPeer) Progress() iterate.Progress { return d.settled().Progress() }

// Links implements problem.Peer.
func (d *deferredPeer) Links() []iterate.Link { return d.settled().Links() }
