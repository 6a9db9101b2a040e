package shm

import (
	"sync"
	"sync/atomic"

	"github.com/p2pdc/p2pdc/microproto"
)

// buffers is a bounded pool of private memory in sizes of powers of four.
type buffers struct {
	mu     sync.Mutex
	sizes  []bufferClass
	bytes  int // of all buffers, in use or free
	limit  int
	wanted atomic.Bool // a receiver waits for memory
	onFree func()      // called by put if wanted
}

type bufferClass struct {
	size int
	free []*microproto.Buffer // reused last in, first out, so that few stay in the cache
	put  func(*microproto.Buffer)
}

const smallestBuffer = 256

func (p *buffers) init(largest, limit int, onFree func()) {
	p.onFree = onFree
	p.limit = max(limit, 4*largest)
	for size := smallestBuffer; ; size *= 4 {
		size = min(size, max(largest, smallestBuffer))
		i := len(p.sizes)
		p.sizes = append(p.sizes, bufferClass{size: size, put: func(b *microproto.Buffer) { p.put(b, i) }})
		if size >= largest {
			return
		}
	}
}

// get returns a buffer of at least n bytes without references, nil at the bound. If the caller waits for
// memory, onFree is called once a buffer is free.
func (p *buffers) get(n int, waits bool) *microproto.Buffer {
	p.mu.Lock()
	defer p.mu.Unlock()
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
func (p *buffers) trim(size int) bool {
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

func (p *buffers) put(b *microproto.Buffer, class int) {
	p.mu.Lock()
	c := &p.sizes[class]
	c.free = append(c.free, b)
	wanted := p.wanted.Swap(false)
	p.mu.Unlock()
	if wanted {
		p.onFree()
	}
}
