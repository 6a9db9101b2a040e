package main

import (
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// sums emits the loops over rows whose values package kernel adds exactly, and the loop that finds the largest bits
// of a row of values without their signs, one candidate per lane.
func sums(s set) {
	l := &loop{}
	rowsOf(s, "largest", l, []string{"out", "c"}, nil, nil, func() {
		most := s.zero()
		s.loops(l, true, func(v vector, offset int) { v.largest(v.load(l.at("c", offset)), most) })
		s.whole().store(most, operand.Mem{Base: l.ptr["out"]}, false)
	})
	sumRow(s, "sumRow", false)
	sumRow(s, "sumSquares", true)
}

// sumRow emits sums of the values of a row, or of their squares, in three exact parts: adding and
// subtracting a large number (kc, kw, ke) leaves the multiples of its last place, and the sum of
// those of one row fits a float64 (Rump, Ogita, Oishi, SIAM J. Sci. Comput. 31(1), 2008). out
// receives the three sums and the remaining bits, one vector each.
func sumRow(s set, name string, squares bool) {
	parts := []string{"kc", "kw", "ke"}
	l := &loop{}
	rowsOf(s, name, l, []string{"out", "c"}, parts, nil, func() {
		acc := []reg.Register{s.zero(), s.zero(), s.zero()}
		rest := s.zero()
		s.loops(l, true, func(v vector, offset int) {
			x := v.load(l.at("c", offset))
			if squares {
				v.mul(x, x, x)
			}
			for i, p := range parts {
				h := v.register()
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
