package kernel

import (
	"slices"

	"github.com/klauspost/cpuid/v2"
)

// Tiling describes how several Jacobi sweeps traverse a block together: a value read from memory is
// relaxed several times before it is written back. The bits do not depend on it. Zero fields are
// chosen from the size of the second-level cache.
type Tiling struct {
	Sweeps int // sweeps of a tile
	Rows   int // rows of a plane in a tile (in 2-D, points of a row)
	Pieces int // pieces that planes are divided into, one per thread; 1 if 0
}

const (
	maxSweeps     = 32
	minRows       = 4
	minSaving     = 0.97 // bound of the cost of one more sweep relative to the best so far
	fallbackCache = 1 << 20
	// cacheShare is the part of the second-level cache that a tile may occupy (measured: docs/adr/0031).
	cacheShare = 0.75
)

// tiling returns t with its zero fields chosen. A tile keeps Rows+Sweeps rows of Sweeps+2 planes,
// of both arrays of values and of every array that a relaxation reads.
func (s *Sweep) tiling(t Tiling, cache int) Tiling {
	t.Pieces = max(t.Pieces, 1)
	arrays, unit := s.arrays(), 1
	if s.layout.Dim == 3 {
		unit = s.layout.N[0]
	}
	rows := int(cacheShare*float64(cache)) / (8 * unit * arrays) // rows of all planes of a tile
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

// tileRows returns the number of rows per plane that a tile of that many sweeps may have.
func tileRows(rows, sweeps int) int { return rows/(sweeps+2) - sweeps }

// bestSweeps returns the number of sweeps that minimises the memory read per relaxation, or 1 if
// single sweeps are as good: a tile reads Rows+Sweeps rows of a plane and relaxes Rows of them
// Sweeps times. fixed is the requested number of rows, or 0.
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

// cacheBytes returns the size of a core's second-level cache.
func cacheBytes() int {
	if c := cpuid.CPU.Cache.L2; c > 0 {
		return c
	}
	return fallbackCache
}

// arrays returns the number of arrays that a relaxation accesses: old and new values, and every
// field and coefficient that is not constant.
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
