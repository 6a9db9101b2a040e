package netlab

// buffer holds the bytes of a packet and the number of references to it.
type buffer struct {
	data       []byte
	references int
}

// pool holds the free buffers of a link. Its size is bounded, because maxHeld bounds the packets in the
// link. It must not be used by several goroutines at once.
type pool struct {
	size int // bytes of a buffer
	free []*buffer
}

// acquire returns a buffer of full length with one reference.
func (p *pool) acquire() *buffer {
	if k := len(p.free); k > 0 {
		b := p.free[k-1]
		p.free = p.free[:k-1]
		b.data, b.references = b.data[:p.size], 1
		return b
	}
	return &buffer{data: make([]byte, p.size), references: 1}
}

// copied returns a buffer with a copy of data.
func (p *pool) copied(data []byte) *buffer {
	b := p.acquire()
	b.data = b.data[:copy(b.data, data)]
	return b
}

// release drops one reference.
func (p *pool) release(b *buffer) {
	if b.references--; b.references == 0 {
		p.free = append(p.free, b)
	}
}
