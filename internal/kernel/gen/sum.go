package main

import (
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// sums emits the loops over rows of values that package kernel adds up exactly.
func sums(s set) {
	moves := [][2]string{{"out", "outStep"}, {"c", "rowStep"}}
	rowsOf(s, "largest", "finds the largest bits of a row of values without their signs, a candidate a lane.", moves, nil, nil, func(l *loop) {
		most := s.zero()
		s.loops(l, true, func(v vector, offset int) { v.largest(v.load(l.at("c", offset)), most) })
		s.whole().store(most, operand.Mem{Base: l.ptr["out"]}, false)
	})
	sumRow(s, "sumRow", false)
	sumRow(s, "sumSquares", true)
}

// sumRow emits sums of the values of a row, or of their squares, in three parts that are
// exact: adding and subtracting a large number (kc, kw, ke) leaves the multiples of its
// last place, and those of one row fit a float64 (Rump, Ogita, Oishi, SIAM J. Sci. Comput.
// 31(1), 2008). out gets the three sums and the bits of what none of them held, a
// vector each.
func sumRow(s set, name string, squares bool) {
	moves := [][2]string{{"out", "outStep"}, {"c", "rowStep"}}
	parts := []string{"kc", "kw", "ke"}
	rowsOf(s, name, "sums a row in three parts, a sum a lane.", moves, parts, nil, func(l *loop) {
		acc := []reg.Register{s.zero(), s.zero(), s.zero()}
		rest := s.zero()
		s.loops(l, true, func(v vector, offset int) {
			x := v.load(l.at("c", offset))
			if squares {
				v.mul(x, x, x)
			}
			for i, p := range parts {
				h := v.vector()
				v.add(l.scalars[p], x, h)
				v.sub(l.scalars[p], h, h)
				v.add(h, acc[i], acc[i])
				v.sub(h, x, x)
			}
			v.or(x, rest)
		})
		for i, r := range append(acc, rest) {
			s.whole().store(r, operand.Mem{Base: l.ptr["out"], Disp: 8 * s.width() * i}, false)
		}
	})
}
