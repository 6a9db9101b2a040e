package software

import (
	"fmt"
	"math/bits"
	"sync"
	"sync/atomic"

	"github.com/p2pdc/p2pdc/ib/internal/verbs"
)

// table holds values by number (of queue pairs, of regions). find takes no lock. The upper bits
// of a number change whenever its entry is reused, so that an old number finds nothing.
type table[T any] struct {
	mu      sync.Mutex
	entries []atomic.Pointer[entry[T]]
	free    []uint32 // indices, reused first in, first out
	uses    []uint32
	shift   int
	mask    uint32
}

type entry[T any] struct {
	number uint32
	value  *T
}

// init makes room for n values under numbers of width bits; first is random.
func (t *table[T]) init(n, width int, first uint32) {
	t.entries = make([]atomic.Pointer[entry[T]], n)
	t.shift = bits.Len(uint(n))
	t.mask = uint32(1<<width - 1)
	t.uses = make([]uint32, n)
	for i := range n {
		t.free = append(t.free, uint32(i))
		t.uses[i] = first%61 + 1
	}
}

// put stores a value and returns its number, which is never 0.
func (t *table[T]) put(x *T, what string) (uint32, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.free) == 0 {
		return 0, fmt.Errorf("%w: %d %s", verbs.ErrLimit, len(t.entries), what)
	}
	i := t.free[0]
	t.free = t.free[1:]
	number := (t.uses[i]<<t.shift | (i + 1)) & t.mask
	t.uses[i]++
	t.entries[i].Store(&entry[T]{number, x})
	return number, nil
}

func (t *table[T]) find(number uint32) *T {
	i := number&(1<<t.shift-1) - 1
	if i >= uint32(len(t.entries)) {
		return nil
	}
	if e := t.entries[i].Load(); e != nil && e.number == number {
		return e.value
	}
	return nil
}

func (t *table[T]) remove(number uint32) {
	t.mu.Lock()
	defer t.mu.Unlock()
	i := number&(1<<t.shift-1) - 1
	if e := t.entries[i].Load(); e == nil || e.number != number {
		return
	}
	t.entries[i].Store(nil)
	t.free = append(t.free, i)
}

// each calls f for all values, in order of their entries.
func (t *table[T]) each(f func(*T)) {
	for i := range t.entries {
		if e := t.entries[i].Load(); e != nil {
			f(e.value)
		}
	}
}
