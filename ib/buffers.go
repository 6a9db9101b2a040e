package ib

import (
	"errors"
	"sync"
	"unsafe"

	"github.com/p2pdc/p2pdc/ib/internal/verbs"
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

// faces are pieces of memory registered for the user.
type faces struct{ all []face }

type face struct {
	bytes  []byte
	base   uintptr
	region verbs.Region
}

// mostFaces bounds them: the sender looks through all of them.
const mostFaces = 64

func (f *faces) allocate(d verbs.Domain, n int) ([]byte, error) {
	if len(f.all) == mostFaces {
		return nil, errors.New("ib: 64 pieces of registered memory are allocated already: take fewer, larger ones")
	}
	b, err := verbs.Allocate(n)
	if err != nil {
		return nil, err
	}
	r, err := d.Register(b, verbs.LocalWrite)
	if err != nil {
		_ = verbs.Free(b)
		return nil, explainLimit(err)
	}
	f.all = append(f.all, face{b, uintptr(unsafe.Pointer(unsafe.SliceData(b))), r})
	return b, nil
}

// element finds registered memory that holds b.
func (f *faces) element(b []byte) (verbs.Element, bool) {
	at := uintptr(unsafe.Pointer(unsafe.SliceData(b)))
	for i := range f.all {
		x := &f.all[i]
		if at >= x.base && at-x.base+uintptr(len(b)) <= uintptr(len(x.bytes)) {
			return verbs.Element{Addr: x.region.Addr() + uint64(at-x.base), Length: uint32(len(b)), Key: x.region.LocalKey()}, true
		}
	}
	return verbs.Element{}, false
}

func (f *faces) close() error {
	var err error
	for _, x := range f.all {
		if e := x.region.Close(); e != nil {
			err = errors.Join(err, e)
			continue
		}
		err = errors.Join(err, verbs.Free(x.bytes))
	}
	f.all = nil
	return err
}
