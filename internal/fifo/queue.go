// Package fifo is a queue that reuses its memory.
package fifo

// Queue is a first-in, first-out queue. It doubles when it is full and never shrinks; its users bound its length. The
// zero value is empty.
type Queue[T any] struct {
	ring  []T // its length is a power of two, or 0
	first int
	n     int
}

// smallest is the capacity of the smallest ring.
const smallest = 2

// Use makes an empty queue use memory of its owner, whose length is a power of two.
func (q *Queue[T]) Use(ring []T) { q.ring = ring }

// Reserve makes room for n entries in all, so that Push does not allocate before.
func (q *Queue[T]) Reserve(n int) {
	for len(q.ring) < n {
		q.grow()
	}
}

func (q *Queue[T]) grow() {
	ring := make([]T, max(smallest, 2*len(q.ring)))
	for i := range q.n {
		ring[i] = q.ring[(q.first+i)&(len(q.ring)-1)]
	}
	q.ring, q.first = ring, 0
}

// Len returns the number of entries.
func (q *Queue[T]) Len() int { return q.n }

// At returns entry i, counted from the front.
func (q *Queue[T]) At(i int) *T { return &q.ring[(q.first+i)&(len(q.ring)-1)] }

// Front returns the oldest entry.
func (q *Queue[T]) Front() *T { return q.At(0) }

// Push appends an entry.
func (q *Queue[T]) Push(v T) {
	if q.n == len(q.ring) {
		q.grow()
	}
	q.ring[(q.first+q.n)&(len(q.ring)-1)] = v
	q.n++
}

// Pop removes the front and returns it.
func (q *Queue[T]) Pop() T {
	v := q.ring[q.first]
	q.Drop()
	return v
}

// Drop removes the front. It does not return it, because entries may be large.
func (q *Queue[T]) Drop() {
	var zero T
	q.ring[q.first] = zero
	q.first = (q.first + 1) & (len(q.ring) - 1)
	if q.n--; q.n == 0 {
		q.first = 0 // a short queue keeps using the same memory
	}
}

// DropNewest removes the entry pushed last.
func (q *Queue[T]) DropNewest() { q.n-- }
