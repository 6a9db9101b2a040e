package method

import (
	"math"
	"math/bits"

	"github.com/p2pdc/p2pdc/internal/kernel"
)

// pointSet is a set of own points and ghosts of a block, one bit per point.
type pointSet struct {
	words []uint64
	row   int // words per row
	rows  int // rows per plane, ghosts included
}

// newPointSet returns an empty set. Point x of a row is bit x + 64, so that own points begin at a word.
func newPointSet(l kernel.Layout) pointSet {
	m := pointSet{row: 1 + (l.N[0]+64)/64, rows: l.N[1] + 2}
	m.words = make([]uint64, m.row*m.rows*(l.N[2]+2))
	return m
}

// of returns the words of a row.
func (m *pointSet) of(y, z int) []uint64 { return m.words[(y+1+m.rows*(z+1))*m.row:][:m.row] }

func (m *pointSet) has(p [3]int) bool {
	x := p[0] + 64
	return m.of(p[1], p[2])[x>>6]>>(x&63)&1 != 0
}

// bits returns the bits of the points lo ≤ x < hi of a row, at most 64, with the first point in the lowest bit.
func (m *pointSet) bits(lo, hi, y, z int) uint64 {
	words, n, at := m.of(y, z), hi-lo, lo+64
	w := words[at>>6] >> (at & 63)
	if at&63+n > 64 {
		w |= words[at>>6+1] << (64 - at&63)
	}
	return w & (1<<n - 1)
}

// from returns the words from the first own point of a row on.
func (m *pointSet) from(y, z int) []uint64 { return m.words[(y+1+m.rows*(z+1))*m.row+1:] }

// setBit adds point x to a row.
func setBit(words []uint64, x int) {
	x += 64
	words[x>>6] |= 1 << (x & 63)
}

// span is the range between the first and the last point of a set in one or more rows. It is empty if first > last.
type span struct{ first, last int }

var emptySpan = span{math.MaxInt32, math.MinInt32}

// join extends s by the points of a row.
func (s span) join(words []uint64) span {
	for i, w := range words {
		if w != 0 {
			s.first = min(s.first, 64*(i-1)+bits.TrailingZeros64(w))
			break
		}
	}
	for i := len(words) - 1; i >= 0; i-- {
		if words[i] != 0 {
			s.last = max(s.last, 64*(i-1)+63-bits.LeadingZeros64(words[i]))
			break
		}
	}
	return s
}
