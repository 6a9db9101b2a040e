package host

import (
	"slices"
	"sync"
)

// Arrays lends arrays, and takes all of them back at once. An array that is lent again has its memory already: the page
// faults of new arrays take most of the time to build a block anew. Its zero value is ready for use.
type Arrays struct {
	mu         sync.Mutex
	lent, free [][]float64
}

// Take returns n zeros: an array that was returned, or a new one (see Array).
func (a *Arrays) Take(n int) []float64 {
	a.mu.Lock()
	defer a.mu.Unlock()
	i := slices.IndexFunc(a.free, func(f []float64) bool { return len(f) == n })
	var u []float64
	if i >= 0 {
		u = a.free[i]
		a.free = slices.Delete(a.free, i, i+1)
		clear(u)
	} else {
		u = Array(n)
	}
	a.lent = append(a.lent, u)
	return u
}

// Return takes all arrays back that were lent since the last call. Nothing may use them any more. Arrays returned before
// that were not lent again are left to the garbage collector.
func (a *Arrays) Return() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.lent, a.free = nil, a.lent
}

// Forget leaves all arrays to the garbage collector.
func (a *Arrays) Forget() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.lent, a.free = nil, nil
}
