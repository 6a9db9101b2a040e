package ib

import (
	"sync"

	"github.com/p2pdc/p2pdc/microproto"
)

// buffers is a bounded store of private memory, into which received frames are copied.
type buffers struct {
	mu    sync.Mutex
	free  []*microproto.Buffer // last in, first out: few of them, and warm
	size  int
	made  int
	limit int
	short bool   // somebody waits for one
	call  func() // him, when one is given back
}

func (p *buffers) init(size, bytes int, call func()) {
	p.size, p.limit, p.call = size, max(4, bytes/size), call
}

// take returns a buffer without references; nil at the bound: then there is a call when
// there is one.
func (p *buffers) take() *microproto.Buffer {
	p.mu.Lock()
	defer p.mu.Unlock()
	if n := len(p.free); n > 0 {
		b := p.free[n-1]
		p.free[n-1] = nil
		p.free = p.free[:n-1]
		return b
	}
	if p.made == p.limit {
		p.short = true
		return nil
	}
	p.made++
	return microproto.NewBuffer(make([]byte, p.size), p.give)
}

func (p *buffers) give(b *microproto.Buffer) {
	p.mu.Lock()
	p.free = append(p.free, b)
	short := p.short
	p.short = false
	p.mu.Unlock()
	if short {
		p.call()
	}
}
