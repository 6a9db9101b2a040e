package microproto

// ring is a FIFO queue that doubles when it is full and never shrinks. Its users bound its
// length.
type ring[T any] struct {
	buf  []T // length is a power of two, or 0
	head int
	n    int
}

// minRing is the capacity of the smallest ring, a power of two.
const minRing = 2

func (r *ring[T]) push(v T) {
	if r.n == len(r.buf) {
		r.grow()
	}
	r.buf[(r.head+r.n)&(len(r.buf)-1)] = v
	r.n++
}

func (r *ring[T]) pop() T {
	var zero T
	v := r.buf[r.head]
	r.buf[r.head] = zero
	r.head = (r.head + 1) & (len(r.buf) - 1)
	if r.n--; r.n == 0 {
		r.head = 0 // a short queue keeps using the same memory
	}
	return v
}

func (r *ring[T]) grow() {
	buf := make([]T, max(minRing, 2*len(r.buf)))
	for i := range r.n {
		buf[i] = r.buf[(r.head+i)&(len(r.buf)-1)]
	}
	r.buf, r.head = buf, 0
}
