package main

import "github.com/mmcloughlin/avo/reg"

// colour is the state of a loop that relaxes the points of one colour in place.
type colour struct {
	// last is the old value of the vector before the current one. Rows are read ahead of their
	// stores, because a load that overlaps a store waits until the store has left the core.
	last reg.Register
	mask reg.Register // the colour's lanes
}

// relaxColour emits the relaxation in place of the points of one colour. All lanes are computed;
// those of the other colour are stored with their old values. odd, 0 or 1, is the offset of the first in the first row.
func relaxColour(s set, f form) {
	emit(s, "relaxColour"+f.String(), f, true, append(scalarsOf(f), "step"), func(l *loop, v vector, offset int) {
		u, res := l.sum(v, offset)
		v.move(u, l.colour.last)
		if f == variable {
			v.div(v.operand(l.coefficient("c", offset)), res, res)
		}
		v.mul(l.scalars["step"], res, res)
		v.sub(res, u, res)
		if f == simple {
			v.maxAt(l.colour.mask, res, v.load(l.at("phi", offset)), u)
		} else {
			v.max(res, v.load(l.at("phi", offset)), res)
			v.minAt(l.colour.mask, res, v.load(l.at("psi", offset)), u)
		}
		v.store(u, l.at("c", 1+offset), false)
	})
}
