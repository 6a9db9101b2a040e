package microproto

import (
	"reflect"
	"unsafe"
)

// In a simulation of thousands of composites, the memory of one composite is in no cache
// when its next event comes, and each cache line holds the address of the next. Most of the
// time that a message takes is then spent waiting for memory. A composite that prefetches
// lists its cache lines and reads all of them when an entry point begins, so that the
// processor fetches a dozen at once.

const (
	lineBytes     = 64  // length of a cache line
	prefetchLines = 160 // lines of a session of the synchronous columns
)

// prefetch lists the first byte of each cache line to be read.
type prefetch struct{ lines []*byte }

// touch reads the lines. The nil check of the compiler is the load; no value is waited for.
func (p *prefetch) touch() {
	for _, b := range p.lines {
		_ = *b
	}
}

// prefetch reads the reference count of a frame, which another end has touched last.
func (f *Frame) prefetch() {
	if f.buf != nil {
		_ = f.buf.refs.Load()
	}
}

// Prefetch makes every entry point begin with a prefetch of the composite's memory, except
// at the instant of the entry point before. others are pointers to memory of the layer above
// that each message touches. A prefetch costs some 50 ns if everything is in a cache already.
func (c *Composite) Prefetch(others ...any) {
	if c.pool.made == 0 {
		c.pool.grow()
	}
	c.prefetch = prefetch{lines: make([]*byte, 0, prefetchLines)}
	p := &c.prefetch
	p.add(unsafe.Pointer(c), unsafe.Offsetof(c.chains))
	for i := range c.chains.n {
		ch := c.chains.at(i)
		if len(ch.entries) == 0 {
			continue
		}
		p.add(unsafe.Pointer(ch), unsafe.Sizeof(*ch))
		p.add(unsafe.Pointer(&ch.entries[0]), uintptr(len(ch.entries))*unsafe.Sizeof(ch.entries[0]))
		for j := range ch.entries {
			p.add(ch.entries[j].handle, 1) // a method value: two words in one line
		}
	}
	for _, a := range c.attached {
		p.addTarget(a.protocol)
	}
	for i := range min(2, len(c.pool.chunks[0])) { // the pool reuses the first messages
		m := &c.pool.chunks[0][i]
		p.add(unsafe.Pointer(m), unsafe.Offsetof(m.local)+lineBytes)
	}
	for _, v := range others {
		p.addTarget(v)
	}
}

// add lists the lines of n bytes.
func (p *prefetch) add(from unsafe.Pointer, n uintptr) {
	for at := uintptr(0); at < n; at += lineBytes - (uintptr(from)+at)%lineBytes {
		if b := (*byte)(unsafe.Add(from, at)); !p.has(b) {
			p.lines = append(p.lines, b)
		}
	}
}

// addTarget lists the lines of what a pointer points to.
func (p *prefetch) addTarget(pointer any) {
	if v := reflect.ValueOf(pointer); v.Kind() == reflect.Pointer && !v.IsNil() {
		p.add(v.UnsafePointer(), v.Type().Elem().Size())
	}
}

// has reports whether the line of b is listed; the search starts with the latest.
func (p *prefetch) has(b *byte) bool {
	for i := len(p.lines) - 1; i >= 0; i-- {
		if lineOf(p.lines[i]) == lineOf(b) {
			return true
		}
	}
	return false
}

func lineOf(b *byte) uintptr { return uintptr(unsafe.Pointer(b)) / lineBytes }
