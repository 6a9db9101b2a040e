package simulate

import (
	"cmp"
	"context"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/p2pdc/p2pdc/microproto"
)

// An action of a process reaches another process only after a latency. So all events between the
// next event of all and a latency later, a window, are known when the window begins. Processes run
// through the window in any order, on several threads (conservative synchronisation, after Chandy
// and Misra 1979). The events that they post are read when the next window begins.

// window is the work of one window.
type window struct {
	before microproto.Instant
	work   []*process
	shares []span // by thread
	done   atomic.Int64
}

// span is the part of a window's work with which one thread begins.
type span struct {
	next atomic.Int64
	end  int64
	_    [48]byte // padding to a cache line
}

// workerPool runs windows on several threads, and tasks between them.
type workerPool struct {
	threads int  // that a window may use
	helpers bool // there is more than one thread
	calls   []chan *window
	tasks   chan *task
	over    chan struct{} // another thread has done the last work of a window
	wait    sync.WaitGroup
}

// maxTasks bounds the tasks that wait. A task more is done when its result is needed.
const maxTasks = 1 << 10

// serialProcesses is the largest number of processes of a window that one thread runs alone.
const serialProcesses = 8

// newWorkerPool returns a pool with so many threads for windows and for tasks.
func newWorkerPool(threads, tasks int) *workerPool {
	c := &workerPool{threads: threads, over: make(chan struct{}, 1), tasks: make(chan *task, maxTasks),
		helpers: max(threads, tasks) > 1}
	for k := 1; k < max(threads, tasks); k++ {
		call := make(chan *window, 1)
		if k < threads {
			c.calls = append(c.calls, call)
		}
		c.wait.Go(func() { c.serve(k, call) })
	}
	return c
}

// serve is the loop of thread k.
func (c *workerPool) serve(k int, call chan *window) {
	for {
		select {
		case w := <-call:
			if w.share(k) {
				c.over <- struct{}{}
			}
		case r, more := <-c.tasks:
			if !more {
				return
			}
			r.do()
		}
	}
}

// plan queues a task. If the queue is full, the task is done when its result is needed.
func (c *workerPool) plan(r *task) {
	select {
	case c.tasks <- r:
	default:
	}
}

// steal does a task of the queue, if there is one.
func (c *workerPool) steal() bool {
	select {
	case r, more := <-c.tasks:
		return more && r.do()
	default:
		return false
	}
}

func (c *workerPool) close() {
	close(c.tasks)
	c.wait.Wait()
}

// run does a window's work and returns when that is done.
func (c *workerPool) run(work []*process, before microproto.Instant) {
	if c.threads == 1 || len(work) <= serialProcesses {
		for _, p := range work {
			p.scheduleInbox()
			p.run(before)
		}
		return
	}
	w := &window{before: before, work: work, shares: make([]span, c.threads)}
	for k := range w.shares {
		w.shares[k].next.Store(int64(k * len(work) / c.threads))
		w.shares[k].end = int64((k + 1) * len(work) / c.threads)
	}
	for _, call := range c.calls {
		select {
		case <-call: // the thread was still asleep; that window is over
		default:
		}
		call <- w
	}
	if !w.share(0) {
		c.finish()
	}
}

// spinRounds is how often a thread polls for the end of a window before it sleeps, some 20 µs. On a
// busy machine, a thread that spins may keep the processor that the last thread needs.
const spinRounds = 1 << 12

// finish waits until another thread has done the last work of a window.
func (c *workerPool) finish() {
	for range spinRounds {
		select {
		case <-c.over:
			return
		default:
		}
	}
	<-c.over
}

// share does the work of span k, then work of other spans that no thread has begun. It reports whether
// it did the last work.
func (w *window) share(k int) (last bool) {
	for i := range w.shares {
		s := &w.shares[(k+i)%len(w.shares)]
		for {
			n := s.next.Add(1) - 1
			if n >= s.end {
				break
			}
			p := w.work[n]
			p.scheduleInbox()
			p.run(w.before)
			last = w.done.Add(1) == int64(len(w.work))
		}
	}
	return last
}

// watchEvery is how often processes run between two calls of Watch.
var watchEvery = 1 << 12 // smaller in a test

// threads returns how many threads run windows, and how many do tasks.
func (e *engine) threads() (windows, tasks int) {
	tasks = min(cmp.Or(e.run.Threads, runtime.GOMAXPROCS(0)), len(e.hosts))
	if windows = max(1, min(tasks, len(e.hosts)/4)); e.sharesCores() {
		windows = 1
	}
	return windows, tasks
}

// loop simulates to the end of the run.
func (e *engine) loop(ctx context.Context) error {
	ended := ctx.Done() // asked in every window: where sweeps are short, one has thousands
	for runs := watchEvery; !e.stopped; runs += 1 + len(e.work) {
		select {
		case <-ended:
			e.finish(e.latest())
			return ctx.Err()
		default:
		}
		if runs >= watchEvery {
			runs = 0
			if err := e.crowded(); err != nil {
				return err
			}
			e.watch()
		}
		next, at := e.order.First(), e.nextChange()
		if e.recovery.active && e.recovery.frozen {
			next = microproto.Never
		}
		if min(next, at) >= e.end {
			e.expire()
			continue
		}
		if at <= next && at != microproto.Never {
			if e.applyChange(at); !e.stopped {
				e.observe()
			}
			continue
		}
		if next == microproto.Never {
			return e.stuck()
		}
		if err := e.evaluate(next); err != nil {
			return err
		}
		before := min(next.Add(e.lookahead), at, e.end)
		if e.run.Evaluate && len(e.processes) == 1 { // a window without an end
			before = min(before, max(e.evaluation.next, next+1))
		}
		e.work = e.work[:0]
		for e.order.First() < before {
			e.work = append(e.work, e.processes[e.order.Take()])
		}
		slices.SortFunc(e.work, func(a, b *process) int { return int(a.index - b.index) })
		e.pool.run(e.work, before)
		for _, p := range e.work {
			e.order.Set(p.index, p.readInbox())
			for _, to := range p.mailed {
				e.order.Set(to, e.processes[to].readInbox())
			}
			p.mailed = p.mailed[:0]
		}
		e.observe()
	}
	return e.fault
}
