package method

import (
	"math"
	"math/bits"

	"github.com/p2pdc/p2pdc/internal/kernel"
)

// marks is a bit for every own point and ghost of a block.
type pointSet struct {
	words []uint64
	row   int // words of a row
	rows  int // of a plane, ghosts too
}

// Point x of a row is bit x + 64, so that own points begin with a word.
func newPointSet(l kernel.Layout) pointSet {
	m := pointSet{row: 1 + (l.N[0]+64)/64, rows: l.N[1] + 2}
	m.words = make([]uint64, m.row*m.rows*(l.N[2]+2))
	return m
}

// of is the words of a row.
func (m *pointSet) of(y, z int) []uint64 { return m.words[(y+1+m.rows*(z+1))*m.row:][:m.row] }

func (m *pointSet) has(p [3]int) bool {
	x := p[0] + 64
	return m.of(p[1], p[2])[x>>6]>>(x&63)&1 != 0
}

// bits are those of points lo ≤ x < hi of a row, at most 64, the first one lowest.
func (m *pointSet) bits(lo, hi, y, z int) uint64 {
	words, n, at := m.of(y, z), hi-lo, lo+64
	w := words[at>>6] >> (at & 63)
	if at&63+n > 64 {
		w |= words[at>>6+1] << (64 - at&63)
	}
	return w & (1<<n - 1)
}

// from is the words of the own points from a row on.
func (m *pointSet) from(y, z int) []uint64 { return m.words[(y+1+m.rows*(z+1))*m.row+1:] }

// set marks one point.
func setBit(words []uint64, x int) {
	x += 64
	words[x>>6] |= 1 << (x & 63)
}

// span is the first and the last point marked in either of the rows; first > last: none.
type span struct{ first, last int }

var emptySpan = span{math.MaxInt32, math.MinInt32}

// join is the span of s and what a row has marked.
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
