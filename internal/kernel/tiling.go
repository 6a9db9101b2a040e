package kernel

import "github.com/klauspost/cpuid/v2"

// Tiling says how several Jacobi sweeps go over a block together, so that a value
// read from memory is relaxed several times before it is written back. Bits do not
// depend on it. Zero fields are chosen: from the size of the second-level cache.
type Tiling struct {
	Sweeps int // that a tile does together
	Rows   int // of a plane (points of a row in 2-D) that a tile holds
	Pieces int // that planes are cut into, for as many threads; 0: 1
}

const (
	mostSweeps    = 32
	leastRows     = 8
	fallbackCache = 1 << 20
	// cacheShare of the second-level cache is what a tile may fill (measured: docs/adr/0032).
	cacheShare = 0.75
)

// tiling fills in what t leaves open. A tile keeps, of Sweeps+2 planes, Rows+Sweeps
// rows of both arrays of values and of every array that a point is relaxed with.
func (s *Sweep) tiling(t Tiling, cache int) Tiling {
	t.Pieces = max(t.Pieces, 1)
	arrays, unit := s.arrays(), 1
	if s.layout.Dim == 3 {
		unit = s.layout.N[0]
	}
	rows := int(cacheShare*float64(cache)) / (8 * unit * arrays) // of all planes of a tile
	if t.Sweeps <= 0 {
		t.Sweeps = 1
		if 8*arrays*s.layout.Points() <= cache {
			rows = 0 // all of the block stays in the cache
		}
		for n := 2; n <= mostSweeps && (n+2)*(leastRows+n+n) <= rows; n++ {
			t.Sweeps = n
		}
		if t.Sweeps > 8 {
			t.Sweeps &^= 3
		}
	}
	if t.Rows <= 0 {
		t.Rows = max(leastRows, rows/(t.Sweeps+2)-t.Sweeps)
	}
	return t
}

// cacheBytes is the size of a core's second-level cache.
func cacheBytes() int {
	if c := cpuid.CPU.Cache.L2; c > 0 {
		return c
	}
	return fallbackCache
}

// arrays is how many arrays a relaxation goes through: old and new values, and what
// is not constant.
func (s *Sweep) arrays() int {
	n := 2
	for _, f := range []Field{s.source, s.lower, s.upper} {
		if f.Array != nil {
			n++
		}
	}
	if s.operator.Form == Variable {
		n += 1 + 2*s.layout.Dim
	}
	return n
}
