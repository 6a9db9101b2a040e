package ctp

import (
	"slices"

	"github.com/p2pdc/p2pdc/microproto"
)

// buffers is a pool of memory for received messages. It spares a busy channel allocations,
// and never holds more buffers than were in use at once.
type buffers struct {
	free  [][]byte
	small [][]byte // of smallBuffer bytes each

	kept, mostKept int                     // messages that are parts of contents
	lists          [][]*microproto.Message // for parts
}

const (
	maxFreeBuffers = 16
	smallBuffer    = 128 // bytes
	maxSmall       = 1024
)

// get returns n bytes: those of the smallest free buffer that has at least n and at most
// four times as many, or else new memory.
func (b *buffers) get(n int) []byte {
	if n <= smallBuffer {
		last := len(b.small) - 1
		if last < 0 {
			return make([]byte, n, smallBuffer)
		}
		f := b.small[last]
		b.small = b.small[:last]
		return f[:n]
	}
	best := -1
	for i, f := range b.free {
		if cap(f) >= n && cap(f) <= 4*max(n, 1024) && (best < 0 || cap(f) < cap(b.free[best])) {
			best = i
		}
	}
	if best < 0 {
		return make([]byte, n, max(n, 64))
	}
	f := b.free[best]
	last := len(b.free) - 1
	b.free[best] = b.free[last]
	b.free = b.free[:last]
	return f[:n]
}

func (b *buffers) clone(data []byte, n int) []byte {
	f := b.get(n)
	copy(f, data)
	return f
}

func (b *buffers) put(f []byte) {
	switch {
	case cap(f) != smallBuffer:
		if len(b.free) == maxFreeBuffers {
			b.free = slices.Delete(b.free, 0, 1)
		}
		b.free = append(b.free, f)
	case len(b.small) < maxSmall:
		b.small = append(b.small, f)
	}
}
