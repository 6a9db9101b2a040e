package netlab

// buffer is a packet's bytes; references count the places that hold it.
type buffer struct {
	data       []byte
	references int
}

// pool has the buffers of a link. What is under way is bounded by maxHeld, so it
// grows to what the link needs and no further. It is for one goroutine.
type pool struct {
	size int // of a buffer
	free []*buffer
}

// acquire gives a buffer of full length with one reference.
func (p *pool) acquire() *buffer {
	if k := len(p.free); k > 0 {
		b := p.free[k-1]
		p.free = p.free[:k-1]
		b.data, b.references = b.data[:p.size], 1
		return b
	}
	return &buffer{data: make([]byte, p.size), references: 1}
}

// copied gives a buffer that holds a copy.
func (p *pool) copied(data []byte) *buffer {
	b := p.acquire()
	b.data = b.data[:copy(b.data, data)]
	return b
}

// release gives one reference back.
func (p *pool) release(b *buffer) {
	if b.references--; b.references == 0 {
		p.free = append(p.free, b)
	}
}
