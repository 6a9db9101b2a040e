package kernel

import (
	"slices"

	"github.com/klauspost/cpuid/v2"
)

// Tiling says how several Jacobi sweeps go over a block together, so that a value
// read from memory is relaxed several times before it is written back. Bits do not
// depend on it. Zero fields are chosen: from the size of the second-level cache.
type Tiling struct {
	Sweeps int // that a tile does together
	Rows   int // of a plane (points of a row in 2-D) that a tile holds
	Pieces int // that planes are cut into, for as many threads; 0: 1
}

const (
	maxSweeps     = 32
	minRows       = 4
	minSaving     = 0.97 // one sweep more, with fewer rows, has to save that much
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
	held := 8*arrays*s.layout.Points() <= cache
	switch {
	case t.Sweeps > 0:
	case held:
		t.Sweeps = 1
	default:
		t.Sweeps = bestSweeps(rows, t.Rows)
	}
	if held && t.Rows <= 0 {
		t.Rows = slices.Max(s.layout.N[:])
	}
	if t.Rows <= 0 {
		t.Rows = max(minRows, tileRows(rows, t.Sweeps))
	}
	return t
}

// tileRows is how many rows a tile of so many sweeps may hold.
func tileRows(rows, sweeps int) int { return rows/(sweeps+2) - sweeps }

// bestSweeps is the number of sweeps for which the least is read from memory for a
// relaxation: a tile reads Rows+Sweeps rows of a plane and relaxes Rows of them Sweeps
// times. 1 if single sweeps are as good. fixed rows, 0 for none, are those asked for.
func bestSweeps(rows, fixed int) int {
	best, least := 1, 1.0
	for n := 2; n <= maxSweeps; n++ {
		r := tileRows(rows, n)
		if r < minRows || fixed > r {
			break
		}
		if fixed > 0 {
			r = fixed
		}
		if cost := float64(r+n) / float64(r*n); cost < minSaving*least {
			best, least = n, cost
		}
	}
	return best
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
