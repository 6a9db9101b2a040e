package ib

import (
	"sync"

	"github.com/p2pdc/p2pdc/microproto"
)

// buffers is a bounded store of private memory, into which received frames are copied.
type buffers struct {
	mu     sync.Mutex
	free   []*microproto.Buffer // last in, first out: few of them, and warm
	size   int
	made   int
	limit  int
	wanted bool   // somebody waits for one
	onFree func() // him, when one is given back
}

func (p *buffers) init(size, bytes int, call func()) {
	p.size, p.limit, p.onFree = size, max(4, bytes/size), call
}

// take returns a buffer without references; nil at the bound: then there is a call when
// there is one.
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
	short := p.wanted
	p.wanted = false
	p.mu.Unlock()
	if short {
		p.onFree()
	}
}
