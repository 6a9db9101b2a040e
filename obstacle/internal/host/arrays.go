package host

import "sync"

// Arrays lends arrays, and takes all of them back at once. Large arrays lie one behind the other in regions of huge
// pages, so that arrays smaller than a huge page lie in huge pages, too. Memory that is lent again needs no page
// faults, which take most of the time to build a block. The zero value is ready for use. The methods may be called
// concurrently.
type Arrays struct {
	mu      sync.Mutex
	regions []*region
}

// region is memory of which arrays are parts.
type region struct {
	values []float64
	next   int // of the values that are not lent
	used   int // values from here on are zeros still
}

// Bounds of arrays in regions, in values. Pages that no array uses cost nothing, but the garbage collector counts them.
const (
	leastInRegion = 1 << 16
	regionValues  = 1 << 22
	regionArrays  = 6 // as long as the first, in a region below regionValues; a block of Richardson's method has 3
	line          = 8 // values of a cache line, where arrays begin, since kernels read whole lines
	// apart is a distance between arrays, so that no two begin at the same place of a page.
	apart = 5 * line
)

// Take returns n zeros.
func (a *Arrays) Take(n int) []float64 {
	if n < leastInRegion {
		return make([]float64, n)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, r := range a.regions {
		if n <= len(r.values)-r.next {
			return r.take(n)
		}
	}
	r := &region{values: hugePages(max(n, min(regionValues, regionArrays*n)))}
	a.regions = append(a.regions, r)
	return r.take(n)
}

func (r *region) take(n int) []float64 {
	u := r.values[r.next : r.next+n : r.next+n]
	clear(u[:max(0, min(n, r.used-r.next))]) // the system provides other pages when they are used, on several threads
	r.next = min(len(r.values), (r.next+n+apart+line-1)/line*line)
	r.used = max(r.used, r.next)
	return u
}

// Return takes all arrays back. Nothing may use them any more.
func (a *Arrays) Return() {
	a.mu.Lock()
	defer a.mu.Unlock()
	kept := a.regions[:0]
	for _, r := range a.regions {
		if r.next > 0 { // otherwise it was not used since the last call
			r.next = 0
			kept = append(kept, r)
		}
	}
	clear(a.regions[len(kept):])
	a.regions = kept
}

// Merge takes all memory of b, whose arrays nothing may use any more.
func (a *Arrays) Merge(b *Arrays) {
	b.mu.Lock()
	defer b.mu.Unlock()
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, r := range b.regions {
		r.next = 0
	}
	a.regions, b.regions = append(a.regions, b.regions...), nil
}

// Forget leaves all arrays, which may be in use, to the garbage collector.
func (a *Arrays) Forget() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.regions = nil
}
