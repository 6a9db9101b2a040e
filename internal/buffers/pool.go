// Package buffers is a bounded pool of memory for the frames of a link.
package buffers

import (
	"sync"
	"sync/atomic"

	"github.com/p2pdc/p2pdc/microproto"
)

// Pool is a bounded pool of memory in several sizes. Its methods may be called from several goroutines.
type Pool struct {
	mu     sync.Mutex
	sizes  []class
	bytes  int // of all buffers, in use or free
	used   int // bytes of the buffers in use
	limit  int
	wanted atomic.Bool // a receiver waits for memory; written under mu
	onFree func()      // called by put if wanted
}

type class struct {
	size int
	free []*microproto.Buffer // reused last in, first out, so that few stay in the cache
	put  func(*microproto.Buffer)
}

const smallest = 256

// Sizes returns powers of four for Init, and the size of the largest buffer at their end.
func Sizes(largest int) (sizes []int) {
	for size := smallest; size < largest; size *= 4 {
		sizes = append(sizes, size)
	}
	return append(sizes, max(largest, smallest))
}

// Init sets the pool up for buffers of the sizes, in increasing order, and limit bytes in all. Buffers in use and free
// ones count. onFree is called, from any goroutine, when a buffer is free that a Get had waited for.
func (p *Pool) Init(sizes []int, limit int, onFree func()) {
	p.limit, p.onFree = limit, onFree
	for i, size := range sizes {
		p.sizes = append(p.sizes, class{size: size, put: func(b *microproto.Buffer) { p.put(b, i) }})
	}
}

// Get returns a buffer of at least n bytes without references, nil at the bound. If the caller waits for
// memory, onFree is called once a buffer is free. The buffer returns to the pool with its last reference. It is scarce
// if more than half of the pool is in use: the rest is not for messages that wait for their users.
func (p *Pool) Get(n int, waits bool) *microproto.Buffer {
	p.mu.Lock()
	defer p.mu.Unlock()
	b := p.take(n, waits)
	if b != nil {
		p.used += len(b.Bytes)
		b.Scarce = p.used > p.limit/2
	}
	return b
}

func (p *Pool) take(n int, waits bool) *microproto.Buffer {
	i := 0
	for p.sizes[i].size < n {
		i++
	}
	c := &p.sizes[i]
	if k := len(c.free); k > 0 {
		b := c.free[k-1]
		c.free[k-1] = nil
		c.free = c.free[:k-1]
		return b
	}
	if p.bytes+c.size > p.limit && !p.trim(c.size) {
		if waits {
			p.wanted.Store(true)
		}
		return nil
	}
	p.bytes += c.size
	return microproto.NewBuffer(make([]byte, c.size), c.put)
}

// trim drops free buffers until size more bytes fit, and reports whether they do.
func (p *Pool) trim(size int) bool {
	for i := range p.sizes {
		c := &p.sizes[i]
		for k := len(c.free); k > 0 && p.bytes+size > p.limit; k-- {
			c.free[k-1] = nil
			c.free = c.free[:k-1]
			p.bytes -= c.size
		}
	}
	return p.bytes+size <= p.limit
}

// Extend raises the bound by so many bytes.
func (p *Pool) Extend(bytes int) {
	p.mu.Lock()
	p.limit += bytes
	p.mu.Unlock()
}

// Exhausted reports whether a caller of Get waits for memory.
func (p *Pool) Exhausted() bool { return p.wanted.Load() }

func (p *Pool) put(b *microproto.Buffer, class int) {
	p.mu.Lock()
	c := &p.sizes[class]
	c.free = append(c.free, b)
	p.used -= len(b.Bytes)
	wanted := p.wanted.Load()
	if wanted {
		p.wanted.Store(false)
	}
	p.mu.Unlock()
	if wanted {
		p.onFree()
	}
}
