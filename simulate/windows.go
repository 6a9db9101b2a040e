package simulate

import (
	"cmp"
	"context"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/p2pdc/p2pdc/microproto"
)

// Nothing that a process does reaches another one before a latency has passed. So all that
// happens before the next event of all and a latency beyond it, a window, is known when it
// begins: processes go through theirs in any order, on several threads (conservative
// synchronisation, after Chandy and Misra 1979). What they post is read when the next begins.

// window is the work of one.
type window struct {
	before  microproto.Instant
	work    []*process
	shares  []span
	done    atomic.Int64
	threads int
}

// share is the part of a window's work that one thread begins with.
type span struct {
	next atomic.Int64
	end  int64
	_    [48]byte // of a cache line of its own
}

// crew runs windows on several threads, and errands between them.
type workerPool struct {
	threads int  // that a window may have
	helpers bool // there is another thread
	calls   []chan *window
	errands chan *task
	over    chan struct{} // another thread has done the last of a window's work
	wait    sync.WaitGroup
}

// errandsMost is how many errands wait at most; one more is done by whoever needs it.
const maxTasks = 1 << 10

// alone is the most processes of a window that one thread does alone.
const serialProcesses = 8

// newCrew has windows run on so many threads, and errands on so many.
func newWorkerPool(threads, errands int) *workerPool {
	c := &workerPool{threads: threads, over: make(chan struct{}, 1), errands: make(chan *task, maxTasks),
		helpers: max(threads, errands) > 1}
	for k := 1; k < max(threads, errands); k++ {
		call := make(chan *window, 1)
		if k < threads {
			c.calls = append(c.calls, call)
		}
		c.wait.Go(func() { c.serve(k, call) })
	}
	return c
}

// serve is what thread k does.
func (c *workerPool) serve(k int, call chan *window) {
	for {
		select {
		case w := <-call:
			if w.help(k) {
				c.over <- struct{}{}
			}
		case r, more := <-c.errands:
			if !more {
				return
			}
			r.do()
		}
	}
}

// plan has an errand done by whoever has time; where too many wait, by whoever needs it.
func (c *workerPool) plan(r *task) {
	select {
	case c.errands <- r:
	default:
	}
}

// help does an errand that waits, if there is one.
func (c *workerPool) help() bool {
	select {
	case r, more := <-c.errands:
		return more && r.do()
	default:
		return false
	}
}

func (c *workerPool) close() {
	close(c.errands)
	c.wait.Wait()
}

// run does a window's work and returns when it is done.
func (c *workerPool) run(work []*process, before microproto.Instant) {
	if c.threads == 1 || len(work) <= serialProcesses {
		for _, p := range work {
			p.scheduleInbox()
			p.run(before)
		}
		return
	}
	w := &window{before: before, work: work, threads: c.threads, shares: make([]span, c.threads)}
	for k := range w.shares {
		w.shares[k].next.Store(int64(k * len(work) / c.threads))
		w.shares[k].end = int64((k + 1) * len(work) / c.threads)
	}
	for _, call := range c.calls {
		select {
		case <-call: // it was still asleep; that window is over
		default:
		}
		call <- w
	}
	if !w.help(0) {
		c.finish()
	}
}

// patience is how often a thread looks for the end of a window before it sleeps: some 20 µs. Where
// others want the processors, the one that it would keep may be what the last thread waits for.
const spinRounds = 1 << 12

// finish waits until another thread has done the last of a window's work.
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

// help does the work of share k, then what is left of the others'. It tells whether it did the last.
func (w *window) help(k int) (last bool) {
	for i := range w.threads {
		s := &w.shares[(k+i)%w.threads]
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

// watchEvery is how often processes run between two looks at the context and calls of Watch.
const watchEvery = 1 << 14

// threads are those that windows run on, and those that do errands.
func (e *engine) threads() (windows, errands int) {
	errands = min(cmp.Or(e.run.Threads, runtime.GOMAXPROCS(0)), len(e.hosts))
	if windows = max(1, min(errands, len(e.hosts)/4)); e.sharesCores() {
		windows = 1
	}
	return windows, errands
}

// loop plays the run to its end.
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

// order is a heap of processes by when they have something to do.
type processHeap struct {
	heap []int32
	at   []int32 // by process: index in the heap + 1; 0: it is not there
	when []microproto.Instant
}

func (o *processHeap) init(n int) { o.at, o.when = make([]int32, n), make([]microproto.Instant, n) }

// first is when the first of all has something to do.
func (o *processHeap) first() microproto.Instant {
	if len(o.heap) == 0 {
		return microproto.Never
	}
	return o.when[o.heap[0]]
}

// take removes the first; there must be one.
func (o *processHeap) take() int32 {
	p := o.heap[0]
	o.set(p, microproto.Never)
	return p
}

// set says when a process has something to do.
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

// place puts a process where it belongs, from place i on.
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

func until(d time.Duration) time.Duration {
	if d == 0 {
		return forever
	}
	return d
}
