package ctp

// buffers keeps the memory of messages that were received for the next ones, so
// that a channel at work allocates nothing. It holds few, and never more than have
// been in use at once.
type buffers struct{ free [][]byte }

const maxFreeBuffers = 16

// get returns n bytes, from the smallest free buffer that is long enough and not
// more than four times too long.
func (b *buffers) get(n int) []byte {
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

func (b *buffers) put(f []byte) {
	if len(b.free) < maxFreeBuffers {
		b.free = append(b.free, f)
		return
	}
	copy(b.free, b.free[1:])
	b.free[maxFreeBuffers-1] = f
}
