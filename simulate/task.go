package simulate

import (
	"sync/atomic"
	"time"

	"github.com/p2pdc/p2pdc/solver/iterate"
)

// task is a relaxation that a worker may do while the engine continues. Virtual time passes, many
// windows of it, before the result is needed. Short latencies make windows too small for several
// threads, but relaxations do not have to wait for windows.
type task struct {
	stage atomic.Int32
	peer  Peer
	op    iterate.Op
	over  chan struct{}
}

// The stages of a task.
const (
	taskDone    int32 = iota // there is no task
	taskPlanned              // the first worker that is free takes it
	taskTaken
	taskAwaited // taken, and a goroutine waits for its end
)

// taskPoints is the number of points from which a relaxation is worth waking a thread, which takes
// some 10 µs.
const taskPoints = 1 << 14

// do does a task that has not been taken. It returns false if it has.
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

// sweepRelaxer is a peer that can relax a whole sweep when its first part is due. Many windows lie
// between the parts of a sweep, in which the blocks of other hosts replace the peer's in the caches.
type sweepRelaxer interface{ RelaxAhead(op iterate.Op) }

func relaxSweep(p Peer, op iterate.Op) {
	if f, ok := p.(sweepRelaxer); ok {
		f.RelaxAhead(op)
		return
	}
	p.Relax(op)
}

// deferredPeer is a peer whose relaxations are tasks. Every other method waits until the task is
// done, so the difference cannot be observed. The peer is not embedded, so that no method of it can
// be called directly.
type deferredPeer struct {
	task  task
	pool  *workerPool
	block int // points that the first part of a sweep relaxes, the others none; 0: each part relaxes its own
}

// deferRelaxations returns a peer whose relaxations are tasks of a pool.
func deferRelaxations(c *workerPool, p Peer, block int) *deferredPeer {
	d := &deferredPeer{pool: c, task: task{peer: p, over: make(chan struct{}, 1)}}
	if _, ok := p.(sweepRelaxer); ok {
		d.block = block
	}
	return d
}

// settled returns the peer when its task is done.
func (d *deferredPeer) settled() Peer {
	r := &d.task
	for r.stage.Load() != taskDone && !r.do() {
		if d.pool.steal() {
			continue // another task was done meanwhile
		}
		if r.stage.CompareAndSwap(taskTaken, taskAwaited) {
			<-r.over
		}
	}
	return r.peer
}

// relax starts a relaxation; first reports that a sweep begins with it.
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
	d.task.op = op
	d.task.stage.Store(taskPlanned)
	d.pool.plan(&d.task)
}

// Relax implements Peer.
func (d *deferredPeer) Relax(op iterate.Op) { d.relax(op, false) }

// Next implements Peer.
func (d *deferredPeer) Next(now time.Duration) iterate.Op { return d.settled().Next(now) }

// Pack implements Peer.
func (d *deferredPeer) Pack(op iterate.Op, dst []byte) { d.settled().Pack(op, dst) }

// Halo implements Peer.
func (d *deferredPeer) Halo(now time.Duration, q iterate.Rank, tag uint32, label uint64, data ...[]byte) error {
	return d.settled().Halo(now, q, tag, label, data...)
}

// Agree implements Peer.
func (d *deferredPeer) Agree(now time.Duration, q iterate.Rank, msg []byte) error {
	return d.settled().Agree(now, q, msg)
}

// Outcome implements Peer.
func (d *deferredPeer) Outcome() iterate.Outcome { return d.settled().Outcome() }

// Progress implements Peer.
func (d *deferredPeer) Progress() iterate.Progress { return d.settled().Progress() }

// Links implements Peer.
func (d *deferredPeer) Links() []iterate.Link { return d.settled().Links() }
