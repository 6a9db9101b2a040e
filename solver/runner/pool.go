package runner

import (
	"runtime"
	"sync/atomic"
)

// Pool is a problem.Executor of several threads: the caller's goroutine, and helpers that live until
// Close. For allocates nothing. One caller may use it at a time.
type Pool struct {
	helpers []*helper
	spin    int // rounds of polling before a helper sleeps

	f    func(int)
	n    int64
	next atomic.Int64
	left atomic.Int32 // helpers still at work
	done chan struct{}
}

var _ interface{ For(int, func(int)) } = (*Pool)(nil)

// helper is one goroutine. Its state carries orders, and the channel only wakes it from sleep.
type helper struct {
	state atomic.Uint32
	wake  chan struct{}
	_     [48]byte // padding to a cache line
}

const (
	helperIdle = iota // polling for work
	helperAsleep
	helperWork
	helperQuit
)

// spinRounds takes a few microseconds.
const spinRounds = 2000

// NewPool starts threads−1 helpers. Between two calls of For they poll for a short while if the
// machine has more cores than threads, and block at once otherwise.
func NewPool(threads int) *Pool {
	spin := 0
	if runtime.GOMAXPROCS(0) > threads {
		spin = spinRounds
	}
	return newPool(threads, spin)
}

func newPool(threads, spin int) *Pool {
	p := &Pool{spin: spin, done: make(chan struct{}, 1)}
	for range threads - 1 {
		h := &helper{wake: make(chan struct{}, 1)}
		p.helpers = append(p.helpers, h)
		go p.help(h)
	}
	return p
}

// Threads returns the number of goroutines that share the work. Kernels divide their work accordingly.
func (p *Pool) Threads() int { return len(p.helpers) + 1 }

// For implements problem.Executor.
func (p *Pool) For(n int, f func(i int)) {
	k := min(len(p.helpers), n-1)
	if k <= 0 {
		for i := range n {
			f(i)
		}
		return
	}
	p.f, p.n = f, int64(n)
	p.next.Store(0)
	p.left.Store(int32(k))
	for _, h := range p.helpers[:k] {
		h.order(helperWork)
	}
	p.work()
	for i := 0; i < p.spin && p.left.Load() != 0; i++ {
		continue
	}
	<-p.done
	p.f = nil
}

// Close ends the helpers. For must not be running, nor be called again.
func (p *Pool) Close() {
	for _, h := range p.helpers {
		h.order(helperQuit)
	}
	p.helpers = nil
}

func (p *Pool) work() {
	for {
		i := p.next.Add(1) - 1
		if i >= p.n {
			return
		}
		p.f(int(i))
	}
}

func (h *helper) order(state uint32) {
	if h.state.Swap(state) == helperAsleep {
		h.wake <- struct{}{}
	}
}

func (p *Pool) help(h *helper) {
	for {
		switch h.await(p.spin) {
		case helperQuit:
			return
		case helperWork:
			p.work()
			// The state must be idle before the last helper releases the caller, which may order again at once.
			h.state.Store(helperIdle)
			if p.left.Add(-1) == 0 {
				p.done <- struct{}{}
			}
		}
	}
}

// await returns an order.
func (h *helper) await(spin int) uint32 {
	for range spin {
		if s := h.state.Load(); s != helperIdle {
			return s
		}
	}
	if h.state.CompareAndSwap(helperIdle, helperAsleep) {
		<-h.wake
	}
	return h.state.Load()
}
