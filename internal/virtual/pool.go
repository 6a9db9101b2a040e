package virtual

import (
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/p2pdc/p2pdc/solver"
)

// pool relaxes on other processors what virtual time will want later. What a peer computes
// does not depend on when, so neither does the run.
type pool struct {
	once  sync.Once
	tasks chan *task
	wait  sync.WaitGroup
}

// task is a relaxation of one peer that is under way.
type task struct {
	peer  solver.Peer
	op    solver.Op
	state atomic.Int32
	open  bool // begun and not joined; the engine's
}

const (
	taskIdle int32 = iota
	taskQueued
	taskTaken
)

// worthwhile is the fewest points that another processor is asked for.
const worthwhile = 4096

// start begins a relaxation, or does it.
func (p *pool) start(t *task, peer solver.Peer, op solver.Op) {
	if op.Points < worthwhile || runtime.GOMAXPROCS(0) < 2 {
		peer.Relax(op)
		return
	}
	p.once.Do(p.open)
	t.peer, t.op, t.open = peer, op, true
	t.state.Store(taskQueued)
	select {
	case p.tasks <- t:
	default: // all are busy for long: it is done when it is wanted
	}
}

func (p *pool) open() {
	p.tasks = make(chan *task, 1<<12)
	for range runtime.GOMAXPROCS(0) - 1 {
		p.wait.Go(func() {
			for t := range p.tasks {
				t.do()
			}
		})
	}
}

// do relaxes unless somebody else does.
func (t *task) do() {
	if t.state.CompareAndSwap(taskQueued, taskTaken) {
		t.peer.Relax(t.op)
		t.state.Store(taskIdle)
	}
}

// join returns when the relaxation is done.
func (p *pool) join(t *task) {
	if !t.open {
		return
	}
	t.open = false
	t.do()
	for t.state.Load() != taskIdle {
		runtime.Gosched()
	}
}

func (p *pool) close() {
	if p.tasks != nil {
		close(p.tasks)
		p.wait.Wait()
	}
}
