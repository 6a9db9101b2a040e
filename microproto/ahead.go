package microproto

import (
	"reflect"
	"unsafe"
)

// Where thousands of composites take turns, as in a simulation, what one of them needs is in
// no cache when its turn comes: of what a message takes then, most is waiting for memory, one
// cache line after the other, since each tells where the next lies. A composite of a crowd
// knows its lines, and looks at all of them when an entry point begins: the processor
// fetches a dozen at once.

// lineBytes is the length of a cache line, manyLines how many a session of the synchronous
// columns has.
const (
	lineBytes = 64
	manyLines = 160
)

// ahead are the lines to look at.
type ahead struct {
	lines []*byte
}

// look fetches them: a pointer that may be nil is checked by a load, whose value nobody
// waits for.
func (a *ahead) look() {
	for _, p := range a.lines {
		_ = *p
	}
}

// lookAhead fetches what the end of a frame needs: another end has touched it last.
func (f *Frame) lookAhead() {
	if f.buf != nil {
		_ = f.buf.refs.Load()
	}
}

// add notes the lines of n bytes.
func (a *ahead) add(p unsafe.Pointer, n uintptr) {
	for at := uintptr(0); at < n; at += lineBytes - (uintptr(p)+at)%lineBytes {
		if q := (*byte)(unsafe.Add(p, at)); !a.has(q) {
			a.lines = append(a.lines, q)
		}
	}
}

// LookAhead makes the composite one of a crowd: from now on its entry points begin so. beside
// are pointers to what the layer above touches with each message and shall be looked at too.
// An entry point at the instant of the last one is still its turn. It costs a turn some
// 50 ns where everything is in a cache anyway.
func (c *Composite) LookAhead(beside ...any) {
	if c.pool.made == 0 {
		c.pool.grow()
	}
	c.planAhead(beside)
}

func (a *ahead) has(q *byte) bool {
	for i := len(a.lines) - 1; i >= 0; i-- { // it is rarely far back
		if lineOf(a.lines[i]) == lineOf(q) {
			return true
		}
	}
	return false
}

func lineOf(p *byte) uintptr { return uintptr(unsafe.Pointer(p)) / lineBytes }

// addAll notes what a pointer points at.
func (a *ahead) addAll(p any) {
	if v := reflect.ValueOf(p); v.Kind() == reflect.Pointer && !v.IsNil() {
		a.add(v.UnsafePointer(), v.Type().Elem().Size())
	}
}

// planAhead notes what a message touches, in the order in which it does.
func (c *Composite) planAhead(beside []any) {
	c.ahead = ahead{lines: make([]*byte, 0, manyLines)}
	a := &c.ahead
	a.add(unsafe.Pointer(c), unsafe.Offsetof(c.chains))
	for i := range c.chains.n {
		ch := c.chains.at(i)
		if len(ch.entries) == 0 {
			continue
		}
		a.add(unsafe.Pointer(ch), unsafe.Sizeof(*ch))
		a.add(unsafe.Pointer(&ch.entries[0]), uintptr(len(ch.entries))*unsafe.Sizeof(ch.entries[0]))
		for j := range ch.entries {
			a.add(ch.entries[j].handle, 1) // a method value: two words in one line
		}
	}
	for _, t := range c.attached {
		a.addAll(t.protocol)
	}
	for i := range min(2, len(c.pool.chunks[0])) { // the pool gives the same ones out again and again
		m := &c.pool.chunks[0][i]
		a.add(unsafe.Pointer(m), unsafe.Offsetof(m.local)+lineBytes)
	}
	for _, v := range beside {
		a.addAll(v)
	}
}
