package ether

import (
	"sync"

	"github.com/p2pdc/p2pdc/microproto"
)

// classBytes are the buffer sizes: an ordinary frame, a jumbo frame, and the largest datagram
// before and after receive coalescing.
var classBytes = [...]int{2048, 10240, 65536}

const (
	smallClass = 0
	largeClass = len(classBytes) - 1
)

// pool is a bounded pool of buffers. Free buffers count towards the bound. They are reused
// last in, first out, so that few buffers stay in the cache.
type pool struct {
	mu      sync.Mutex
	free    [len(classBytes)][]*microproto.Buffer
	recycle [len(classBytes)]func(*microproto.Buffer)
	bytes   int // of all buffers, in use or free
	limit   int
	misses  uint64 // requests beyond the limit
}

func newPool(limit int) *pool {
	p := &pool{limit: limit}
	for c := range p.recycle {
		p.recycle[c] = func(b *microproto.Buffer) {
			p.mu.Lock()
			p.free[c] = append(p.free[c], b)
			p.mu.Unlock()
		}
	}
	return p
}

func classOf(n int) int {
	for c, size := range classBytes {
		if n <= size {
			return c
		}
	}
	return -1
}

// get returns a buffer of the class without references, or nil beyond the limit.
func (p *pool) get(class int) *microproto.Buffer {
	p.mu.Lock()
	defer p.mu.Unlock()
	if f := p.free[class]; len(f) > 0 {
		b := f[len(f)-1]
		f[len(f)-1] = nil
		p.free[class] = f[:len(f)-1]
		return b
	}
	size := classBytes[class]
	if p.bytes+size > p.limit && !p.trim(size) {
		p.misses++
		return nil
	}
	p.bytes += size
	return microproto.NewBuffer(make([]byte, size), p.recycle[class])
}

// trim drops free buffers of other classes until size more bytes fit, and reports whether they do.
func (p *pool) trim(size int) bool {
	for c := range p.free {
		for n := len(p.free[c]); n > 0 && p.bytes+size > p.limit; n-- {
			p.free[c][n-1] = nil
			p.free[c] = p.free[c][:n-1]
			p.bytes -= classBytes[c]
		}
	}
	return p.bytes+size <= p.limit
}

func (p *pool) missed() uint64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.misses
}
