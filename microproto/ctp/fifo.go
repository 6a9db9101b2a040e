package ctp

// fifo is a queue that reuses its memory.
type fifo[T any] struct {
	ring  []T // its length is a power of two
	first int
	n     int
}

func (f *fifo[T]) push(v T) {
	if f.n == len(f.ring) {
		bigger := make([]T, max(2, 2*len(f.ring)))
		for i := range f.n {
			bigger[i] = *f.at(i)
		}
		f.ring, f.first = bigger, 0
	}
	f.n++
	*f.at(f.n - 1) = v
}

func (f *fifo[T]) at(i int) *T { return &f.ring[(f.first+i)&(len(f.ring)-1)] }

func (f *fifo[T]) front() *T { return f.at(0) }

// pop removes the front, which the caller has read: entries are large.
func (f *fifo[T]) pop() {
	var zero T
	*f.at(0) = zero
	f.first = (f.first + 1) & (len(f.ring) - 1)
	if f.n--; f.n == 0 {
		f.first = 0 // a short queue keeps using the same memory
	}
}
