package ib

import (
	"sync"

	"github.com/p2pdc/p2pdc/microproto"
)

// buffers is a bounded pool of unregistered memory for copies of received frames.
type buffers struct {
	mu     sync.Mutex
	free   []*microproto.Buffer // reused last in, first out, so that few stay in the cache
	size   int
	made   int
	limit  int
	wanted bool   // get has failed since the last put
	onFree func() // called by put if wanted
}

func (p *buffers) init(size, bytes int, onFree func()) {
	p.size, p.onFree = size, onFree
	p.limit = max(4, bytes/size)
}

// get returns a buffer without references. At the bound it returns nil, and onFree is called
// once a buffer is free.
func (p *buffers) get() *microproto.Buffer {
	p.mu.Lock()
	defer p.mu.Unlock()
	if n := len(p.free); n > 0 {
		b := p.free[n-1]
		p.free[n-1] = nil
		p.free = p.free[:n-1]
		return b
	}
	if p.made == p.limit {
		p.wanted = true
		return nil
	}
	p.made++
	return microproto.NewBuffer(make([]byte, p.size), p.put)
}

func (p *buffers) put(b *microproto.Buffer) {
	p.mu.Lock()
	p.free = append(p.free, b)
	wanted := p.wanted
	p.wanted = false
	p.mu.Unlock()
	if wanted {
		p.onFree()
	}
}
