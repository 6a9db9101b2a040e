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

// watchEvery is how often processes run between two checks of the context and calls of Watch.
const watchEvery = 1 << 14

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
	defer e.pool.close()
	for runs := watchEvery; !e.stopped; runs += 1 + len(e.work) {
		if runs >= watchEvery {
			runs = 0
			if err := ctx.Err(); err != nil {
				e.finish(e.latest())
				return err
			}
			e.watch()
		}
		next, at := e.order.first(), e.nextChange()
		if next >= e.end {
			e.expire()
			break
		}
		if at <= next && at != microproto.Never {
			e.applyChange()
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
		for e.order.first() < before {
			e.work = append(e.work, e.processes[e.order.take()])
		}
		slices.SortFunc(e.work, func(a, b *process) int { return int(a.index - b.index) })
		e.pool.run(e.work, before)
		for _, p := range e.work {
			e.order.set(p.index, p.readInbox())
			for _, to := range p.mailed {
				e.order.set(to, e.processes[to].readInbox())
			}
			p.mailed = p.mailed[:0]
		}
		e.observe()
	}
	return e.fault
}

// processHeap is a heap of processes, by when they have something to do.
type processHeap struct {
	heap []int32
	at   []int32 // by process: index in the heap + 1; 0: not in the heap
	when []microproto.Instant
}

func (o *processHeap) init(n int) { o.at, o.when = make([]int32, n), make([]microproto.Instant, n) }

// first returns when the first process has something to do.
func (o *processHeap) first() microproto.Instant {
	if len(o.heap) == 0 {
		return microproto.Never
	}
	return o.when[o.heap[0]]
}

// take removes and returns the first process; there must be one.
func (o *processHeap) take() int32 {
	p := o.heap[0]
	o.set(p, microproto.Never)
	return p
}

// set sets when a process has something to do.
func (o *processHeap) set(p int32, when microproto.Instant) {
	i := int(o.at[p]) - 1
	o.when[p] = when
	switch {
	case i < 0 && when == microproto.Never:
		return
	case i < 0:
		o.heap = append(o.heap, p)
		i = len(o.heap) - 1
	case when == microproto.Never:
		last := len(o.heap) - 1
		o.at[p] = 0
		q := o.heap[last]
		o.heap = o.heap[:last]
		if i == last {
			return
		}
		p = q
	}
	o.place(i, p)
}

// place moves a process to its place in the heap, starting from index i.
func (o *processHeap) place(i int, p int32) {
	h, when := o.heap, o.when[p]
	for i > 0 && when < o.when[h[(i-1)/4]] {
		h[i] = h[(i-1)/4]
		o.at[h[i]] = int32(i + 1)
		i = (i - 1) / 4
	}
	for {
		child := 4*i + 1
		if child >= len(h) {
			break
		}
		least := child
		for c := child + 1; c < min(child+4, len(h)); c++ {
			if o.when[h[c]] < o.when[h[least]] {
				least = c
			}
		}
		if o.when[h[least]] >= when {
			break
		}
		h[i] = h[least]
		o.at[h[i]] = int32(i + 1)
		i = least
	}
	h[i], o.at[p] = p, int32(i+1)
}
